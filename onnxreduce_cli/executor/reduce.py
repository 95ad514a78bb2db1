"""The ten Reduce operators, in every version.

Source: the Reduce* definitions 1, 11 (negative axes), 12 and 20 (Max, Min: more types), 13
(bfloat16; ReduceSum: axes as input), 18 (the others: axes as input, `noop_with_empty_axes`)
and 28 (LogSum, LogSumExp: floats only).

Each operator has three parts: a function of each element, the combination of elements, and a
function of the result. Where nothing is reduced (`noop_with_empty_axes`) the combination is
left out and the functions are applied, as definition 18 says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from onnxreduce_cli.executor.axes import many_axes, vector
from onnxreduce_cli.executor.dtypes import (
    BOOL,
    FLOAT64,
    Array,
    is_float,
    to_dtype,
    truncate_to_integer,
)
from onnxreduce_cli.executor.registry import Call, Kernel, kernel

# NumPy's stubs want keepdims to be a literal.
_ADD: Any = np.add
_MULTIPLY: Any = np.multiply
_MAXIMUM: Any = np.maximum
_MINIMUM: Any = np.minimum

Axes: TypeAlias = tuple[int, ...]
# (data, axes, keepdims) to the result in the data's dtype.
Reducer: TypeAlias = Callable[[Array, Axes, bool], Array]


def _through_float64(function: Reducer) -> Reducer:
    """Make a reducer compute in float64, and round its result (integers: truncate)."""

    def run(data: Array, axes: Axes, keepdims: bool) -> Array:
        result = function(data.astype(FLOAT64, copy=False), axes, keepdims)
        if is_float(data.dtype):
            return to_dtype(result, data.dtype)
        return truncate_to_integer(result, data.dtype)

    return run


def _sum_in(data: Array, axes: Axes, keepdims: bool) -> Array:
    """Sum floats in float64, integers in their own dtype with wrap-around."""
    wide = FLOAT64 if is_float(data.dtype) else data.dtype
    total = _ADD.reduce(data.astype(wide, copy=False), axis=axes, keepdims=keepdims, dtype=wide)
    return to_dtype(total, data.dtype)


def _l1(data: Array, axes: Axes, keepdims: bool) -> Array:
    wide = data.astype(FLOAT64, copy=False) if is_float(data.dtype) else data
    return to_dtype(_sum_in(np.absolute(wide), axes, keepdims), data.dtype)


def _sum_square(data: Array, axes: Axes, keepdims: bool) -> Array:
    wide = data.astype(FLOAT64, copy=False) if is_float(data.dtype) else data
    return to_dtype(_sum_in(np.multiply(wide, wide), axes, keepdims), data.dtype)


@_through_float64
def _l2(data: Array, axes: Axes, keepdims: bool) -> Array:
    return np.sqrt(_sum_in(np.multiply(data, data), axes, keepdims))


@_through_float64
def _log_sum(data: Array, axes: Axes, keepdims: bool) -> Array:
    return np.log(_sum_in(data, axes, keepdims))


@_through_float64
def _log_sum_exp(data: Array, axes: Axes, keepdims: bool) -> Array:
    top = _MAXIMUM.reduce(data, axis=axes, keepdims=True, initial=-np.inf)
    # An infinite maximum is the result; inf - inf would be NaN.
    shift = np.where(np.isfinite(top), top, 0.0)
    total = np.log(_sum_in(np.exp(data - shift), axes, True)) + shift
    return np.asarray(total if keepdims else np.squeeze(total, axis=axes))


def _prod(data: Array, axes: Axes, keepdims: bool) -> Array:
    wide = FLOAT64 if is_float(data.dtype) else data.dtype
    product = _MULTIPLY.reduce(
        data.astype(wide, copy=False), axis=axes, keepdims=keepdims, dtype=wide
    )
    return to_dtype(product, data.dtype)


def _count(data: Array, axes: Axes) -> int:
    return int(np.prod([data.shape[axis] for axis in axes], dtype=np.int64))


def _mean(data: Array, axes: Axes, keepdims: bool) -> Array:
    count = _count(data, axes)
    if is_float(data.dtype):
        total = _sum_in(data.astype(FLOAT64, copy=False), axes, keepdims)
        return to_dtype(np.divide(total, count), data.dtype)
    # Python integers: the sum of 64-bit values needs more than 64 bits.
    exact = _ADD.reduce(data.astype(object), axis=axes, keepdims=keepdims, initial=0)
    totals = np.asarray(exact, dtype=object)
    # The mean of no integers is undefined; 0, so that it is the same every time.
    flat = [abs(t) // max(count, 1) * (1 if t >= 0 else -1) for t in totals.ravel()]
    return np.array(flat, dtype=data.dtype).reshape(totals.shape)


def _extreme(data: Array, axes: Axes, keepdims: bool, *, largest: bool) -> Array:
    ufunc = _MAXIMUM if largest else _MINIMUM
    if data.dtype == BOOL:
        logical: Any = np.logical_or if largest else np.logical_and
        return to_dtype(logical.reduce(data, axis=axes, keepdims=keepdims), BOOL)
    if is_float(data.dtype):
        # Through float64, which holds every value of the narrower types.
        infinity = -np.inf if largest else np.inf
        wide = data.astype(FLOAT64, copy=False)
        found = ufunc.reduce(wide, axis=axes, keepdims=keepdims, initial=infinity)
        return to_dtype(found, data.dtype)
    info = np.iinfo(data.dtype)
    start = data.dtype.type(info.min if largest else info.max)
    return to_dtype(ufunc.reduce(data, axis=axes, keepdims=keepdims, initial=start), data.dtype)


def _max(data: Array, axes: Axes, keepdims: bool) -> Array:
    return _extreme(data, axes, keepdims, largest=True)


def _min(data: Array, axes: Axes, keepdims: bool) -> Array:
    return _extreme(data, axes, keepdims, largest=False)


# The element-wise parts of operators, for when nothing is reduced; others are identities.
def _noop_absolute(data: Array) -> Array:
    return np.absolute(data)


def _noop_square(data: Array) -> Array:
    return _sum_square(data, (), True)


def _noop_log(data: Array) -> Array:
    return _log_sum(data, (), True)


def _identity(data: Array) -> Array:
    return data


def _kernel(reducer: Reducer, noop: Callable[[Array], Array]) -> Kernel:
    def run(call: Call, data: Array, axes_input: Array | None = None) -> Array:
        given = call.attrs.get("axes", ())
        if axes_input is not None:
            given = vector("axes", axes_input)
        rank = data.ndim
        axes = many_axes(given, rank)
        if not axes:
            if call.attrs.get("noop_with_empty_axes", 0):
                return noop(data)
            axes = tuple(range(rank))
        return reducer(data, axes, bool(call.attrs["keepdims"]))

    return run


_REDUCERS: dict[str, tuple[Reducer, Callable[[Array], Array], tuple[int, ...]]] = {
    "ReduceL1": (_l1, _noop_absolute, (1, 11, 13, 18)),
    "ReduceL2": (_l2, _noop_absolute, (1, 11, 13, 18)),
    "ReduceLogSum": (_log_sum, _noop_log, (1, 11, 13, 18, 28)),
    "ReduceLogSumExp": (_log_sum_exp, _identity, (1, 11, 13, 18, 28)),
    "ReduceMax": (_max, _identity, (1, 11, 12, 13, 18, 20)),
    "ReduceMean": (_mean, _identity, (1, 11, 13, 18)),
    "ReduceMin": (_min, _identity, (1, 11, 12, 13, 18, 20)),
    "ReduceProd": (_prod, _identity, (1, 11, 13, 18)),
    "ReduceSum": (_sum_in, _identity, (1, 11, 13)),
    "ReduceSumSquare": (_sum_square, _noop_square, (1, 11, 13, 18)),
}

for _name, (_reducer, _noop, _versions) in _REDUCERS.items():
    kernel(_name, *_versions)(_kernel(_reducer, _noop))
