"""OneHot below 9."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.axes import non_negative_axes, unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.reversed_dims import with_reversed_dims
from onnxreduce_cli.emit.sizes import arange
from onnxreduce_cli.steps.registry import introduced


@introduced("OneHot", 9, "compared with every class, and the values gathered", blocks=NO_COUNTING)
def one_hot(context: Context) -> None:
    """``OneHot<axis=-1>(indices, depth, values)`` becomes
    ``Gather(values, Cast(Equal(Unsqueeze(indices), classes)))``.
    """
    op = context.op
    indices, depth, values = (context.input(index) for index in range(3))
    axis, rank, reverse = context.value("axis", -1), context.specialised_rank(indices), False
    if rank is not None:
        axis = non_negative_axes((axis,), rank + 1)[0]
        behind = rank - axis
    else:
        context = context.at(11)  # Before, Unsqueeze has no negative axes; its step goes on.
        op = context.op
        if reverse := axis >= 0:
            indices, axis = with_reversed_dims(context, indices), -1 - axis
        behind = -1 - axis
    known = context.constant(depth)
    if known is not None:
        classes = arange(context, int(known.reshape(-1)[0]))
    else:
        number = _as_int64(context, depth)
        if depth.rank != 1:
            number = op.Reshape(number, context.array([1], "one"))
        classes = arange(context, sizes(context, number))
    classes = unsqueezed(context, classes, list(range(1, behind + 1)))
    context.need_elem_type(indices, "they are compared with integers")
    numbers = unsqueezed(context, _as_int64(context, indices), [axis])
    hits = op.Equal(numbers, classes)
    inputs = [values, cast(context, hits, TensorProto.INT64)]
    if not reverse:
        context.replace("Gather", inputs, keep=(), axis=0)
        return
    result = context.replace("Gather", inputs, [context.fresh("reversed")], keep=(), axis=0)
    with_reversed_dims(context, result.output[0], context.node.output[0])


def _as_int64(context: Context, name: Value) -> Value:
    """Return a tensor in int64, itself where that is its dtype."""
    return name if name.elem_type == TensorProto.INT64 else cast(context, name, TensorProto.INT64)
