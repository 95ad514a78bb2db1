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


@instead("Conv", {"flat depthwise"}, "written with its padding of one row or column before it")
def of_padded_data(context: Context) -> None:
    """``Conv<pads=[1, 1, 1, 1]>(x, w)``, x of shape [1, 8, 1, 9], becomes
    ``Conv<pads=[0, 1, 0, 1]>(Pad(x, [0, 0, 1, 0, 0, 0, 1, 0]), w)``.
    """
    dims = dims_of(context, context.input(0)) or ()
    flat = [dim == 1 for dim in dims[2:]]
    pads = list(context.value("pads", [0] * (2 * len(flat))))
    if context.value("auto_pad", "NOTSET").startswith("SAME"):
        if not all(flat):
            raise Blocked("its padding follows from auto_pad", "export it with pads")
        pads = [1] * len(pads)  # Of three elements of a window one is there.
    moved = [size if is_flat else 0 for size, is_flat in zip(pads, flat * 2, strict=True)]
    sides = [0, 0, *moved[: len(flat)], 0, 0, *moved[len(flat) :]]
    # Below 11 the padding is an attribute.
    padded = context.at(min(context.op.opset, 10)).op.Pad(context.input(0), pads=sides)
    left = [size - other for size, other in zip(pads, moved, strict=True)]
    inputs = [padded, *context.node.input[1:]]
    context.replace(inputs=inputs, pads=left, auto_pad=None)
