"""Flatten: 9 allowed all dtypes, 11 a negative axis."""

from __future__ import annotations

import math

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import FLOATS
from onnxreduce_cli.emit.sizes import static_dims
from onnxreduce_cli.steps.registry import down


@down("Flatten", 9, "of what is no float, a Reshape", blocks="its dtype is not known")
def integers_to_reshape(context: Context) -> None:
    """``Flatten<axis=2>(x)`` of integers with shape [2, 3, 4, 5] becomes
    ``Reshape(x, [6, 20])``; a matrix with axis 1 stays as it is.
    """
    data = context.input(0)
    if context.need_elem_type(data, "it may only be a float") in FLOATS:
        return
    axis, dims = context.value("axis", 1), data.dims
    if dims is not None and len(dims) == 2 and axis == 1:
        context.replace("Identity", keep=())
        return
    # From opset 15 on Shape has start and end, and Reshape has allowzero.
    context = context.at(15)
    op = context.op
    products: list[str] = []
    for part, ends in ((slice(axis), {"end": axis}), (slice(axis, None), {"start": axis})):
        numbers = None if dims is None else static_dims(dims[part])
        if numbers is not None:
            products.append(context.array([math.prod(numbers)], "size"))
        else:
            sizes = op.Shape(data, **ends)
            products.append(op.ReduceProd(sizes, keepdims=1))
    shape = op.Concat(*products, axis=0)
    context.replace("Reshape", [data, shape], keep=(), allowzero=1)


@down("Flatten", 11, "negative axis made non-negative; of unknown rank, a Reshape")
def flatten_axis_from_front(context: Context) -> None:
    """``Flatten<axis=-1>(x)`` with x of rank 3 becomes ``Flatten<axis=2>(x)``, of unknown rank
    ``Reshape(x, shape)``.

    Its axis lies between dimensions, so there is one more than there are dimensions; the one at the
    end has no negative number: -1 is before the last dimension.
    """
    if all(axis >= 0 for axis in context.possible_values("axis", 1)):
        return
    axis = context.value("axis")
    rank = context.specialised_rank(context.input(0))
    if rank is None:
        context = context.at(shapes.OPSET)
        matrix, _ = shapes.as_matrix(context, context.input(0), axis)
        context.replace("Identity", [matrix], keep=())
        return
    if axis < -rank:
        raise Blocked(
            f"its axis {axis} is out of range for rank {rank}",
            f"mend the model: give it an axis from {-rank} to {rank}",
        )
    context.replace(axis=axis + rank)
