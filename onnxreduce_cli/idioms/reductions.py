"""The Reduce family and Softmax as exporters write them.

``Log(ReduceSum(Exp(x)))`` and ``Exp(x) / ReduceSum(Exp(x))`` overflow where ReduceLogSumExp and
Softmax do not. For an infinite element the latter form gives NaN there, Softmax in the whole row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.idiom import Idiom
from onnxreduce_cli.idioms.matching import IdiomMatch, NoMatchError
from onnxreduce_cli.idioms.writer import Writer


def l1(to: Writer, data: str) -> str:
    """``ReduceSum(Abs(x))``."""
    return to.reduced("ReduceSum", to.op.Abs(data), keep=False)


def sum_square(to: Writer, data: str) -> str:
    """``ReduceSum(Mul(x, x))``."""
    return to.reduced("ReduceSum", to.op.Mul(data, data), keep=False)


def _sum_square_by_pow(to: Writer, data: str) -> str:
    return to.reduced("ReduceSum", to.op.Pow(data, to.number(2)), keep=False)


def l2(to: Writer, data: str) -> Value:
    """``Sqrt(ReduceSum(Mul(x, x)))``."""
    return to.op.Sqrt(sum_square(to, data))


def _l2_by_pow(to: Writer, data: str) -> str:
    return to.op.Sqrt(_sum_square_by_pow(to, data))


def _l2_of_sum_square(to: Writer, data: str) -> str:
    return to.op.Sqrt(to.reduced("ReduceSumSquare", data, keep=False))


def log_sum(to: Writer, data: str) -> Value:
    """``Log(ReduceSum(x))``."""
    return to.op.Log(to.reduced("ReduceSum", data, keep=False))


def softmax(to: Writer, data: str) -> Value:
    """``e / ReduceSum(e)`` with e = ``Exp(x - ReduceMax(x))``."""
    op = to.op
    exponentials = op.Exp(op.Sub(data, to.reduced("ReduceMax", data)))
    return op.Div(exponentials, to.reduced("ReduceSum", exponentials))


def log_softmax(to: Writer, data: str) -> Value:
    """``s - Log(ReduceSum(Exp(s)))`` with s = ``x - ReduceMax(x)``."""
    op = to.op
    shifted = op.Sub(data, to.reduced("ReduceMax", data))
    return op.Sub(shifted, op.Log(to.reduced("ReduceSum", op.Exp(shifted))))


def _log_sum_exp(to: Writer, data: str) -> str:
    return to.op.Log(to.reduced("ReduceSum", to.op.Exp(data), keep=False))


def _plain_softmax(to: Writer, data: str) -> str:
    exponentials = to.op.Exp(data)
    return to.op.Div(exponentials, to.reduced("ReduceSum", exponentials))


def _log_of_plain_softmax(to: Writer, data: str) -> str:
    return to.op.Log(_plain_softmax(to, data))


def _log_of_softmax(to: Writer, data: str) -> str:
    return to.op.Log(to.reduced("Softmax", data))


def _minus_log_sum(to: Writer, data: str) -> str:
    op = to.op
    return op.Sub(data, op.Log(to.reduced("ReduceSum", op.Exp(data))))


def _minus_log_sum_exp(to: Writer, data: str) -> str:
    return to.op.Sub(data, to.reduced("ReduceLogSumExp", data))


def _over_axes(_: NodeFacts, found: IdiomMatch) -> Mapping[str, Any]:
    return {"axes": found.axes, "keepdims": found.keepdims}


def _over_one_axis(facts: NodeFacts, found: IdiomMatch) -> Mapping[str, Any]:
    if found.axes is None or len(found.axes) != 1:
        raise NoMatchError("it is not over one axis")
    (axis,) = found.axes
    return {"axis": axis}


IDIOMS = (
    Idiom("ReduceL1", (l1,), _over_axes),
    Idiom("ReduceL2", (l2, _l2_by_pow, _l2_of_sum_square), _over_axes),
    Idiom("ReduceSumSquare", (sum_square, _sum_square_by_pow), _over_axes),
    Idiom("ReduceLogSumExp", (_log_sum_exp,), _over_axes, stabler=True),
    Idiom("ReduceLogSum", (log_sum,), _over_axes),
    Idiom("Softmax", (softmax,), _over_one_axis),
    Idiom("LogSoftmax", (log_softmax,), _over_one_axis),
    Idiom("Softmax", (_plain_softmax,), _over_one_axis, stabler=True),
    Idiom(
        "LogSoftmax",
        (_log_of_plain_softmax, _log_of_softmax, _minus_log_sum, _minus_log_sum_exp),
        _over_one_axis,
        stabler=True,
    ),
)
