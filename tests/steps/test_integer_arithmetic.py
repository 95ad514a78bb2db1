"""Add, Sub, Mul and Div of integers below opset 6."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import converts, of_unknown_rank, one_node, op_types

DTYPES = (np.int32, np.uint32, np.int64, np.uint64)


def pairs(dtype: Any, *, divisible: bool = False) -> dict[str, np.ndarray[Any, Any]]:
    """Every pair of some numbers, the ends of the dtype among them."""
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, info.max // 2 + 1]
    more = [0, 1, 2, 3, 7, 10, 65535, 65537, *(int(info.max) >> shift for shift in (9, 20, 29))]
    more += [-number for number in more if info.min < 0]
    drawn = np.random.default_rng(0).integers(info.min, info.max, 12, dtype, endpoint=True)
    values = np.array([*ends, *more, *drawn.tolist()], dtype)
    a, b = (part.reshape(-1) for part in np.meshgrid(values, values))
    if divisible:
        keep = (b != 0) & ~((a == info.min) & (b.astype(object) == -1))
        a, b = a[keep], b[keep]
    return {"a": a, "b": b}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("target", [5, 3])
def test_of_integers(op_type: str, dtype: Any, target: int) -> None:
    feeds = pairs(dtype, divisible=op_type == "Div")
    converts(one_node(op_type, 7, feeds), target, feeds, in_numpy=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op_type", ["Sub", "Mul", "Div"])
def test_of_integers_of_different_shapes(op_type: str, dtype: Any) -> None:
    a, b = np.arange(24, dtype=dtype).reshape(2, 3, 4), np.arange(1, 4, dtype=dtype)
    for second, given in ((b, {"axis": 1}), (b[:1], {}), (b[0], {}), (a[0] + dtype(1), {})):
        feeds = {"a": a, "b": second}
        for initializers in ((), ("b",)):
            source = one_node(
                op_type,
                6,
                feeds,
                initializers=initializers,
                output_shapes=(a.shape,),
                broadcast=1,
                **given,
            )
            converts(source, 5, feeds, in_numpy=True)
    shapes = {"a": ["m", 1], "b": [None, None]}
    feeds = {"a": a[0, :, :1], "b": b[None]}
    converts(one_node(op_type, 7, feeds, shapes=shapes), 5, feeds, in_numpy=True)
    for second in (b[None], b[0]):
        feeds = {"a": a[0, :, :1], "b": second}
        source, fed = of_unknown_rank(one_node(op_type, 7, feeds), feeds, "a")
        converts(source, 5, fed, in_numpy=True)


def test_a_constant_is_negated_at_conversion() -> None:
    feeds = {"a": np.arange(3), "b": np.array([1, 0, -(2**63)])}
    low = converts(one_node("Sub", 7, feeds, initializers=("b",)), 5, feeds, in_numpy=True)
    assert op_types(low) == ["Unsqueeze", "Unsqueeze", "Concat", "ReduceSum"]


@pytest.mark.parametrize("op_type", ["Less", "Greater"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_comparisons_of_64_bits(op_type: str, dtype: Any) -> None:
    feeds = pairs(dtype)
    for target in (5, 1):
        converts(one_node(op_type, 9, feeds), target, feeds, in_numpy=True)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint16, np.uint64])
@pytest.mark.parametrize("op_type", ["Abs", "Neg"])
def test_size_or_negative(op_type: str, dtype: Any) -> None:
    info = np.iinfo(dtype)
    if op_type == "Neg" and not info.min:
        return
    feeds = {"x": np.array([[info.min, info.min + 1, 0], [1, -info.min // 2, info.max]], dtype)}
    for target in (5, 3):
        converts(one_node(op_type, 6, feeds), target, feeds, in_numpy=True)
