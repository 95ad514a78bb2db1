"""Axes as non-negative integers, checked for range and duplicates as each definition asks.

Definitions before 11 do not define negative axes. Exporters wrote them nevertheless, and
`onnx.shape_inference` and ONNX Runtime count them from the back. So do the kernels here, except
that of Flatten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onnxreduce_cli.executor.dtypes import Array
from onnxreduce_cli.executor.errors import Invalid


def one_axis(axis: int, rank: int, *, negative: bool = True, end: bool = False) -> int:
    """Return `axis` as a non-negative integer; raise Invalid if it is out of range for `rank`.

    `negative` says whether the definition allows negative axes, `end` whether the axis may
    equal the rank.
    """
    limit = rank if end else rank - 1
    if axis < 0 and not negative:
        raise Invalid(f"axis {axis} is negative, which this opset does not allow (rank {rank})")
    if not -rank <= axis <= limit:
        raise Invalid(f"axis {axis} is out of range for rank {rank}")
    return axis + rank if axis < 0 else axis


def many_axes(axes: Iterable[Any], rank: int) -> tuple[int, ...]:
    """Return `axes` as non-negative integers; raise Invalid if out of range or repeated."""
    given = tuple(int(axis) for axis in axes)
    result = tuple(one_axis(axis, rank) for axis in given)
    if len(set(result)) != len(result):
        raise Invalid(f"axes {list(given)} name an axis twice (rank {rank})")
    return result


def vector(name: str, values: Array, *, scalar: bool = False) -> list[int]:
    """Return a 1-D integer input as ints; with `scalar` it may be a scalar, else raise Invalid."""
    if scalar and values.ndim == 0:
        return [int(values)]
    if values.ndim != 1:
        raise Invalid(f"input {name!r} has rank {values.ndim}, it must have rank 1")
    return [int(v) for v in values]
