"""Function bodies of ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceSumSquare, Softmax
and LogSoftmax, by which `--expand` replaces them; no less exact than the operators themselves.

The bodies that onnx ships compute ReduceL2 of doubles in float and exponentiate without
subtracting the maximum; these don't. All are written for opset 18; steps take them to the target.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import AttributeProto, TensorProto

from onnxreduce_cli.emit.axes import axes_input, non_negative_axes
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import replace_and_cast_back, widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.idioms import reductions
from onnxreduce_cli.idioms.expansion import Expansion, replace_by_last
from onnxreduce_cli.idioms.writer import Writer

#: The highest finite number of the dtypes that bodies compute in.
_HIGHEST: dict[int, float] = {
    TensorProto.FLOAT: float(np.finfo(np.float32).max),
    TensorProto.DOUBLE: float(np.finfo(np.float64).max),
}

#: What stands for an operator.
Definition = Callable[[Writer, str], str]

#: Emits a body at opset 18 for a node at the target opset, and returns its formula for the report.
Body = Callable[[Context], str]


def _reduce(
    context: Context,
    op_type: str,
    data: str,
    axes: str,
    keepdims: AttributeProto | int | None,
) -> Value:
    """Return a reduction at opset 18 with the node's own `noop_with_empty_axes`.

    Args:
        context: the context of the node.
        op_type: the operator, such as ReduceSum.
        data: the tensor to reduce, of a dtype that the operator takes.
        axes: the axes, int64 of shape [k]; empty for none given.
        keepdims: the attribute, or its value.
    """
    noop = context.attribute("noop_with_empty_axes")
    return context.op.emit(op_type, data, axes, keepdims=keepdims, noop_with_empty_axes=noop)


def _write_definition(
    context: Context,
    definition: Definition,
    axes: str,
    integers: int | None = 0,
    keepdims: AttributeProto | int | None = None,
) -> None:
    """Emit a definition in place of the node.

    Args:
        context: the context of the node.
        definition: what stands for its operator.
        axes: the axes, int64 of shape [k]; empty for all.
        integers: the dtype to compute integers in, 0 for their own; None where everything is
            computed in its own dtype, halves too.
        keepdims: the node's, if it has that.
    """
    data: str = context.input(0)
    elem_type = working = 0
    if integers is not None:
        data, elem_type, working = widened(context, integers)

    def reduce(op_type: str, name: str, keep: bool) -> Value:
        return _reduce(context, op_type, name, axes, None if keep else keepdims)

    result = definition(Expansion(context, working, reduce), data)
    replace_by_last(context, result, elem_type, working)


def _reduction_body(definition: Definition, formula: str, integers: int | None = 0) -> Body:
    """Return the function that writes the body of a Reduce operator."""

    def body(context: Context) -> str:
        keepdims = context.attribute("keepdims")
        _write_definition(context, definition, axes_input(context), integers, keepdims)
        return formula

    return body


def _log_sum_exp(context: Context) -> str:
    """``Log(ReduceSum(Exp(x - m))) + m``, m being the maximum made finite; integers in double."""
    data, elem_type, working = widened(context, TensorProto.DOUBLE)
    if not context.reaches(7):
        _log_sum_exp_transposed(context, data, elem_type, working)
    else:
        axes, keepdims = axes_input(context), context.attribute("keepdims")
        total = _log_sum_exp_terms(context, data, axes, keepdims, elem_type, working)
        replace_and_cast_back(context, "Add", total, elem_type, working)
    return "Log(ReduceSum(Exp(x - max))) + max"


def _log_sum_exp_terms(
    context: Context,
    data: str,
    axes: str,
    keepdims: AttributeProto | int | None,
    elem_type: int,
    working: int,
) -> list[str]:
    """Return ``Log(ReduceSum(Exp(data - m)))`` and m, whose sum is the result.

    Args:
        context: the context of the node.
        data: the node's data in dtype `working`.
        axes: the axes, int64 of shape [k]; empty for all.
        keepdims: whether the terms keep the reduced dimensions.
        elem_type: the dtype of the node's data.
        working: the dtype to compute in, which is float or double.
    """
    op = context.op
    maximum = _finite_maximum(context, data, axes, elem_type, working)
    exponentials = op.Exp(op.Sub(data, maximum))
    total = _reduce(context, "ReduceSum", exponentials, axes, keepdims)
    # The maximum of one maximum is itself, with the dimensions that the result has.
    shaped = _reduce(context, "ReduceMax", maximum, axes, keepdims)
    return [op.Log(total), shaped]


def _log_sum_exp_transposed(context: Context, data: str, elem_type: int, working: int) -> None:
    """Emit the body of ReduceLogSumExp with the reduced dimensions transposed to the end.

    Before opset 7 the maximum, with dimensions of 1 where the data was reduced, can only be
    subtracted if those come last.

    Args:
        context: the context of the node.
        data: the node's data in dtype `working`.
        elem_type: the dtype of the node's data.
        working: the dtype to compute in, which is float or double.
    """
    op = context.op
    rank = context.need_rank(context.input(0), "before opset 7 broadcasting depends on it")
    reduced = sorted(non_negative_axes(context.value("axes", ()), rank)) or list(range(rank))
    perm = [index for index in range(rank) if index not in reduced] + reduced
    last = context.array(list(range(rank - len(reduced), rank)), "axes")
    transposed = op.Transpose(data, perm=perm) if rank else data
    total = op.Add(
        *_log_sum_exp_terms(context, transposed, last if rank else "", 1, elem_type, working)
    )
    if not rank:
        replace_and_cast_back(context, "Identity", [total], elem_type, working)
    elif context.value("keepdims", 1):
        inverse = [perm.index(index) for index in range(rank)]
        replace_and_cast_back(context, "Transpose", [total], elem_type, working, perm=inverse)
    else:
        replace_and_cast_back(context, "Squeeze", [total, last], elem_type, working)


def _finite_maximum(context: Context, data: str, axes: str, elem_type: int, working: int) -> Value:
    """Return the maximum over the axes, kept as dimensions of 1, with ±inf made finite numbers.

    Subtracting an infinite maximum would give NaN; a finite one leaves the infinities as they are.
    Arguments and dtype are those of `_log_sum_exp_terms`.
    """
    op = context.op
    maximum = _reduce(context, "ReduceMax", data, axes, 1)
    # Integers are all less than float's limits, which any version of Clip takes.
    most = _HIGHEST[working if elem_type == working else TensorProto.FLOAT]
    low, high = (
        context.scalar(bound, hint, working)
        for bound, hint in ((-most, "lowest"), (most, "highest"))
    )
    return op.Clip(maximum, low, high)


def _softmax_axes(context: Context) -> Value:
    """Return the axes that a Softmax or LogSoftmax normalises over, int64 of shape [k]."""
    since_13 = context.source_opset >= 13
    axis = context.value("axis", -1 if since_13 else 1)
    if since_13:
        return context.array([axis], "axes")
    rank = context.need_rank(
        context.input(0),
        f"at opset {context.source_opset} all dimensions from axis {axis} on count",
    )
    return context.array(list(range(non_negative_axes((axis,), rank)[0], rank)), "axes")


def _softmax(context: Context) -> str:
    """``e / ReduceSum(e)`` with e = ``Exp(x - max)``; max not made finite: then they give NaN."""
    _write_definition(context, reductions.softmax, _softmax_axes(context))
    return "e / ReduceSum(e) with e = Exp(x - max)"


def _log_softmax(context: Context) -> str:
    """``s - Log(ReduceSum(Exp(s)))`` with s = ``x - max``, max as before."""
    _write_definition(context, reductions.log_softmax, _softmax_axes(context))
    return "s - Log(ReduceSum(Exp(s))) with s = x - max"


_DOUBLE = TensorProto.DOUBLE

BODIES: dict[str, Body] = {
    "LogSoftmax": _log_softmax,
    "ReduceL1": _reduction_body(reductions.l1, "ReduceSum(Abs(x))", None),
    "ReduceL2": _reduction_body(reductions.l2, "Sqrt(ReduceSum(Mul(x, x)))", _DOUBLE),
    "ReduceLogSum": _reduction_body(reductions.log_sum, "Log(ReduceSum(x))", _DOUBLE),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": _reduction_body(reductions.sum_square, "ReduceSum(Mul(x, x))"),
    "Softmax": _softmax,
}
