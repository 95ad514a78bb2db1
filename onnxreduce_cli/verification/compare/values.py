"""Comparing values: errors, ULPs, tolerances.

Two elements agree if they are equal, both NaN, or close enough for their dtype:

| dtype            | rtol | atol | notes                                    |
|------------------|------|------|------------------------------------------|
| float64          | 1e-9 | 1e-10|                                          |
| float32          | 1e-4 | 1e-5 |                                          |
| float16          | 5e-3 | 5e-3 |                                          |
| bfloat16         | 4e-2 | 4e-2 |                                          |
| float8*, float4* | 0.3  | 0.05 | one step of the coarsest                 |
| all others       | 0    | 0    | integers, booleans and strings are exact |

Close enough means ``|x - y| <= atol + rtol * max(|x|, |y|)``. A default `atol` is multiplied by the
largest magnitude in the tensor where that exceeds 1 (the dtype's very largest left out), as
rounding errors grow with the operands of a sum and not with its result; one that a caller gives is
taken as it is. A number of ULPs, where given, is a second way to agree, and the only one if neither
`rtol` nor `atol` is given. An infinity agrees only with itself.

Where a conversion changed dtypes, the coarser of the old and the new one counts for all floats.

Between two executors, which sum in different orders and with different intermediate precision, the
defaults are ten times as large; see `Tolerance.between_executors`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from onnxreduce_cli.model.graph.values import finfo, is_float, numpy_dtype

Array = npt.NDArray[Any]

_DEFAULTS = {
    "float64": (1e-9, 1e-10),
    "float32": (1e-4, 1e-5),
    "float16": (5e-3, 5e-3),
    "bfloat16": (4e-2, 4e-2),
}
_TINY_FLOATS = (0.3, 0.05)

#: The floats that models hold, by their numbers in ONNX: one of each row of the table.
_FLOATS = (
    TensorProto.DOUBLE,
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
    TensorProto.FLOAT8E4M3FN,
)

#: Tensors of up to so many elements are first compared by their bytes.
_FEW = 4096


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed difference of two values; the table of this module has the defaults.

    Attributes:
        rtol: relative to the larger of the two; None for the dtype's own.
        atol: absolute; None for the dtype's own.
        ulp: units in the last place; None not to count them.
        exact: every bit must agree, but for the payload and sign of NaNs.
        factor: how much larger than in the table the defaults are.
        coarse: a dtype whose defaults all floats have that are finer; empty for none.
        narrowed: whether int32 may stand for int64, and its nearest integer for one beyond it.
    """

    rtol: float | None = None
    atol: float | None = None
    ulp: int | None = None
    exact: bool = False
    factor: float = 1.0
    coarse: str = ""
    narrowed: bool = False

    def between_executors(self) -> Tolerance:
        """Return the same with defaults ten times as large, and without exactness."""
        return replace(self, exact=False, factor=10.0)

    def limits(self, dtype: np.dtype[Any], scale: float) -> tuple[float, float]:
        """Return the relative and the absolute limit for a dtype.

        Args:
            dtype: of the tensors compared.
            scale: the largest finite magnitude in them.
        """
        if self.exact or (self.ulp is not None and self.rtol is None and self.atol is None):
            return 0.0, 0.0
        rtol, atol = _DEFAULTS.get(dtype.name, _TINY_FLOATS if is_float(dtype) else (0.0, 0.0))
        if dtype.kind == "c":
            rtol, atol = _DEFAULTS["float32" if dtype.itemsize == 8 else "float64"]
        if self.coarse and rtol:
            rtol, atol = max((rtol, atol), _DEFAULTS[self.coarse])
        return (
            self.factor * rtol if self.rtol is None else self.rtol,
            self.factor * atol * max(1.0, scale) if self.atol is None else self.atol,
        )

    def by_dtype(self) -> dict[str, tuple[float, float]]:
        """Return the relative and the absolute limit for each float dtype, of numbers up to 1."""
        return {dtype.name: self.limits(dtype, 1.0) for dtype in map(numpy_dtype, _FLOATS)}


