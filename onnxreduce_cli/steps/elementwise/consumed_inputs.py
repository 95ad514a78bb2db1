"""`consumed_inputs`, a hint about memory that element-wise operators had before opset 6.

Clip and Selu, which changed in more than that, drop it in files of their own.
"""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import up

_OPERATORS = (
    "Abs",
    "Add",
    "Ceil",
    "Div",
    "Dropout",
    "Elu",
    "Exp",
    "Floor",
    "HardSigmoid",
    "LeakyRelu",
    "Log",
    "Max",
    "Mean",
    "Min",
    "Mul",
    "Neg",
    "PRelu",
    "Reciprocal",
    "Relu",
    "Sigmoid",
    "Sqrt",
    "Sub",
    "Sum",
    "Tanh",
)


@up(_OPERATORS, 6, "consumed_inputs: dropped")
def without_hint(context: Context) -> None:
    """``Relu<consumed_inputs=[0]>(x)`` becomes ``Relu(x)``."""
    if context.attribute("consumed_inputs") is not None:
        context.replace(drop=("consumed_inputs",))
