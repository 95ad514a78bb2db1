"""What else to write for convolutions, for runtimes that get a form of them wrong.

It means the same at the same opset. Which runtime gets what wrong is in `targets/`.
"""

from __future__ import annotations

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.sizes import dims_of, static_dims
from onnxreduce_cli.steps.registry import instead

#: The index of the input with the weights, where that is not 1.
_WEIGHTS = {"QLinearConv": 3}


@instead(
    ("Conv", "ConvTranspose", "QLinearConv"),
    {"no kernel_shape", "no kernel_shape of three"},
    "its kernel_shape written out",
)
def with_kernel_shape(context: Context) -> None:
    """``Conv(x, w)``, w of shape [8, 3, 5, 5], becomes ``Conv<kernel_shape=[5, 5]>(x, w)``."""
    weights = context.input(_WEIGHTS.get(context.node.op_type, 1))
    dims = dims_of(context, weights)
    kernel = static_dims(dims and dims[2:])
    if kernel is None:
        raise Blocked(
            f"the shape of its weights {weights!r} is not known",
            "state it in the model's value_info",
        )
    context.replace(kernel_shape=kernel)
