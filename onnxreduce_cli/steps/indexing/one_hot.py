"""OneHot: 11 lets indices and the axis count from the back."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.indices import from_front, never_negative
from onnxreduce_cli.emit.reversed_dims import replace_with_reversed_dims, reversed_axes
from onnxreduce_cli.steps.registry import down, up


@up(
    "OneHot", 11, "negative indices, which gave no hot element, made so large that they still don't"
)
def none_from_back(context: Context) -> None:
    """``OneHot(indices, depth, values)`` gets ``Where(indices < 0, depth, indices)``."""
    op = context.op
    indices = context.input(0)
    if never_negative(context, indices):
        return
    # Other dtypes are cast to int64 by the operator itself.
    whole = cast(context, indices, TensorProto.INT64)
    depth = _depth(context)
    below = op.Less(whole, context.scalar(0, "zero"))
    inputs = [op.Where(below, depth, whole), *context.node.input[1:]]
    context.replace(inputs=inputs)


@down("OneHot", 11, "indices and axis counted from the front")
def hot_from_front(context: Context) -> None:
    """``OneHot([-1], 3, values)`` becomes ``OneHot([2], 3, values)``.

    Indices that are out of range below become `depth`, which is so above: ONNX Runtime counts
    negative indices from the back at every opset. Where the rank is not known the axis is that of
    the indices with reversed dims.
    """
    indices, axis = context.input(0), context.value("axis", -1)
    rank = context.specialised_rank(indices) if axis < -1 else None
    if axis < -1 and rank is None:
        context = context.at(11)  # The step is taken again, with an axis of the reversed dims.
        replace_with_reversed_dims(context, axis=reversed_axes([axis])[0])
        return
    if not never_negative(context, indices):
        op, depth = context.op, _depth(context)
        whole = cast(context, indices, TensorProto.INT64)
        counted = from_front(context, whole, depth, TensorProto.INT64)
        out_of_range = op.Less(counted, context.scalar(0, "zero"))
        indices = op.Where(out_of_range, depth, counted)
    if axis < -1:
        assert rank is not None
        axis += rank + 1
    if indices != context.input(0) or axis != context.value("axis", -1):
        context.replace(inputs=[indices, *context.node.input[1:]], axis=axis)


def _depth(context: Context) -> Value:
    """Return the number of classes, an int64 of shape []; the input may have [1] and any dtype."""
    constant = context.constant(context.input(1))
    if constant is not None:
        return context.scalar(int(constant.reshape(-1)[0]), "depth")
    whole = cast(context, context.input(1), TensorProto.INT64)
    return context.op.Reshape(whole, context.array([], "scalar"))
