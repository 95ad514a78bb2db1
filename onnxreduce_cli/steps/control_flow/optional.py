"""Optional values: 18 let what reads them take tensors and sequences, or nothing at all."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import down


@down("OptionalHasElement", 18, "what is no optional value: a constant true, nothing: false")
def known_beforehand(context: Context) -> None:
    """``OptionalHasElement()`` becomes ``Identity(false)``; of a tensor it becomes true."""
    name = context.input(0)
    kind = context.kind(name) if name else ""
    if name and (kind is None or kind.startswith("optional(")):
        return
    answer = context.scalar(int(bool(name)), "answer", TensorProto.BOOL)
    context.replace("Identity", [answer])


@down("OptionalGetElement", 18, "what is no optional value: as it is")
def already_there(context: Context) -> None:
    """``OptionalGetElement(x)`` of a tensor or a sequence becomes ``Identity(x)``."""
    kind = context.kind(context.input(0))
    if kind is not None and not kind.startswith("optional("):
        context.replace("Identity")
