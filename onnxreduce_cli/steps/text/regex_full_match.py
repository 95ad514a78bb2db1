"""RegexFullMatch below opset 20, which introduced it, of patterns that list plain strings."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import no_equivalent
from onnxreduce_cli.steps.registry import introduced

#: The characters with a meaning of their own in a pattern, besides `|`.
_SYNTAX = frozenset("\\.^$*+?{}[]()")


@introduced(
    "RegexFullMatch",
    20,
    "compared with each of the strings that the pattern lists",
    blocks="the pattern is no list of plain strings",
)
def regex_full_match(context: Context) -> None:
    """``RegexFullMatch<pattern="cat|dog">(x)`` becomes ``Or(Equal(x, "cat"), Equal(x, "dog"))``."""
    op = context.op
    pattern = context.value("pattern")
    if pattern is None or _SYNTAX & set(pattern):
        raise no_equivalent(context, "matches patterns")
    matches = ""
    first, *others = pattern.split("|")
    for text in others:
        same = op.Equal(context.input(0), _text(context, text))
        matches = op.Or(matches, same) if matches else same
    inputs = [context.input(0), _text(context, first)]
    if matches:
        context.replace("Or", [op.Equal(*inputs), matches], keep=())
    else:
        context.replace("Equal", inputs, keep=())


def _text(context: Context, text: str) -> Value:
    """Return a scalar of strings."""
    return context.array(np.array(text, object), "text")
