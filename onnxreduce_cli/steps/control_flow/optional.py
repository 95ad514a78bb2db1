"""Optional, OptionalHasElement and OptionalGetElement: 15 and 18.

18 let the latter two take tensors and sequences, or nothing at all. Below 15, which introduced
all three, `onnxreduce_cli.containers` writes optional values out as tensors, in the whole model.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import no_equivalent
from onnxreduce_cli.steps.registry import down, introduced


@down("OptionalHasElement", 18, "what is no optional value: a constant true, nothing: false")
def has_element_known(context: Context) -> None:
    """``OptionalHasElement()`` becomes ``Identity(false)``; of a tensor it becomes true."""
    name = context.input(0)
    kind = context.kind(name) if name else ""
    if name and (kind is None or kind.startswith("optional(")):
        return
    answer = context.scalar(int(bool(name)), "answer", TensorProto.BOOL)
    context.replace("Identity", [answer])


@down("OptionalGetElement", 18, "what is no optional value: as it is")
def get_element_of_tensor(context: Context) -> None:
    """``OptionalGetElement(x)`` of a tensor or a sequence becomes ``Identity(x)``."""
    kind = context.kind(context.input(0))
    if kind is not None and not kind.startswith("optional("):
        context.replace("Identity")


@introduced(
    ("Optional", "OptionalGetElement", "OptionalHasElement"),
    15,
    "written out as tensors",
    blocks="the model is given it or gives it, or the rank or dtype of what it holds is not known",
)
def optional_operator(context: Context) -> None:
    """Raise `Blocked`: optional values are written out with all that makes or reads them."""
    raise no_equivalent(context, "holds a value that may be absent")
