"""PRelu: 7 introduced NumPy's broadcasting of the slope, 9 integers."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.broadcast import rank_of, trailing_ones
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.model.graph.values import Dims
from onnxreduce_cli.steps.registry import down, up

_UNSIGNED = frozenset({TensorProto.UINT32, TensorProto.UINT64})


@up("PRelu", 7, "slope: aligned with the channels")
def slope_aligned(context: Context) -> None:
    """``PRelu(x, slope)`` with slopes [C], x [N, C, H, W], becomes ``PRelu(x, Unsqueeze(slope))``.

    The slope then has the shape [C, 1, 1]. Where a rank is not known that is done at run time.
    """
    op = context.op
    data, slope = context.input(0), context.input(1)
    dims, rank = dims_of(context, slope), context.specialised_rank(data)
    if dims is not None and all(dim == 1 for dim in dims):
        return
    if rank is None or dims is None:
        two = context.array(np.array([2], np.float32), "two")
        count = op.Sub(rank_of(context, data, TensorProto.FLOAT), two)
        trailing = cast(context, op.Relu(count), TensorProto.INT64)
        slopes = op.Reshape(slope, context.array([-1], "list"))
        context.replace(inputs=[data, trailing_ones(context, slopes, trailing)])
    elif len(dims) == 1 and rank > 2:
        axes = list(range(1, rank - 1))
        context.replace(inputs=[data, op.Unsqueeze(slope, axes=axes)])


@down(
    "PRelu",
    7,
    "slope: one element, or one for each channel, which may be every element",
    blocks="a rank is not known",
)
def slope_for_channels(context: Context) -> None:
    """``PRelu(x, slope)`` with slopes [C, 1, 1] becomes ``PRelu(x, Reshape(slope, [-1]))``.

    Any other slope is repeated to the shape of x, whose elements are all channels of one then:
    ``Reshape(PRelu(Flatten<axis=0>(x), Reshape(Expand(slope, Shape(x)), [-1])), Shape(x))``.
    """
    op = context.op
    data, slope = context.input(0), context.input(1)
    dims, rank = dims_of(context, slope), context.specialised_rank(data)
    if dims is not None and (
        all(dim == 1 for dim in dims) or (rank is not None and _is_for_channels(dims, rank))
    ):
        if len(dims) > 1:
            slopes = op.Reshape(slope, context.array([-1], "list"))
            context.replace(inputs=[data, slopes])
        return
    context = context.at(14)  # Reshape has allowzero there; its own step goes on.
    op = context.op
    shape = op.Shape(data)
    wide = op.Expand(slope, shape)
    slopes = op.Reshape(wide, context.array([-1], "list"))
    flat = op.Flatten(data, axis=0)
    output = context.node.output[0]
    result = context.replace(inputs=[flat, slopes], outputs=[context.fresh("flat")]).output[0]
    op.Reshape(result, shape, outputs=[output], allowzero=1)


def _is_for_channels(dims: Dims, rank: int) -> bool:
    """Return whether slopes of shape `dims` are one for each channel of data of rank `rank`."""
    channel = 1 - (rank - len(dims))
    return all(dim == 1 or index == channel for index, dim in enumerate(dims))


@down("PRelu", 9, "of integers: Where(x < 0, x * slope, x)")
def slope_of_integers(context: Context) -> None:
    """``PRelu(x, slope)`` of int32 becomes ``Where(Less(x, 0), Mul(x, slope), x)``; of unsigned
    integers it is x.
    """
    data, elem_type = context.input(0), context.elem_type(context.input(0))
    if elem_type not in INTEGERS:
        return
    assert elem_type is not None
    if elem_type in _UNSIGNED:
        context.replace("Identity", [data])
        return
    context = context.at(9)  # It introduced Where.
    op = context.op
    negative = op.Less(data, context.scalar(0, "zero", elem_type))
    scaled = op.Mul(data, context.input(1))
    context.replace("Where", [negative, scaled, data])
