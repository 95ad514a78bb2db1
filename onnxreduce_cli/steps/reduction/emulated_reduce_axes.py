"""Reductions whose axes are only known at run time, before axes were an input."""

from __future__ import annotations

from typing import Any

from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import INTEGERS, cast, finish, widened
from onnxreduce_cli.emit.context import Blocked, Context
from onnxreduce_cli.emit.loops import of_one_round
from onnxreduce_cli.emit.numbers import LOOPS_FROM
from onnxreduce_cli.emit.shapes import int64_list
from onnxreduce_cli.model.values import tensor_type
from onnxreduce_cli.steps.reduction.function_bodies import BODIES
from onnxreduce_cli.steps.reduction.emulated_reduce_rank import reduce_rows


def reduce_at_run_time(context: Context, noop: bool) -> None:
    """Replace a reduction with axes as an input by one that needs no such version of it.

    From 13 on ReduceSum takes its axes as an input, and five others can be had from it. The rest,
    and ReduceSum below 13, become one conditional reduction for each axis.

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
        BODIES[op_type](context)
    elif op_type == "ReduceMean":
        _mean(context)
    else:
        _conditional_chain(context, noop)


#: Operators whose body has no other reduction than ReduceSum.
_BODIES_OF_SUMS = frozenset({"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"})


def _mean(context: Context) -> None:
    """``Div(ReduceSum(x, axes), Cast(Div(Size(x), Size(sum))))``.

    The count is computed in double, which is exact for it and gives no error where both sizes are
    zero. Integers are summed in 64 bits and divided with truncation, as in the operator.
    """
    op = context.op
    unsigned = context.elem_type(context.input(0)) == TensorProto.UINT64
    data, given, working = widened(context, TensorProto.UINT64 if unsigned else TensorProto.INT64)
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
    finish(context, "Div", [total, count], given, working)


# One conditional reduction for each axis


def _conditional_chain(context: Context, noop: bool) -> None:
    """One ``If`` for each axis, from the last to the first; before opset 11 one ``Loop``.

    From the last to the first, so that an axis that is reduced and dropped moves no later one:
    `keepdims` holds for each reduction by itself and nothing needs to be squeezed at the end.
    Before opset 11 the branches of an If must give one shape, which these don't; what a Loop
    carries may change its shape, so there it is a Loop of one round or none.

    Of unknown rank there is one reduction of the columns of a matrix.
    """
    rank = context.settled_rank(context.input(0))
    if rank is None:
        reduce_rows(context, int64_list(context, context.input(1)), noop=noop)
        return
    if rank == 0:
        context.replace("Identity", [context.input(0)], keep=())
        return
    # What one reduction rounds or truncates, the next one would start from.
    exact = TensorProto.DOUBLE if context.node.op_type == "ReduceLogSumExp" else 0
    value, given, working = widened(context, exact)
    like = tensor_type(working, None)
    everything = None if noop else _no_axes(context)
    for axis in reversed(range(rank)):
        condition = _is_chosen(context, axis, rank, everything)
        op_type, inputs, graphs = (
            _as_if(context, condition, value, (axis,), working)
            if context.target_opset >= 11
            else _as_loop(context, condition, value, (axis,), working)
        )
        if axis or working != given:
            value = context.op.emit(op_type, *inputs, like=like, **graphs)
        else:
            context.replace(op_type, inputs, keep=(), **graphs)
    if working != given:
        context.replace("Cast", [value], keep=(), to=given)


def _no_axes(context: Context) -> str | None:
    """A bool scalar: whether the axes are empty; None where they are known not to be."""
    op = context.op
    axes = context.input(1)
    known = context.type(axes)
    dims = known.dims if known is not None else None
    if dims is not None and len(dims) == 1 and isinstance(dims[0], int) and dims[0] > 0:
        return None
    count = op.Size(axes)
    return op.Equal(count, context.scalar(0, "zero"))


def _is_chosen(context: Context, axis: int, rank: int, everything: str | None) -> Value:
    """A bool scalar: whether an axis is among the axes, counted from either end."""
    op = context.op
    axes = context.input(1)
    hits = [op.Equal(axes, context.scalar(number, "axis")) for number in (axis, axis - rank)]
    either = cast(context, op.Or(*hits), TensorProto.INT32)
    total = op.ReduceSum(either, keepdims=0)
    chosen = cast(context, total, TensorProto.BOOL)
    return chosen if everything is None else op.Or(chosen, everything)


#: Operator, inputs, graph attributes.
Conditional = tuple[str, list[str], dict[str, Any]]


def _as_if(
    context: Context, condition: str, value: str, axes: tuple[int, ...], elem_type: int
) -> Conditional:
    """``If(condition)`` with a branch that reduces and one that doesn't."""
    reduced, kept = context.fresh("reduced"), context.fresh("kept")
    branches = {
        "then_branch": GraphProto(name=reduced, node=[_reduction(context, value, reduced, axes)]),
        "else_branch": GraphProto(name=kept, node=[_identity(value, kept)]),
    }
    for graph in branches.values():
        graph.output.append(_value_info(graph.name, elem_type))
    return "If", [condition], branches


def _as_loop(
    context: Context, condition: str, value: str, axes: tuple[int, ...], elem_type: int
) -> Conditional:
    """``Loop(count, , value)`` with a body that reduces, and a count of 1 or 0."""
    count = cast(context, condition, TensorProto.INT64)
    reduced, carried = context.fresh("reduced"), context.fresh("carried")
    body = GraphProto(name=reduced, node=[_reduction(context, carried, reduced, axes)])
    body.output.append(_value_info(reduced, elem_type))
    of_one_round(context, body, [_value_info(carried, elem_type)])
    return "Loop", [count, "", value], {"body": body}


def _reduction(context: Context, value: str, name: str, axes: tuple[int, ...]) -> NodeProto:
    """The node's own operator, with its keepdims, over the given axes."""
    node = NodeProto(op_type=context.node.op_type, name=name, input=[value], output=[name])
    keepdims = context.attribute("keepdims")
    if keepdims is not None:
        node.attribute.add().CopyFrom(keepdims)
    node.attribute.append(helper.make_attribute("axes", list(axes)))
    return node


def _identity(value: str, name: str) -> NodeProto:
    return NodeProto(op_type="Identity", name=name, input=[value], output=[name])


def _value_info(name: str, elem_type: int) -> ValueInfoProto:
    """A value of unknown rank."""
    return helper.make_tensor_value_info(name, elem_type, None)
