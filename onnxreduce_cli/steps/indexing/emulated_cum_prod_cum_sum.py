"""CumProd below opset 26 and CumSum below 11, each as a Scan."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, numpy_helper

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import non_negative_axes
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopValue, SubgraphBuilder, scan_body
from onnxreduce_cli.emit.numbers import sizes
from onnxreduce_cli.emit.refusals import NO_LOOP, need_loops
from onnxreduce_cli.emit.sizes import END, need_dims
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.registry import introduced


@introduced("CumProd", 26, "a Scan that multiplies", blocks=NO_LOOP)
def cum_prod(context: Context) -> None:
    """``CumProd(x, axis)`` becomes ``Scan<num_scan_inputs=1>(ones, x)`` with a body that multiplies
    the product so far by a slice of x.
    """
    need_loops(context)
    _running(context, "Mul", 1.0)


@introduced("CumSum", 11, "a Scan that adds", blocks=NO_LOOP)
def cum_sum(context: Context) -> None:
    """``CumSum(x, axis)`` becomes ``Scan<num_scan_inputs=1>(zeros, x)`` with a body that adds a
    slice of x to the sum so far.
    """
    need_loops(context)
    # From -0 on, so that a sum of nothing but -0 stays one; what is exclusive begins with 0.
    _running(context, "Add", 0.0 if context.value("exclusive", 0) else -0.0)


def _running(context: Context, op_type: str, first: float) -> None:
    """Replace the node by a Scan that combines the total so far with the next slice by `op_type`.

    The total begins with `first`, in the data's dtype and a slice's shape. Where the axis or the
    rank is only known at run time the data is reshaped to [before, length, after] first.

    ONNX Runtime's process ends over a Scan of no slices or of empty ones. So no dimension is left
    that may be 0: one more slice is put behind the others of each, and taken away from the result.
    """
    data = context.input(0)
    rank = context.rank(data)
    axis = np.zeros(()) if rank == 1 else context.constant(context.input(1))
    if axis is None or rank is None:
        context.require_specialised("what is known of its axis")
        _around_axis(context, None if axis is None else int(axis.reshape(-1)[0]))
        return
    context.need_elem_type(data, "the sums begin with a zero of it")
    along = non_negative_axes((int(axis.reshape(-1)[0]),), rank)[0]
    reverse = context.value("reverse", 0)
    dims = need_dims(context, data, "its dimensions are looked at")
    if 0 in dims:
        context.replace("Identity", [data], keep=())
        return
    context = context.at(max(context.op.opset, 13))
    op = context.op
    may_be_empty = [at for at, dim in enumerate(dims) if not isinstance(dim, int)]
    output = context.node.output[0]
    if may_be_empty:
        data = _with_one_more(context, data, may_be_empty, along if reverse else None)
        output = context.fresh("one_more")
    _scan(context, op_type, first, data, along, output)
    if may_be_empty:
        starts = [int(reverse and at == along) for at in may_be_empty]
        ends = [END if start else -1 for start in starts]
        bounds = [context.array(part, "bounds") for part in (starts, ends, may_be_empty)]
        op.Slice(output, *bounds, outputs=[context.node.output[0]])


def _scan(
    context: Context, op_type: str, first: float, data: Value, along: int, output: str
) -> None:
    """Emit the Scan of the data, of known rank, along an axis; see `_running`."""
    op = context.op
    rank = data.rank or 0
    elem_type = context.need_elem_type(data, "the sums begin with a zero of it")
    reverse = context.value("reverse", 0)
    shape = op.Shape(data)
    others = context.array([index for index in range(rank) if index != along], "others")
    slice_shape = op.Gather(shape, others, axis=0)
    start = numpy_helper.from_array(np.array([first]).astype(numpy_dtype(elem_type)))
    initial = op.ConstantOfShape(slice_shape, value=start)
    body = _accumulation(context, op_type, elem_type, rank - 1)
    direction = [1 if reverse else 0]
    context.description = "a Scan along its axis"
    context.replace(
        "Scan",
        [initial, data],
        [context.fresh("total"), output],
        keep=(),
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[along],
        scan_input_directions=direction,
        scan_output_axes=[along],
        scan_output_directions=direction,
    )


def _with_one_more(context: Context, data: Value, axes: list[int], first: int | None) -> Value:
    """Return the data, of known rank, with a slice of zeros behind the last along each of `axes`.

    Along the axis `first` it is before the first one: a sum from the back comes to it last.
    """
    rank = data.rank or 0
    pads = [0] * (2 * rank)
    for axis in axes:
        pads[axis if axis == first else rank + axis] = 1
    return context.op.Pad(data, context.array(pads, "pads"))


def _accumulation(context: Context, op_type: str, elem_type: int, rank: int) -> GraphProto:
    """Return the body of the Scan: of the total so far and a slice, the next total and the output.

    Args:
        context: the node; with `exclusive` the output is the total so far, else the next.
        op_type: the operator that combines the two, Add or Mul.
        elem_type: the dtype of all values.
        rank: the rank of a slice.
    """
    dims = (None,) * rank

    def write(body: SubgraphBuilder, values: list[Value]) -> list[LoopValue]:
        before, _ = values
        after = body.emit(op_type, *values)
        given = before if context.value("exclusive", 0) else after
        return [LoopValue(name, elem_type, dims) for name in (after, given)]

    inputs = [LoopValue(name, elem_type, dims) for name in ("total", "slice")]
    return scan_body(context, inputs, write)


def _around_axis(context: Context, axis: int | None) -> None:
    """``Reshape(CumSum(Reshape(x, [before, length, after]), 1), Shape(x))``."""
    # The step is taken again, with a known axis.
    context = context.at(max(context.source_opset, shapes.OPSET))
    data = context.input(0)
    if axis is None:
        axes = shapes.int64_list(context, context.input(1))
        rank = sizes(context, shapes.rank_at_run_time(context, data))
        from_front = shapes.axes_from_front(context, axes, rank)
        view = shapes.around(context, data, sizes(context, from_front))
    else:
        view = shapes.around(context, data, axis)
    inputs = [view.name, context.scalar(1, "axis")]
    result = context.replace(inputs=inputs, outputs=[context.fresh("around")])
    shapes.reshaped_like(context, result.output[0], data, view.shape, context.node.output[0])
