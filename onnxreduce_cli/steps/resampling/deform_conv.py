"""DeformConv below opset 19, with which it was introduced."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.numbers import Number, Term, as_shape, scalar, term
from onnxreduce_cli.emit.refusals import NO_COUNTING, need_few
from onnxreduce_cli.emit.sizes import need_dims, range_of, size_of, static_dims
from onnxreduce_cli.model.graph.values import tensor_type
from onnxreduce_cli.steps.registry import introduced
from onnxreduce_cli.steps.resampling.interpolation import (
    LONGEST,
    Tap,
    finite_or,
    gathered,
    linear,
    margin,
    near,
    with_margins,
)


@introduced(
    "DeformConv",
    19,
    "the elements that each kernel lies on gathered, and multiplied by MatMul",
    blocks=f"the kernel's shape, the rank or the dtype is not known, or {NO_COUNTING}",
)
def deform_conv(context: Context) -> None:
    """``DeformConv(x, w, offset, b, mask)`` becomes
    ``MatMul(Reshape(w), Reshape(Gather(x, place) * mask)) + b``, with the sum of the four elements
    around each place, weighted, in place of one Gather.

    A place is where the kernel's element lies, plus its offset.
    """
    given = context.need_elem_type(context.input(0), "places are computed in that dtype")
    working = int(TensorProto.FLOAT) if given in HALVES else given
    context = context.at(13)  # Its operators are read with their inputs of then.
    op = context.op
    data, weights, offset, bias, mask = (
        cast(context, name, working) if name and working != given else name
        for name in (context.input(index) for index in range(5))
    )
    kernel = _kernel(context)
    spatial, groups = len(kernel), context.value("group", 1)
    after = [size_of(context, offset, axis) for axis in range(2, spatial + 2)]
    taken = _kernel_elements(context, data, offset, kernel, working)
    if mask:
        shared = context.value("offset_group", 1)
        dims = [0, shared, prod(kernel), *after, 1]
        taken = op.Mul(taken, _reshaped(context, mask, dims, working))

    # [N, offset groups, kernel, places..., channels] to [N, groups, channels * kernel, places].
    perm = [0, 1, spatial + 3, 2, *range(3, spatial + 3)]
    transposed = op.Transpose(taken, perm=perm)
    width = size_of(context, weights, 1) * prod(kernel)
    columns = _reshaped(context, transposed, [0, groups, width, -1], working)
    matrices = _reshaped(context, weights, [groups, -1, width], working)
    product = op.MatMul(matrices, columns)
    dims = [0, size_of(context, weights, 0), *after]
    result = _reshaped(context, product, dims, working)
    if bias:
        result = op.Add(result, _reshaped(context, bias, [-1, *[1] * spatial], working))
    if working == given:
        context.replace("Identity", [result], keep=())
    else:
        context.replace("Cast", [result], keep=(), to=given)


def _kernel_elements(
    context: Context, data: str, offset: str, kernel: tuple[int, ...], working: int
) -> str:
    """Return the interpolated elements under each element of the kernel, at each of its places.

    Args:
        context: the node's, bound to opset 13.
        data: the input, [N, C, lengths...].
        offset: the offsets, [N, offset groups * kernel elements * spatial axes, places...].
        kernel: the kernel's shape.
        working: the dtype of both.

    Returns:
        a tensor of shape [N, offset groups, kernel elements, places..., C / offset groups].
    """
    op = context.op
    spatial, shared = len(kernel), context.value("offset_group", 1)
    axes = range(2, spatial + 2)
    batch, *lengths = (scalar(context, size_of(context, data, axis)) for axis in (0, *axes))
    after = [size_of(context, offset, axis) for axis in axes]

    # One image for each group of channels that have their offsets in common, zeros around it.
    count = margin("linear")
    around = [size_of(context, data, axis) + 2 * count for axis in axes]
    channels = size_of(context, data, 1) // shared
    padded = with_margins(context, data, count)
    images = _reshaped(context, padded, [0, shared, channels, *around], working)
    channels_last = op.Transpose(images, perm=[0, 1, *range(3, spatial + 3), 2])
    flat = _reshaped(context, channels_last, [-1, channels], working)

    of_each = _reshaped(context, offset, [0, shared, prod(kernel), spatial, *after], working)
    # An offset that is no finite number leads outside, where all is 0.
    moved = finite_or(Term(context, of_each, working), -LONGEST)
    first = range_of(batch * shared, TensorProto.INT64).shaped(-1, shared, *[1] * (spatial + 1))
    along = []
    for axis, length in enumerate(lengths):
        place = _grid(context, axis, kernel, after, working) + moved.at(axis, axis=3)
        along.append(_linear_taps(place, length.cast(working)))
    return gathered(flat, first, [scalar(context, size) for size in around], along)


def _reshaped(context: Context, name: str, dims: list[Number], elem_type: int) -> Value:
    """Return a tensor of dtype `elem_type` in a shape that may only be known at run time; -1 and 0
    are as for Reshape.
    """
    known = tuple(dim if isinstance(dim, int) and dim > 0 else None for dim in dims)
    return context.op.Reshape(name, as_shape(context, dims), like=tensor_type(elem_type, known))


def _kernel(context: Context) -> tuple[int, ...]:
    """Return the kernel's shape.

    Raises:
        Blocked: it is not known, or too large to write out.
    """
    known = context.value("kernel_shape") or static_dims(
        need_dims(context, context.input(1), "it gives the kernel's shape")[2:]
    )
    if known is None:
        raise Blocked(
            f"the shape of its weights {context.input(1)!r}, and so of its kernel, is not known",
            "state kernel_shape, or the shape of the weights in the model's value_info",
        )
    need_few(prod(known), "its kernel has", "choose a smaller kernel_shape")
    return tuple(known)


def _grid(
    context: Context, axis: int, kernel: tuple[int, ...], after: list[Number], working: int
) -> Term:
    """Return the coordinates on one axis of the kernel's elements at each of its places, of dtype
    `working`: [kernel elements, places...].
    """
    spatial = len(kernel)
    stride: int = (context.value("strides") or [1] * spatial)[axis]
    dilation: int = (context.value("dilations") or [1] * spatial)[axis]
    before: int = (context.value("pads") or [0] * spatial)[axis]
    numbers = np.indices(kernel)[axis].reshape(-1, *[1] * spatial) * dilation - before
    places = range_of(scalar(context, after[axis]), working) * stride
    places = places.shaped(-1, *[1] * (spatial - 1 - axis))
    return term(context, numbers, working) + places


def _linear_taps(place: Term, length: Term) -> list[Tap]:
    """Return the elements on either side of each coordinate, of the coordinates' shape."""
    before = margin("linear")
    return [
        Tap((whole + before).cast(TensorProto.INT64), weight)
        for whole, weight in linear(near(place, length, "linear"))
    ]
