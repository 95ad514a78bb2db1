"""OptionalHasElement: 18 let it do without an input, and take tensors and sequences."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.steps.context import Context
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
