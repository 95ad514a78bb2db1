"""ReduceSum 13 to 12 and back, and 18 to 17 of the nine others: axes as an input or an attribute.

13 made the axes of ReduceSum an input, 18 those of the others, with `noop_with_empty_axes`. Axes
that are only known at run time become one conditional reduction for each axis; data of unknown rank
is in `emulated_reduce_rank`. Negative axes (11) are in `reduce_negative_axes_11`, dtypes (12, 20
and 28) in `reduce_dtypes_12_20_28`.
"""

from __future__ import annotations

from typing import Any

from onnx import AttributeProto, TensorProto, helper

from onnxreduce_cli.emit.axes import (
    attribute_to_input,
    known_axes,
    reduced,
    unsqueezed,
)
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, replace_and_cast_back, widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.emit.loops import SubgraphBuilder, branch, turn_into_loop_body
from onnxreduce_cli.emit.numbers import Term
from onnxreduce_cli.emit.refusals import LOOPS_FROM, need_loops
from onnxreduce_cli.emit.shapes import int64_list
from onnxreduce_cli.model.graph.values import tensor_type
from onnxreduce_cli.schemas import REDUCE_BUT_SUM
from onnxreduce_cli.steps.registry import down, up

#: The operators whose function body has no other reduction than ReduceSum.
_BODIES_OF_SUMS = frozenset({"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"})

_AT_RUN_TIME = f"the axes are only known at run time and it leads below opset {LOOPS_FROM}"


@up("ReduceSum", 13, "axes: attribute to input")
@up(REDUCE_BUT_SUM, 18, "axes: attribute to input")
def reduce_axes_to_input(context: Context) -> None:
    """``ReduceSum<axes=[1]>(x)`` becomes ``ReduceSum(x, axes)``."""
    attribute_to_input(context)