@dataclass(frozen=True, slots=True)
class Errors:
    """The difference of two values, or of many pairs of them.

    Attributes:
        count: elements compared.
        mismatches: elements further apart than the tolerance allows.
        max_abs: the largest absolute error between finite elements.
        max_rel: the largest error relative to the larger of the two.
        max_ulp: the largest distance in units in the last place between finite floats; None for
            what is no float.
        nan_mismatches: elements that are NaN on one side only.
        inf_mismatches: elements that differ, with an infinity on at least one side.
        bit_exact: all bits agree, but for the payload and sign of NaNs.
        problem: why they could not be compared element by element; empty if they could.
        spread: of floats, how many finite elements are 0, 1, 2 to 3, 4 to 7, ... units in the last
            place apart.
    """

    count: int = 0
    mismatches: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: int | None = None
    nan_mismatches: int = 0
    inf_mismatches: int = 0
    bit_exact: bool = True
    problem: str = ""
    spread: tuple[int, ...] = ()

    @property
    def agree(self) -> bool:
        """True if no element differs by more than the tolerance allows."""
        return not self.mismatches and not self.problem

    def __add__(self, other: Errors) -> Errors:
        """Return the errors of both together."""
        known = [ulp for ulp in (self.max_ulp, other.max_ulp) if ulp is not None]
        return Errors(
            self.count + other.count,
            self.mismatches + other.mismatches,
            max(self.max_abs, other.max_abs),
            max(self.max_rel, other.max_rel),
            max(known, default=None),
            self.nan_mismatches + other.nan_mismatches,
            self.inf_mismatches + other.inf_mismatches,
            self.bit_exact and other.bit_exact,
            self.problem or other.problem,
            tuple(map(sum, zip_longest(self.spread, other.spread, fillvalue=0))),
        )

    def __str__(self) -> str:
        """Return one line."""
        if self.problem:
            return self.problem
        if self.bit_exact:
            return "bit-exact"
        parts = []
        if self.max_ulp is not None or self.max_abs:  # Strings are no distance apart.
            parts += [f"max abs {self.max_abs:.3g}", f"max rel {self.max_rel:.3g}"]
        if self.max_ulp is not None:
            parts.append(f"max ULP {self.max_ulp}")
        if self.mismatches:
            parts.append(f"{self.mismatches} of {self.count} elements differ")
        if self.nan_mismatches:
            parts.append(f"{self.nan_mismatches} NaN mismatches")
        if self.inf_mismatches:
            parts.append(f"{self.inf_mismatches} inf mismatches")
        return ", ".join(parts)


def not_comparable(problem: str) -> Errors:
    """Return the errors of two values that cannot be compared."""
    return Errors(bit_exact=False, problem=problem)


