"""Col2Im below opset 18, with which it was introduced."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import Number, as_name, as_shape, is_small, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import arange, dims_of, list_elements, size_of, static_dims
from onnxreduce_cli.model.graph.values import MOST_DIMS, dtype_name, numpy_dtype
from onnxreduce_cli.steps.registry import introduced

#: For each dtype the one in which it is added up; a Cast back lets integers wrap.
_ADDED_IN: dict[int, int] = {
    **dict.fromkeys(HALVES, TensorProto.FLOAT),
    **dict.fromkeys(
        (TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8, TensorProto.UINT16),
        TensorProto.INT32,
    ),
    TensorProto.UINT32: TensorProto.INT64,
    **{
        dtype: dtype
        for dtype in (
            TensorProto.FLOAT,
            TensorProto.DOUBLE,
            TensorProto.INT32,
            TensorProto.INT64,
            TensorProto.UINT64,
        )
    },
}


@introduced(
    "Col2Im",
    18,
    "what overlaps at each element gathered and added up, axis by axis",
    blocks=f"the number of axes is not known, or no operator adds up the dtype, or {NO_COUNTING}",
)
def col2im(context: Context) -> None:
    """``Col2Im(x, [4], [2])`` with x of shape [n, c * 2, 3] becomes, of
    ``blocks = Pad(Reshape(x, [n, c, 2 * 3]), 0)`` with a zero behind the others,
    ``ReduceSum(Gather<axis=2>(blocks, [[0, 6], [1, 3], [2, 4], [5, 6]]), 3)``.
    """
    data: str
    data, image, block = (context.input(index) for index in range(3))
    axes = _spatial_axis_count(context)
    images, blocks = (list_elements(context, name, axes) for name in (image, block))
    strides = context.value("strides") or [1] * axes
    dilations = context.value("dilations") or [1] * axes
    pads = context.value("pads") or [0] * (2 * axes)
    counts, tables = [], []
    for at in range(axes):
        reach = blocks[at] * dilations[at] - (dilations[at] - 1)
        room = images[at] + (pads[at] + pads[at + axes]) - reach
        count = room // strides[at] + 1
        layout = (pads[at], dilations[at], strides[at])
        counts.append(count)
        tables.append(_sum_table(context, images[at], blocks[at], count, layout))
    elem_type = context.need_elem_type(data, "what overlaps is added up in it")
    apart = all(isinstance(table, str) or table.shape[1] == 1 for table in tables)
    working = _ADDED_IN.get(elem_type, elem_type if apart else 0)
    if not working:
        raise Blocked(
            f"it adds up elements of dtype {dtype_name(elem_type)}, which no operator can",
            "cast its input to a number",
        )
    if working != elem_type:
        data = cast(context, data, working)
    data = _block_by_block(context, data, blocks, counts, working)
    for at, table in enumerate(tables, 2):
        data = _added(context, data, table, at)
    if working != elem_type:
        context.replace("Cast", [data], keep=(), to=elem_type)
    else:
        context.replace("Identity", [data], keep=())


def _spatial_axis_count(context: Context) -> int:
    """Return the number of spatial axes.

    Raises:
        Blocked: it is not known.
    """
    for name in (context.input(1), context.input(2)):
        known, dims = context.elements(name), static_dims(dims_of(context, name))
        if known is not None or dims is not None:
            count = len(known) if known is not None else (dims or (0,))[0]
            if count > MOST_DIMS:
                reason = f"it has {count:,} spatial axes, and {MOST_DIMS:,} are the most"
                raise Blocked(
                    reason, "mend the model: give it image and block shapes of fewer axes"
                )
            return count
    for attribute in ("strides", "dilations", "pads"):
        per_axis = context.value(attribute)
        if per_axis:
            return len(per_axis) // (2 if attribute == "pads" else 1)
    raise Blocked(
        "the number of its spatial axes is not known",
        "state the shape of its image_shape in the model's value_info or inputs",
    )


def _block_by_block(
    context: Context, data: str, blocks: list[Number], counts: list[Number], elem_type: int
) -> Value:
    """Return data of shape [n, c * prod(blocks), prod(counts)] as [n, c, block * count + 1, ...].

    The last element on each spatial axis is a zero.

    Args:
        context: the Col2Im.
        data: the blocks, of dtype `elem_type`.
        blocks: the size of a block on each axis.
        counts: the number of blocks on each axis.
        elem_type: the dtype of the data.
    """
    op = context.op
    axes = len(blocks)
    size: Number = 1
    for block in blocks:
        size = size * block
    # No -1 stands for them: it could be anything where the batch is of size 0.
    channels = size_of(context, data, 1) // size
    batch = size_of(context, data, 0)
    apart = _reshaped(context, data, [batch, channels, *blocks, *counts])
    perm = [0, 1, *(at + part * axes for at in range(2, 2 + axes) for part in (0, 1))]
    turned = op.Transpose(apart, perm=perm)
    merged_dims = [block * count for block, count in zip(blocks, counts, strict=True)]
    merged = _reshaped(context, turned, [batch, channels, *merged_dims])
    zero = context.array(np.zeros((), numpy_dtype(elem_type)), "zero")
    pads = context.array([0] * (4 + axes) + [1] * axes, "pads")
    return op.Pad(merged, pads, zero)


def _reshaped(context: Context, data: str, dims: list[Number]) -> Value:
    """Return the data reshaped; some of the dims may only be known at run time."""
    return context.op.Reshape(data, as_shape(context, dims))


def _sum_table(
    context: Context, image: Number, block: Number, count: Number, layout: tuple[int, int, int]
) -> Array | str:
    """Return for each element along an axis the indices of those added up there: int64, [image, n].

    An element of a block has the index `its own in the block * count + the block's number`; the
    index ``block * count`` is that of a zero.

    Args:
        context: the Col2Im.
        image: the size of the image on the axis.
        block: the size of a block.
        count: the number of blocks.
        layout: the padding before the image, the dilation and the stride.

    Raises:
        Blocked: a size is known to be negative.
    """
    op = context.op
    begin, dilation, stride = layout
    numbers = [number for number in (image, block, count) if isinstance(number, int)]
    if any(isinstance(size, int) and size < 0 for size in (image, block)):
        raise Blocked(
            "a size of its image or of its blocks is negative",
            "mend the model: give it sizes of at least 0",
        )
    if len(numbers) == 3 and is_small(*numbers[:2]):
        return _known_table(numbers, layout)
    own = sizes(context, arange(context, block))
    element = sizes(context, arange(context, image)) + begin
    place = unsqueezed(context, element.name, [1])
    start = op.Sub(place, (own * dilation).name)
    end = as_name(context, count)
    number = (sizes(context, start) // stride).name
    is_there = op.And(
        op.Less(context.array([-1], "before"), start),
        op.Less(number, end),
    )
    if stride != 1:
        rest = op.Mod(start, context.array([stride], "stride"))
        is_there = op.And(is_there, op.Equal(rest, context.array([0], "zero")))
    row = op.Mul(own.name, end)
    found = op.Add(row, number)
    nothing = as_name(context, block * count)
    return op.Where(is_there, found, nothing)


def _known_table(numbers: list[int], layout: tuple[int, int, int]) -> Array:
    """Return the same as `_sum_table` of numbers known at conversion: image, block and count."""
    image, block, count = numbers
    begin, dilation, stride = layout
    own = np.arange(block, dtype=np.int64)
    start = np.arange(image, dtype=np.int64)[:, None] + begin - dilation * own
    number = start // stride
    is_there = (start >= 0) & (start % stride == 0) & (number < count)
    # The zeros come last, and more of them than one element has no other need not be there.
    indices = np.sort(np.where(is_there, own * count + number, block * count), axis=1)
    return indices[:, : max(1, int(is_there.sum(axis=1).max(initial=0)))]


def _added(context: Context, data: str, table: Array | str, axis: int) -> str:
    """Return the sums of elements along an axis by a table of their indices, [image, n]."""
    op = context.op
    if not isinstance(table, str) and table.shape[1] == 1:
        indices = context.array(table.reshape(-1), "places")
        return op.Gather(data, indices, axis=axis)
    name = table if isinstance(table, str) else context.array(table, "places")
    overlapping = op.Gather(data, name, axis=axis)
    return reduced(context, "ReduceSum", overlapping, [axis + 1], keep=False)