@down("ReduceSum", 13, "axes: input to attribute", blocks=_AT_RUN_TIME)
@down(REDUCE_BUT_SUM, 18, "axes: input to attribute", blocks=_AT_RUN_TIME)
def reduce_axes_to_attribute(context: Context) -> None:
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

    Its operand is the data of the node, or else `given`.

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
    if integer and (part == "Log" or (part != "Identity" and not context.reaches(6))):
        # Log takes floats only, and so did Abs and Mul before opset 6.
        context.replace(
            inputs=[unsqueezed(context, data, [0])],
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
        context: the context of the node.
        noop: whether empty axes mean none; else they mean all.

    Raises:
        Blocked: the conversion leads below opset 7.
    """
    op_type = context.node.op_type
    if not context.reaches(LOOPS_FROM):
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


#: The most axes that get nodes of their own.
MOST_AXES = 100


def reduce_axis_by_axis(context: Context, noop: bool) -> None:
    """``ReduceMax(x, axes)`` becomes one ``If(axis is among axes) ReduceMax<axes=[axis]>(x)`` for
    each axis; before opset 11 one ``Loop``.

    It goes from the last axis to the first, so that one that is reduced and dropped moves no later
    one: `keepdims` holds for each reduction by itself and nothing is squeezed at the end. Before
    opset 11 the branches of an If must give one shape, which these don't; what a Loop carries may
    change its shape, so there it is a Loop of one iteration or none.

    Data of unknown rank, or of more than `MOST_AXES`, is reduced as a matrix instead; see
    `emulated_reduce_rank`.

    Args:
        context: the node's, with axes as its second input.
        noop: whether empty axes mean none; else they mean all.
    """
    rank = context.specialised_rank(context.input(0))
    if rank is None or rank > MOST_AXES:
        from onnxreduce_cli.steps.reduction.emulated_reduce_rank import reduce_matrix_rows

        reduce_matrix_rows(context, int64_list(context, context.input(1)), noop=noop)
        return
    if rank == 0:
        context.replace("Identity", [context.input(0)], keep=())
        return
    _need_conditionals(context)
    # A result that is rounded or truncated along one axis would be wrong along the next.
    exact = TensorProto.DOUBLE if context.node.op_type == "ReduceLogSumExp" else 0
    value, elem_type, working = widened(context, exact)
    like = tensor_type(working, None)
    conditions = _are_reduced(context, rank, noop)
    for axis in reversed(range(rank)):
        condition = conditions.at(axis).name
        op_type, inputs, graphs = (
            _as_if(context, condition, value, (axis,), working)
            if context.reaches(11)
            else _as_loop(context, condition, value, (axis,), working)
        )
        if axis or working != elem_type:
            value = context.op.emit(op_type, *inputs, like=like, **graphs)
        else:
            context.replace(op_type, inputs, keep=(), **graphs)
    if working != elem_type:
        context.replace("Cast", [value], keep=(), to=elem_type)


def _need_conditionals(context: Context) -> None:
    """Raise `Blocked` where the node stands for an operator that gains no control flow."""
    since = context.op.opset + 1
    need_loops(
        context,
        f"its axes {context.input(1)!r} are only known at run time, and before opset {since} they "
        "are an attribute",
        since,
        ", or make them constant",
    )


def _are_reduced(context: Context, rank: int, noop: bool) -> Term:
    """Return bools of shape [rank] that say which axes are among the node's, counted from either
    end.

    Args:
        context: the context of the node.
        rank: the rank of the data, not 0.
        noop: whether empty axes mean none; else they mean all.
    """
    op = context.op
    all_axes = ""
    if not noop:
        all_axes = op.Equal(op.Size(context.input(1)), context.scalar(0, "zero"))
    axes = int64_list(context, context.input(1))
    column = unsqueezed(context, axes, [1])
    hits = [
        op.Equal(column, context.array(list(numbers), "axes"))
        for numbers in (range(rank), range(-rank, 0))
    ]
    counted = cast(context, op.Or(*hits), TensorProto.INT32)
    total = reduced(context, "ReduceSum", counted, [0], keep=False)
    are_among = cast(context, total, TensorProto.BOOL)
    return Term(context, op.Or(are_among, all_axes) if all_axes else are_among, TensorProto.BOOL)


#: An operator with control flow: its type, inputs and graph attributes.
Conditional = tuple[str, list[str], dict[str, Any]]


def _as_if(
    context: Context, condition: str, value: str, axes: tuple[int, ...], elem_type: int
) -> Conditional:
    """Return ``If(condition)`` with a branch that reduces `value` and one that doesn't.

    Args:
        context: the context of the node.
        condition: a bool scalar.
        value: what may be reduced.
        axes: along which axes, counted from the front.
        elem_type: the dtype of `value`, and of what the If gives.
    """
    branches = {
        "then_branch": branch(
            context, lambda nodes: _reduction(context, nodes, value, axes), elem_type
        ),
        "else_branch": branch(context, lambda nodes: nodes.Identity(value), elem_type),
    }
    return "If", [condition], branches


def _as_loop(
    context: Context, condition: str, value: str, axes: tuple[int, ...], elem_type: int
) -> Conditional:
    """Return ``Loop(count, , value)`` with a body that reduces, and a count of 1 or 0.

    Its arguments are those of `_as_if`.
    """
    count = cast(context, condition, TensorProto.INT64)
    carried = context.fresh("carried")
    body = branch(context, lambda nodes: _reduction(context, nodes, carried, axes), elem_type)
    of_any_rank = helper.make_tensor_value_info(carried, elem_type, None)
    turn_into_loop_body(context, body, [of_any_rank])
    return "Loop", [count, "", value], {"body": body}


def _reduction(
    context: Context, nodes: SubgraphBuilder, value: str, axes: tuple[int, ...]
) -> Value:
    """Emit the same operator into a graph, with its `keepdims`, over the given axes.

    `value` and the result are of one dtype.
    """
    keepdims = context.attribute("keepdims")
    return nodes.emit(context.node.op_type, value, keepdims=keepdims, axes=axes)