def _has_ulps(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "c" or is_float(dtype)


def compare_values(first: Any, second: Any, tolerance: Tolerance) -> Errors:
    """Compare two values: tensors, sequences (lists), or None for an empty optional.

    Where dtype, shape, kind or length differ, the result has a `problem`.
    """
    if isinstance(first, list) and isinstance(second, list):
        if len(first) != len(second):
            return not_comparable(f"sequence lengths differ: {len(first)} and {len(second)}")
        total = Errors()
        for a, b in zip(first, second, strict=True):
            total += compare_values(a, b, tolerance)
        return total
    if first is None and second is None:
        return Errors()
    if isinstance(first, dict) and isinstance(second, dict):
        if first.keys() != second.keys():
            return not_comparable("the keys of the maps differ")
        values = [np.asarray(list(side.values())) for side in (first, second)]
        return compare_values(values[0], values[1], tolerance)
    kinds = [_kind(first), _kind(second)]
    if kinds[0] != kinds[1]:
        return not_comparable(f"kinds differ: {kinds[0]} and {kinds[1]}")
    return _arrays(np.asarray(first), np.asarray(second), tolerance)


def _kind(value: Any) -> str:
    if value is None:
        return "an empty optional"
    if isinstance(value, dict):
        return "a map"
    return "a sequence" if isinstance(value, list) else "a tensor"


_NARROWED = {np.dtype(np.int64), np.dtype(np.int32)}


def _arrays(first: Array, second: Array, tolerance: Tolerance) -> Errors:
    if "U" in (first.dtype.kind, second.dtype.kind):
        first, second = first.astype(object), second.astype(object)
    if tolerance.narrowed and {first.dtype, second.dtype} == _NARROWED:
        ends = np.iinfo(np.int32)
        first, second = (
            np.clip(side, ends.min, ends.max, dtype=np.int64) for side in (first, second)
        )
    if first.dtype != second.dtype:
        return not_comparable(f"dtypes differ: {first.dtype} and {second.dtype}")
    if first.shape != second.shape:
        return not_comparable(f"shapes differ: {_shape(first)} and {_shape(second)}")
    count = int(first.size)
    if first.dtype == object:
        wrong = int(np.count_nonzero(first != second))
        return Errors(count, wrong, bit_exact=not wrong)
    if count <= _FEW and first.tobytes() == second.tobytes():
        if not _has_ulps(first.dtype):
            return Errors(count)
        return Errors(count, max_ulp=0, spread=(count,))
    if first.dtype.kind == "c":
        part = np.dtype(np.float32 if first.dtype.itemsize == 8 else np.float64)
        return _floats(_flat(first).view(part), _flat(second).view(part), tolerance)
    if is_float(first.dtype):
        return _floats(_flat(first), _flat(second), tolerance)
    return _exact(_flat(first), _flat(second))


def _shape(array: Array) -> str:
    return f"[{', '.join(str(dim) for dim in array.shape)}]"


def _flat(array: Array) -> Array:
    return np.ravel(array)


def _exact(a: Array, b: Array) -> Errors:
    differ = a != b
    wrong = int(np.count_nonzero(differ))
    if not wrong:
        return Errors(a.size)
    x, y = a[differ].astype(np.float64), b[differ].astype(np.float64)
    apart = np.abs(x - y)
    larger = np.maximum(np.abs(x), np.abs(y))
    return Errors(a.size, wrong, float(apart.max()), float((apart / larger).max()), bit_exact=False)


def _floats(a: Array, b: Array, tolerance: Tolerance) -> Errors:
    bits = np.dtype(f"u{a.dtype.itemsize}")
    differ = a.view(bits) != b.view(bits)
    if not differ.any():
        return Errors(a.size, max_ulp=0, spread=(a.size,))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # ml_dtypes warns where NaNs are cast.
        warnings.simplefilter("ignore", RuntimeWarning)
        scale = max(_largest(a), _largest(b))
        a_bits, b_bits = a.view(bits)[differ], b.view(bits)[differ]
        x, y = a[differ].astype(np.float64), b[differ].astype(np.float64)
        x_nan, y_nan = np.isnan(x), np.isnan(y)
        both_nan = x_nan & y_nan
        one_nan = x_nan ^ y_nan
        finite = np.isfinite(x) & np.isfinite(y)
        one_inf = (x != y) & ~(finite | x_nan | y_nan)
        apart = np.where(finite, np.abs(x - y), 0.0)
        larger = np.maximum(np.abs(x), np.abs(y))
        ulps = np.where(finite, _ulps(a_bits, b_bits, a.dtype), 0)
        rtol, atol = tolerance.limits(a.dtype, scale)
        if tolerance.exact:
            close = np.zeros(x.shape, bool)
        else:
            close = apart <= atol + rtol * larger
            if tolerance.ulp is not None:
                close |= ulps <= tolerance.ulp
        wrong = one_nan | one_inf | (finite & ~close)
        relative = np.divide(apart, larger, out=np.zeros_like(apart), where=larger > 0)
        return Errors(
            a.size,
            int(np.count_nonzero(wrong)),
            float(apart.max()),
            float(relative.max()),
            int(ulps.max()),
            int(np.count_nonzero(one_nan)),
            int(np.count_nonzero(one_inf)),
            bool(both_nan.all()),
            spread=_spread(a.size - x.size, ulps[finite]),
        )


def _spread(equal: int, ulps: Array) -> tuple[int, ...]:
    """Return how many distances have each number of binary digits; equal elements have none."""
    digits = np.frexp(ulps.astype(np.float64))[1]
    found = np.bincount(digits, minlength=1)
    found[0] += equal
    return tuple(found.tolist())


def _largest(array: Array) -> float:
    """Return the largest magnitude; 0 where there is none.

    Magnitudes close to the dtype's maximum do not count: special values reach it, and the absolute
    tolerance that follows from them would hide all other differences.
    """
    top = float(finfo(array.dtype).max)
    limit = top / (16.0 if top < 1e5 else 2.0**20)
    magnitudes = np.abs(array.astype(np.float64))
    return float(np.max(magnitudes, where=magnitudes < limit, initial=0.0))


def _ulps(a: Array, b: Array, dtype: np.dtype[Any]) -> Array:
    """Return the distances in ULPs, as uint64, between floats given by their bits."""
    width = 4 if dtype.name.startswith("float4") else 8 * dtype.itemsize
    sign = np.uint64(1 << (width - 1))

    def ordered(bits: Array) -> Array:
        wide = bits.astype(np.uint64)
        magnitude = wide & (sign - np.uint64(1))
        # Below zero the bits grow away from it; both zeros share one place.
        return np.where(wide & sign != 0, sign - magnitude, sign + magnitude)

    x, y = ordered(a), ordered(b)
    return np.where(x > y, x - y, y - x)
