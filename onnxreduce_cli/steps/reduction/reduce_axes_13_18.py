"""The axes of the Reduce family (ReduceSum, ReduceMean, ReduceMax, ...): 11, 13 and 18.

- 11 allowed negative axes.
- 13 made the axes of ReduceSum an input, 18 those of the nine others, with `noop_with_empty_axes`.

The dtypes that 12, 20 and 28 changed are in `reduce_dtypes`. Axes that are only known at run
time are in `emulated_reduce_axes`, data of unknown rank is in `emulated_reduce_rank`.
"""

from __future__ import annotations

from typing import Any

from onnx import AttributeProto, TensorProto

from onnxreduce_cli.emit.axes import attribute_to_input, known_axes, non_negative_axes
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast, replace_and_cast_back, widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.emit.refusals import LOOPS_FROM, NO_RANK
from onnxreduce_cli.emit.reversed_dims import replace_with_reversed_dims, reversed_axes
from onnxreduce_cli.steps.reduction import REDUCE, REDUCE_BUT_SUM
from onnxreduce_cli.steps.registry import down, up

#: Those whose function body has no other reduction than ReduceSum.
_BODIES_OF_SUMS = frozenset({"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"})

_AT_RUN_TIME = f"the axes are only known at run time and it leads below opset {LOOPS_FROM}"


# 13 and 18: axes as an attribute or an input


@up("ReduceSum", 13, "axes: attribute to input")
@up(REDUCE_BUT_SUM, 18, "axes: attribute to input")
def axes_to_input(context: Context) -> None:
    """``ReduceSum<axes=[1]>(x)`` becomes ``ReduceSum(x, axes)``."""
    attribute_to_input(context)


@down("ReduceSum", 13, "axes: input to attribute", blocks=_AT_RUN_TIME)
@down(REDUCE_BUT_SUM, 18, "axes: input to attribute", blocks=_AT_RUN_TIME)
def axes_to_attribute(context: Context) -> None:
    """``ReduceSum(x, axes)`` with constant axes becomes ``ReduceSum<axes=[1]>(x)``.

    The attribute ``noop_with_empty_axes`` is dropped: with axes it has no effect, and without any
    only the element-wise part of the operator is left.
    """
    axes = known_axes(context)
    noop = bool(context.value("noop_with_empty_axes", 0))
    if isinstance(axes, AttributeProto) and noop:
        # Whether the list is empty decides what the node does, so its value is needed.
        array = context.constant(context.input(1))
        axes = None if array is None else tuple(array.tolist())
    if axes is None:
        _axes_at_run_time(context, noop)
    elif noop and axes == ():
        elementwise_part(context)
    elif len(context.node.input) > 1 or context.attribute("noop_with_empty_axes") is not None:
        context.replace(
            inputs=[context.input(0)], drop=("noop_with_empty_axes",), axes=axes or None
        )


def elementwise_part(context: Context, given: str = "") -> None:
    """``ReduceSumSquare(x)`` over no axes becomes ``Mul(x, x)``, ``ReduceSum(x)`` ``Identity(x)``.

    It is applied to the node's data, or to what is given in their place.

    Where the target has no such operator for integers, the reduction itself does it, over a new
    first dimension of 1.
    """
    data = given or context.input(0)
    part = {
        "ReduceL1": "Abs",
        "ReduceL2": "Abs",
        "ReduceSumSquare": "Mul",
        "ReduceLogSum": "Log",
    }.get(context.node.op_type, "Identity")
    elem_type = None if part == "Identity" else context.input(0).elem_type
    integer = elem_type is None or elem_type in INTEGERS
    if integer and (part == "Log" or (part != "Identity" and context.target_opset < 6)):
        # Log takes floats only, and so did Abs and Mul before opset 6.
        context.replace(
            inputs=[context.op.Unsqueeze(data, context.array([0], "axes"))],
            keep=(),
            keepdims=0,
            axes=[0],
        )
        return
    inputs = [data, data] if part == "Mul" else [data]
    context.replace(part, inputs, keep=())


def _axes_at_run_time(context: Context, noop: bool) -> None:
    """Replace a reduction whose axes are only known at run time.

    From 13 on ReduceSum takes its axes as an input, and five others are computed from it. The
    rest, and ReduceSum below 13, become one conditional reduction for each axis.

    Args:
        context: the node's.
        noop: whether empty axes mean none; else they mean all.

    Raises:
        Blocked: the conversion leads below opset 7.
    """
    op_type = context.node.op_type
    if context.target_opset < LOOPS_FROM:
        raise Blocked(
            f"its axes {context.input(1)!r} are only known at run time, and before opset "
            f"{context.op.opset + 1} they are an attribute",
            f"make them constant, or choose opset {LOOPS_FROM} or later",
        )
    if op_type in _BODIES_OF_SUMS:
        from onnxreduce_cli.steps.reduction.function_bodies import BODIES

        BODIES[op_type](context)
    elif op_type == "ReduceMean":
        _mean_from_sum(context)
    else:
        from onnxreduce_cli.steps.reduction.emulated_reduce_axes import reduce_axis_by_axis

        reduce_axis_by_axis(context, noop)


def _mean_from_sum(context: Context) -> None:
    """``ReduceMean(x, axes)`` becomes ``Div(ReduceSum(x, axes), Div(Size(x), Size(sum)))``.

    The count is computed in double, which is exact for it and gives no error where both sizes are
    zero. Integers are summed in 64 bits and divided with truncation, as in the operator.
    """
    op = context.op
    unsigned = context.input(0).elem_type == TensorProto.UINT64
    data, elem_type, working = widened(
        context, TensorProto.UINT64 if unsigned else TensorProto.INT64
    )
    options: dict[str, Any] = {
        key: context.attribute(key) for key in ("keepdims", "noop_with_empty_axes")
    }
    total = op.ReduceSum(data, context.input(1), **options)
    sizes = [cast(context, op.Size(name), TensorProto.DOUBLE) for name in (data, total)]
    count = op.Div(*sizes)
    if working in INTEGERS:
        # The mean of nothing is undefined, but dividing by zero may end the process.
        bounds = [context.scalar(n, "bound", TensorProto.DOUBLE) for n in (1.0, 2.0**62)]
        count = op.Clip(count, *bounds)
    count = cast(context, count, working)
    replace_and_cast_back(context, "Div", [total, count], elem_type, working)


# 11: negative axes


@down(
    REDUCE,
    11,
    "negative axes made non-negative; of unknown rank, those of the transposed tensor",
    blocks=f"axes are counted from both ends, and {NO_RANK}",
)
def negative_axes(context: Context) -> None:
    """``ReduceMean<axes=[-1]>(x)`` with x of rank 3 becomes ``ReduceMean<axes=[2]>(x)``, of
    unknown rank ``Transpose(ReduceMean<axes=[0]>(Transpose(x)))``.

    Where the rank is unknown and only some axes are negative, they all become the columns of a
    matrix.
    """
    possible = context.possible_values("axes", ())
    if all(axis >= 0 for axes in possible for axis in axes):
        return
    axes, rank = context.value("axes"), context.specialised_rank(context.input(0))
    if rank is not None:
        context.replace(axes=non_negative_axes(axes, rank))
    elif max(axes) < 0:
        replace_with_reversed_dims(context, axes=reversed_axes(axes))
    else:
        from onnxreduce_cli.steps.reduction.emulated_reduce_rank import reduce_matrix_rows

        reduce_matrix_rows(context, context.array(list(axes), "axes"), noop=False)
