"""The Reduce family with axes that are only known at run time, where they are an attribute.

That is ReduceSum below 13 and ReduceLogSumExp, ReduceMax, ReduceMin and ReduceProd below 18; the
others of the family are computed from ReduceSum, in `reduce`.
"""

from __future__ import annotations

from typing import Any

from onnx import TensorProto, helper

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import SubgraphBuilder, branch, turn_into_loop_body
from onnxreduce_cli.emit.numbers import Term
from onnxreduce_cli.emit.shapes import int64_list
from onnxreduce_cli.model.values import tensor_type
from onnxreduce_cli.steps.reduction.emulated_reduce_rank import reduce_matrix_rows

#: Axes for each of which there are some nodes.
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
        reduce_matrix_rows(context, int64_list(context, context.input(1)), noop=noop)
        return
    if rank == 0:
        context.replace("Identity", [context.input(0)], keep=())
        return
    # A result that is rounded or truncated along one axis would be wrong along the next.
    exact = TensorProto.DOUBLE if context.node.op_type == "ReduceLogSumExp" else 0
    value, elem_type, working = widened(context, exact)
    like = tensor_type(working, None)
    all_axes = None
    if not noop:
        count = context.op.Size(context.input(1))
        all_axes = context.op.Equal(count, context.scalar(0, "zero"))
    conditions = _are_reduced(context, rank, all_axes)
    for axis in reversed(range(rank)):
        condition = conditions.at(axis).name
        op_type, inputs, graphs = (
            _as_if(context, condition, value, (axis,), working)
            if context.target_opset >= 11
            else _as_loop(context, condition, value, (axis,), working)
        )
        if axis or working != elem_type:
            value = context.op.emit(op_type, *inputs, like=like, **graphs)
        else:
            context.replace(op_type, inputs, keep=(), **graphs)
    if working != elem_type:
        context.replace("Cast", [value], keep=(), to=elem_type)


def _are_reduced(context: Context, rank: int, all_axes: str | None) -> Term:
    """Return bools of shape [rank] that say which axes are among the node's, counted from either
    end.

    Args:
        context: the node's.
        rank: the rank of the data, not 0.
        all_axes: a bool scalar that is true where all axes are reduced; None for never.
    """
    op = context.op
    axes = int64_list(context, context.input(1))
    column = unsqueezed(context, axes, [1])
    hits = [
        op.Equal(column, context.array(list(numbers), "axes"))
        for numbers in (range(rank), range(-rank, 0))
    ]
    counted = cast(context, op.Or(*hits), TensorProto.INT32)
    total = reduced(context, "ReduceSum", counted, [0], keep=False)
    are_among = cast(context, total, TensorProto.BOOL)
    return Term(
        context, are_among if all_axes is None else op.Or(are_among, all_axes), TensorProto.BOOL
    )


#: An operator with control flow: its type, inputs and graph attributes.
Conditional = tuple[str, list[str], dict[str, Any]]


def _as_if(
    context: Context, condition: str, value: str, axes: tuple[int, ...], elem_type: int
) -> Conditional:
    """Return ``If(condition)`` with a branch that reduces `value` and one that doesn't.

    Args:
        context: the node's.
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
