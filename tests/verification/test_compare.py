"""Errors, ULPs, tolerances."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxreduce_cli.verification.compare import Tolerance, compare

DEFAULT = Tolerance()


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def test_equal_values_are_bit_exact() -> None:
    found = compare(f32(1, np.nan, np.inf), f32(1, np.nan, np.inf), DEFAULT)
    assert found.bit_exact
    assert found.agree
    assert found.count == 3


def test_the_payload_of_a_nan_does_not_count() -> None:
    other = np.array([0xFFC00001], np.uint32).view(np.float32)
    assert compare(f32(np.nan), other, Tolerance(exact=True)).agree
    assert compare(f32(np.nan), other, DEFAULT).bit_exact


def test_zeros_of_both_signs_are_close_but_not_bit_exact() -> None:
    found = compare(f32(0.0), f32(-0.0), DEFAULT)
    assert (found.agree, found.bit_exact, found.max_ulp) == (True, False, 0)
    assert not compare(f32(0.0), f32(-0.0), Tolerance(exact=True)).agree


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
)
def test_ulps_count_representable_steps(dtype: Any) -> None:
    first = np.array([1.0, -1.0, 0.0], dtype)
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    second = (first.view(bits) + np.array([3, 2, 1], bits)).view(dtype)
    found = compare(first, second, DEFAULT)
    assert found.max_ulp == 3
    assert not found.bit_exact
    # Across zero: one step to either side.
    across = compare(np.array([1], bits).view(dtype), -np.array([1], bits).view(dtype), DEFAULT)
    assert across.max_ulp == 2


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (np.array([1, 5]), np.array([1, 7]), "max abs 2, max rel 0.286, 1 of 2 elements differ"),
        (np.array([True]), np.array([False]), "max abs 1, max rel 1, 1 of 1 elements differ"),
        (np.array(["a"], object), np.array(["b"], object), "1 of 1 elements differ"),
    ],
)
def test_only_floats_have_ulps(first: Any, second: Any, text: str) -> None:
    found = compare(first, second, DEFAULT)
    assert found.max_ulp is None
    assert (found + compare(first, first, DEFAULT)).max_ulp is None
    assert str(found) == text
    assert (found + compare(f32(1), f32(1), DEFAULT)).max_ulp == 0


def test_errors_are_told() -> None:
    found = compare(f32(1, 2, np.nan, np.inf, 5), f32(1, 3, 1, -np.inf, 5), DEFAULT)
    assert found.mismatches == 3
    assert found.max_abs == 1
    assert found.max_rel == pytest.approx(1 / 3)
    assert (found.nan_mismatches, found.inf_mismatches) == (1, 1)
    assert "3 of 5 elements differ" in str(found)


def test_a_largest_float_is_not_infinity() -> None:
    largest = float(np.finfo(np.float32).max)
    assert compare(f32(largest), f32(np.inf), Tolerance(rtol=1.0, atol=1e38)).inf_mismatches == 1


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, ml_dtypes.int4])
def test_integers_and_booleans_are_exact(dtype: Any) -> None:
    first, second = np.array([0, 1, 1]).astype(dtype), np.array([0, 1, 0]).astype(dtype)
    assert compare(first, first, DEFAULT).bit_exact
    found = compare(first, second, DEFAULT)
    assert (found.mismatches, found.max_abs) == (1, 1.0)


def test_large_integers_are_told_apart() -> None:
    # Equal in float64.
    found = compare(np.array([2**62]), np.array([2**62 + 1]), DEFAULT)
    assert found.mismatches == 1


@pytest.mark.parametrize(
    ("dtype", "within", "beyond"),
    [
        (np.float64, 1e-10, 1e-7),
        (np.float32, 2e-5, 1e-3),
        (np.float16, 2e-3, 5e-2),
        (ml_dtypes.bfloat16, 2e-2, 0.25),
    ],
)
def test_tolerances_go_by_dtype(dtype: Any, within: float, beyond: float) -> None:
    one = np.ones(1, dtype)
    assert compare(one, (np.ones(1) + within).astype(dtype), DEFAULT).agree
    assert not compare(one, (np.ones(1) + beyond).astype(dtype), DEFAULT).agree


def test_rounding_grows_with_the_operands_of_a_sum() -> None:
    assert compare(f32(1e6, 0.0), f32(1e6, 1.0), DEFAULT).agree
    assert not compare(f32(1e6, 0.0), f32(1e6, 1.0), Tolerance(atol=1e-5)).agree


def test_flags_override_the_table() -> None:
    a, b = f32(1.0), f32(1.01)
    assert compare(a, b, Tolerance(rtol=0.1)).agree
    assert compare(a, b, Tolerance(atol=0.1)).agree
    assert not compare(a, b, Tolerance(ulp=4)).agree
    assert compare(a, np.nextafter(a, b), Tolerance(ulp=1)).agree
    assert not compare(a, np.nextafter(a, b), Tolerance(exact=True)).agree


def test_shapes_dtypes_and_kinds_are_told() -> None:
    assert compare(f32(1), f32(1, 2), DEFAULT).problem == "shapes differ: [1] and [2]"
    assert "dtypes" in compare(f32(1), np.ones(1), DEFAULT).problem
    assert "lengths" in compare([f32(1)], [], DEFAULT).problem
    assert "kinds" in compare([f32(1)], f32(1), DEFAULT).problem
    assert "empty optional" in compare(None, f32(1), DEFAULT).problem
    assert compare(None, None, DEFAULT).agree


def test_strings_sequences_maps_and_complex_numbers() -> None:
    words = np.array(["a", "b"], object)
    assert compare(words, np.array(["a", "c"]), DEFAULT).mismatches == 1
    assert compare([f32(1), f32(2)], [f32(1), f32(3)], DEFAULT).mismatches == 1
    assert compare({1: 0.5}, {1: 0.5}, DEFAULT).agree
    assert not compare({1: 0.5}, {2: 0.5}, DEFAULT).agree
    assert not compare(np.array([1 + 1j]), np.array([1 + 2j]), DEFAULT).agree


def test_empty_and_scalar_tensors() -> None:
    assert compare(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), DEFAULT).agree
    assert compare(np.zeros((0, 3)), np.zeros((3, 0)), DEFAULT).problem
    assert compare(np.float32(1), np.float32(2), DEFAULT).mismatches == 1
