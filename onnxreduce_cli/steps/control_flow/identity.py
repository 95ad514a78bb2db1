"""Identity of sequences: 14."""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import elem_type_of, zeros
from onnxreduce_cli.steps.registry import down


@down(
    "Identity",
    14,
    "a sequence: with an element more and less",
    blocks="below opset 11 the model is given the sequence or gives it",
)
def same_sequence(context: Context) -> None:
    """``Identity(s)`` of a sequence becomes ``SequenceErase(SequenceInsert(s, 0))``."""
    name = context.input(0)
    kind = context.kind(name) or ""
    if not kind.startswith("seq(tensor(") or not context.reaches(11):
        return
    elem_type = elem_type_of(kind[len("seq(") : -1])
    assert elem_type is not None
    item = context.array(zeros(elem_type), "nothing")
    longer = context.op.SequenceInsert(name, item)
    context.replace("SequenceErase", [longer])
