"""StringNormalizer below opset 10, which introduced it."""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import no_equivalent
from onnxreduce_cli.steps.registry import introduced


@introduced(
    "StringNormalizer",
    10,
    "the strings as they are, where it leaves them so",
    blocks="it changes their case, or leaves some out",
)
def string_normalizer(context: Context) -> None:
    """``StringNormalizer<case_change_action="NONE">(x)`` without stopwords becomes
    ``Identity(x)``.
    """
    if context.value("case_change_action", "NONE") != "NONE":
        raise no_equivalent(context, "changes the case of strings")
    if context.value("stopwords", ()):
        raise no_equivalent(context, "leaves out strings by what they are")
    context.replace("Identity", keep=())
