"""RegexFullMatch below opset 20, which it came with, of patterns that list plain strings."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import refuse
from onnxreduce_cli.steps.registry import introduced

#: What stands for more than itself in a pattern; `|` does too.
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
        raise refuse(context, "matches patterns")
    found = ""
    first, *others = pattern.split("|")
    for text in others:
        same = op.Equal(context.input(0), _text(context, text))
        found = op.Or(found, same) if found else same
    inputs = [context.input(0), _text(context, first)]
    if found:
        context.replace("Or", [op.Equal(*inputs), found], keep=())
    else:
        context.replace("Equal", inputs, keep=())


def _text(context: Context, text: str) -> Value:
    return context.array(np.array(text, object), "text")
