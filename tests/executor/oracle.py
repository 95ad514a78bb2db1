"""What the family's operators should give, one element at a time.

Written apart from the kernels and in another style: plain loops over Python numbers, sums
by math.fsum, softmax by its pairwise form, LogSumExp by repeated logaddexp. A result that
the specification leaves undefined is None.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Cells = np.ndarray[Any, Any]


def reduce(
    op: str,
    data: Cells,
    axes: Sequence[int] | None,
    keepdims: int,
    noop: int,
) -> tuple[tuple[int, ...], list[Any]]:
    """Give the shape of the result and its values in row-major order."""
    rank = data.ndim
    chosen = {axis % rank for axis in axes} if axes else set()
    if not chosen:
        if noop:
            return data.shape, [_cell(op, [value], data.dtype) for value in _numbers(data)]
        chosen = set(range(rank))
    kept = [range(1) if i in chosen else range(n) for i, n in enumerate(data.shape)]
    gone = [range(n) if i in chosen else range(1) for i, n in enumerate(data.shape)]
    shape = tuple(
        1 if i in chosen else n for i, n in enumerate(data.shape) if keepdims or i not in chosen
    )
    result = []
    for place in itertools.product(*kept):
        members = [
            _number(data[tuple(a + b for a, b in zip(place, inner, strict=True))])
            for inner in itertools.product(*gone)
        ]
        result.append(_cell(op, members, data.dtype))
    return shape, result


def normalise(op: str, data: Cells, axis: int, coerce: bool) -> list[Any]:
    """Give Softmax, LogSoftmax or Hardmax of `data`, flat; over `axis`, or all from it on."""
    result: list[Any] = [0.0] * data.size
    axis = axis if axis >= 0 else axis + data.ndim
    groups: dict[tuple[int, ...], list[tuple[int, float]]] = {}
    for flat, place in enumerate(np.ndindex(data.shape)):
        key = place[:axis] if coerce else place[:axis] + place[axis + 1 :]
        groups.setdefault(key, []).append((flat, float(data[place])))
    for members in groups.values():
        values = [value for _, value in members]
        made = _GROUPS[op](values)
        for (flat, _), value in zip(members, made, strict=True):
            result[flat] = value
    return result


def _softmax(values: list[float]) -> list[float]:
    if any(math.isnan(v) or v == math.inf for v in values) or max(values) == -math.inf:
        return [math.nan] * len(values)
    return [0.0 if x == -math.inf else 1 / math.fsum(_exp(y - x) for y in values) for x in values]


def _log_softmax(values: list[float]) -> list[float]:
    if any(math.isnan(v) or v == math.inf for v in values) or max(values) == -math.inf:
        return [math.nan] * len(values)
    return [-math.inf if x == -math.inf else -_log_sum_exp([y - x for y in values]) for x in values]


def _hardmax(values: list[float]) -> list[float]:
    best = 0
    for index, value in enumerate(values):
        if value > values[best]:
            best = index
    return [float(index == best) for index in range(len(values))]


_GROUPS: dict[str, Callable[[list[float]], list[float]]] = {
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "Hardmax": _hardmax,
}


def _exp(x: float) -> float:
    return math.inf if x > 709 else math.exp(x)


def _numbers(data: Cells) -> list[Any]:
    return [_number(value) for value in data.reshape(-1)]


def _number(value: Any) -> Any:
    kind = np.asarray(value).dtype.kind
    if kind == "b":
        return bool(value)
    return int(value) if kind in "iu" else float(value)


def _cell(op: str, members: list[Any], dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return any(members) if op == "ReduceMax" else all(members)
    if dtype.kind in "iu":
        return _integer(op, members, dtype)
    return _FLOATS[op](members)


def _integer(op: str, members: list[int], dtype: np.dtype[Any]) -> int | None:
    info = np.iinfo(dtype)
    if op == "ReduceMax":
        return max(members, default=int(info.min))
    if op == "ReduceMin":
        return min(members, default=int(info.max))
    if op == "ReduceMean":
        if not members:
            return None
        total = sum(members)
        return abs(total) // len(members) * (-1 if total < 0 else 1)
    if op in {"ReduceSum", "ReduceProd", "ReduceSumSquare", "ReduceL1"}:
        exact = {
            "ReduceSum": lambda: sum(members),
            "ReduceProd": lambda: math.prod(members),
            "ReduceSumSquare": lambda: sum(m * m for m in members),
            "ReduceL1": lambda: sum(abs(m) for m in members),
        }[op]()
        span = int(info.max) - int(info.min) + 1
        return (exact - int(info.min)) % span + int(info.min)
    real = _FLOATS[op]([float(m) for m in members])
    return int(real) if math.isfinite(real) else None


def _sum(members: list[float]) -> float:
    if all(math.isfinite(m) for m in members):
        return math.fsum(members)
    return sum(members)


def _log(x: float) -> float:
    if x == 0:
        return -math.inf
    return math.nan if x < 0 else math.log(x)


def _log_sum_exp(members: list[float]) -> float:
    total = -math.inf
    for member in members:
        total = float(np.logaddexp(total, member))
    return total


def _extreme(members: list[float], start: float, better: Callable[[float, float], bool]) -> float:
    if any(math.isnan(m) for m in members):
        return math.nan
    for member in members:
        if better(member, start):
            start = member
    return start


def _product(members: list[float]) -> float:
    total = 1.0
    for member in members:
        total *= member
    return total


_FLOATS: dict[str, Callable[[list[float]], float]] = {
    "ReduceL1": lambda m: _sum([abs(x) for x in m]),
    "ReduceL2": lambda m: math.sqrt(_sum([x * x for x in m])),
    "ReduceLogSum": lambda m: _log(_sum(m)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": lambda m: _extreme(m, -math.inf, lambda a, b: a > b),
    "ReduceMean": lambda m: _sum(m) / len(m) if m else math.nan,
    "ReduceMin": lambda m: _extreme(m, math.inf, lambda a, b: a < b),
    "ReduceProd": _product,
    "ReduceSum": _sum,
    "ReduceSumSquare": lambda m: _sum([x * x for x in m]),
}
