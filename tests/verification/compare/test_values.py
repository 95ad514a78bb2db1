"""Errors, ULPs, tolerances."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxreduce_cli.verification.compare.values import (
    Errors,
    Tolerance,
    compare_values,
    not_comparable,
)

DEFAULT = Tolerance()


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def test_equal_values_are_bit_exact() -> None:
    found = compare_values(f32(1, np.nan, np.inf), f32(1, np.nan, np.inf), DEFAULT)
    assert found.bit_exact
    assert found.agree
    assert found.count == 3


@pytest.mark.parametrize("values", [(np.nan, 1), (1, np.nan)])
def test_a_nan_beside_a_number_is_not_bit_exact(values: tuple[float, float]) -> None:
    found = compare_values(*map(f32, values), DEFAULT)
    assert (found.agree, found.bit_exact, found.nan_mismatches) == (False, False, 1)


def test_the_payload_of_a_nan_does_not_count() -> None:
    other = np.array([0xFFC00001], np.uint32).view(np.float32)
    assert compare_values(f32(np.nan), other, Tolerance(exact=True)).agree
    assert compare_values(f32(np.nan), other, DEFAULT).bit_exact


def test_zeros_of_both_signs_are_close_but_not_bit_exact() -> None:
    found = compare_values(f32(0.0), f32(-0.0), DEFAULT)
    assert (found.agree, found.bit_exact, found.max_ulp) == (True, False, 0)
    assert not compare_values(f32(0.0), f32(-0.0), Tolerance(exact=True)).agree


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
)
def test_ulps_count_representable_steps(dtype: Any) -> None:
    first = np.array([1.0, -1.0, 0.0], dtype)
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    second = (first.view(bits) + np.array([3, 2, 1], bits)).view(dtype)
    found = compare_values(first, second, DEFAULT)
    assert found.max_ulp == 3
    assert not found.bit_exact
    # Across zero: one step to either side.
    across = compare_values(
        np.array([1], bits).view(dtype), -np.array([1], bits).view(dtype), DEFAULT
    )
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
    found = compare_values(first, second, DEFAULT)
    assert found.max_ulp is None
    assert (found + compare_values(first, first, DEFAULT)).max_ulp is None
    assert str(found) == text
    assert (found + compare_values(f32(1), f32(1), DEFAULT)).max_ulp == 0


def test_errors_are_told() -> None:
    found = compare_values(f32(1, 2, np.nan, np.inf, 5), f32(1, 3, 1, -np.inf, 5), DEFAULT)
    assert found.mismatches == 3
    assert found.max_abs == 1
    assert found.max_rel == pytest.approx(1 / 3)
    assert (found.nan_mismatches, found.inf_mismatches) == (1, 1)
    assert "3 of 5 elements differ" in str(found)


def test_a_largest_float_is_not_infinity() -> None:
    largest = float(np.finfo(np.float32).max)
    assert (
        compare_values(f32(largest), f32(np.inf), Tolerance(rtol=1.0, atol=1e38)).inf_mismatches
        == 1
    )


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, ml_dtypes.int4])
def test_integers_and_booleans_are_exact(dtype: Any) -> None:
    first, second = np.array([0, 1, 1]).astype(dtype), np.array([0, 1, 0]).astype(dtype)
    assert compare_values(first, first, DEFAULT).bit_exact
    found = compare_values(first, second, DEFAULT)
    assert (found.mismatches, found.max_abs) == (1, 1.0)


def test_large_integers_are_told_apart() -> None:
    # Equal in float64.
    found = compare_values(np.array([2**62]), np.array([2**62 + 1]), DEFAULT)
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
    assert compare_values(one, (np.ones(1) + within).astype(dtype), DEFAULT).agree
    assert not compare_values(one, (np.ones(1) + beyond).astype(dtype), DEFAULT).agree


def test_rounding_grows_with_the_operands_of_a_sum() -> None:
    assert compare_values(f32(1e6, 0.0), f32(1e6, 1.0), DEFAULT).agree
    assert not compare_values(f32(1e6, 0.0), f32(1e6, 1.0), Tolerance(atol=1e-5)).agree


def test_flags_override_the_table() -> None:
    a, b = f32(1.0), f32(1.01)
    assert compare_values(a, b, Tolerance(rtol=0.1)).agree
    assert compare_values(a, b, Tolerance(atol=0.1)).agree
    assert not compare_values(a, b, Tolerance(ulp=4)).agree
    assert compare_values(a, np.nextafter(a, b), Tolerance(ulp=1)).agree
    assert not compare_values(a, np.nextafter(a, b), Tolerance(exact=True)).agree


def test_shapes_dtypes_and_kinds_are_told() -> None:
    assert compare_values(f32(1), f32(1, 2), DEFAULT).problem == "shapes differ: [1] and [2]"
    assert "dtypes" in compare_values(f32(1), np.ones(1), DEFAULT).problem
    assert "lengths" in compare_values([f32(1)], [], DEFAULT).problem
    assert "kinds" in compare_values([f32(1)], f32(1), DEFAULT).problem
    assert "empty optional" in compare_values(None, f32(1), DEFAULT).problem
    assert compare_values(None, None, DEFAULT).agree


def test_strings_sequences_maps_and_complex_numbers() -> None:
    words = np.array(["a", "b"], object)
    assert compare_values(words, np.array(["a", "c"]), DEFAULT).mismatches == 1
    assert compare_values([f32(1), f32(2)], [f32(1), f32(3)], DEFAULT).mismatches == 1
    assert compare_values({1: 0.5}, {1: 0.5}, DEFAULT).agree
    assert not compare_values({1: 0.5}, {2: 0.5}, DEFAULT).agree
    assert not compare_values(np.array([1 + 1j]), np.array([1 + 2j]), DEFAULT).agree


def test_empty_and_scalar_tensors() -> None:
    assert compare_values(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), DEFAULT).agree
    assert compare_values(np.zeros((0, 3)), np.zeros((3, 0)), DEFAULT).problem
    assert compare_values(np.float32(1), np.float32(2), DEFAULT).mismatches == 1


@pytest.mark.parametrize(
    ("dtype", "rtol", "atol"),
    [
        (np.float64, 1e-9, 1e-10),
        (np.float32, 1e-4, 1e-5),
        (np.float16, 5e-3, 5e-3),
        (ml_dtypes.bfloat16, 4e-2, 4e-2),
        (ml_dtypes.float8_e4m3fn, 0.3, 0.05),
        (ml_dtypes.float4_e2m1fn, 0.3, 0.05),
        (np.complex64, 1e-4, 1e-5),
        (np.complex128, 1e-9, 1e-10),
        (np.int32, 0.0, 0.0),
        (ml_dtypes.int4, 0.0, 0.0),
    ],
)
def test_limits_are_those_of_the_table(dtype: Any, rtol: float, atol: float) -> None:
    dtype = np.dtype(dtype)
    assert DEFAULT.limits(dtype, 0.5) == (rtol, atol)
    assert DEFAULT.limits(dtype, 3.0) == pytest.approx((rtol, 3 * atol))
    ten = Tolerance(exact=True).between_executors()
    assert ten.limits(dtype, 0.5) == pytest.approx((10 * rtol, 10 * atol))
    assert Tolerance(ulp=3).limits(dtype, 2.0) == (0.0, 0.0)
    assert Tolerance(exact=True, rtol=1.0).limits(dtype, 2.0) == (0.0, 0.0)
    assert Tolerance(ulp=3, rtol=0.5).limits(dtype, 1.0) == pytest.approx((0.5, atol))
    assert Tolerance(ulp=3, atol=0.5).limits(dtype, 2.0) == pytest.approx((rtol, 0.5))


def test_a_difference_as_large_as_a_limit_agrees() -> None:
    a, b = np.array([1.0, 4.0]), np.array([1.0, 5.0])
    assert compare_values(a, b, Tolerance(rtol=0.2, atol=0.0)).agree
    assert not compare_values(a, b, Tolerance(rtol=0.19, atol=0.0)).agree
    assert compare_values(a, b, Tolerance(rtol=0.0, atol=1.0)).agree
    assert compare_values(a, b, Tolerance(rtol=0.1, atol=0.5)).agree
    assert compare_values(-a, -b, Tolerance(rtol=0.2, atol=0.0)).agree
    assert not compare_values(a, b, Tolerance(rtol=0.1, atol=0.4)).agree


def test_either_way_to_agree_is_enough() -> None:
    a, b = f32(1.0, 1.0), np.array([1.0 + 2**-22, 1.5], np.float32)
    assert compare_values(a, b, Tolerance(ulp=2, rtol=0.0, atol=0.0)).mismatches == 1
    assert compare_values(a, b, Tolerance(ulp=1, rtol=0.0, atol=0.0)).mismatches == 2
    assert compare_values(a, b, Tolerance(ulp=2, atol=0.5)).agree
    assert compare_values(a, b, Tolerance(ulp=2**22)).agree


def test_errors_add_up() -> None:
    first = Errors(1, 2, 3.0, 0.5, None, 4, 5, True, "", (1, 2))
    second = Errors(3, 6, 1.0, 0.75, 7, 12, 21, False, "wrong", (4, 0, 3))
    both = Errors(4, 8, 3.0, 0.75, 7, 16, 26, False, "wrong", (5, 2, 3))
    assert first + second == second + first == both
    assert (first + first).bit_exact
    assert (first + first).problem == ""
    assert (second + second).max_ulp == 7
    assert (first + first).max_ulp is None
    assert (second + not_comparable("worse")).problem == "wrong"
    assert Errors() + Errors() == Errors()


@pytest.mark.parametrize(
    ("errors", "text", "agree"),
    [
        (not_comparable("kinds differ"), "kinds differ", False),
        (Errors(3), "bit-exact", True),
        (Errors(3, max_ulp=0, bit_exact=False), "max abs 0, max rel 0, max ULP 0", True),
        (Errors(3, 1, bit_exact=False), "1 of 3 elements differ", False),
        (Errors(3, 1, 2.0, 0.5, bit_exact=False), "max abs 2, max rel 0.5, 1 of 3 elements", False),
        (
            Errors(3, 2, 2.0, 0.5, 9, 1, 1, False),
            "max abs 2, max rel 0.5, max ULP 9, 2 of 3 elements differ, "
            "1 NaN mismatches, 1 inf mismatches",
            False,
        ),
    ],
)
def test_errors_in_one_line(errors: Errors, text: str, agree: bool) -> None:
    assert str(errors).removesuffix(" differ") == text.removesuffix(" differ")
    assert errors.agree == agree


def test_everything_about_floats_is_told() -> None:
    a = f32(1, 2, np.nan, np.inf, 5, np.nan, 0, -np.inf, 8)
    b = f32(1, 3, 1, -np.inf, 5, -np.nan, -0.0, 7, 4)
    found = compare_values(a, b, DEFAULT)
    # Of the five that are finite two are equal bits, both zeros are 0 apart, 2 and 3, and 8 and 4
    # half and all of the steps between powers of two.
    assert found == Errors(9, 5, 4.0, 0.5, 2**23, 1, 2, False, "", (3, *[0] * 22, 1, 1)), found
    assert compare_values(b, a, DEFAULT) == found


def test_what_has_no_finite_difference_has_no_distance() -> None:
    found = compare_values(f32(np.nan, np.inf), f32(1, np.nan), DEFAULT)
    assert found == Errors(2, 2, 0.0, 0.0, 0, 2, 0, False, "", (0,))
    assert compare_values(f32(0.25), f32(0.5), DEFAULT).max_rel == 0.5
    found = compare_values(
        f32(np.nan, 1), np.array([0xFFC00001, 0x3F800000], np.uint32).view("f4"), DEFAULT
    )
    assert found == Errors(2, 0, 0.0, 0.0, 0, 0, 0, True, "", (1,))


@pytest.mark.parametrize("size", [3, 4096, 4097, 5000])
def test_equal_tensors_of_any_size(size: int) -> None:
    floats, numbers = np.ones(size, np.float32), np.arange(size)
    assert compare_values(floats, floats, DEFAULT) == Errors(size, max_ulp=0, spread=(size,))
    assert compare_values(numbers, numbers, DEFAULT) == Errors(size)
    waves = floats.astype(np.complex64)
    parts = 1 if size <= 4096 else 2
    expected = Errors(size * parts, max_ulp=0, spread=(size * parts,))
    assert compare_values(waves, waves, DEFAULT) == expected


def test_the_largest_relative_error_of_integers_is_of_the_larger_one() -> None:
    found = compare_values(np.array([0, -8, 3, 1]), np.array([1, 2, 4, 1]), DEFAULT)
    assert found == Errors(4, 3, 10.0, 1.25, bit_exact=False)
    assert compare_values(np.array([2, 2]), np.array([4, 3]), DEFAULT).max_rel == 0.5
    tiny = [np.array([values], np.int8).astype(ml_dtypes.int4) for values in ([-8, 1], [7, 1])]
    assert compare_values(*tiny, DEFAULT) == Errors(2, 1, 15.0, 1.875, bit_exact=False)


def test_the_very_largest_of_a_dtype_do_not_widen_its_limits() -> None:
    top = np.finfo(np.float32).max
    assert not compare_values(f32(top, 0), f32(top, 1), DEFAULT).agree
    assert compare_values(f32(top / 2**21, 0), f32(top / 2**21, 1e10), DEFAULT).agree
    assert not compare_values(f32(top / 2**19.5, 0), f32(top / 2**19.5, 1e10), DEFAULT).agree
    # Of float16 those from 4094 on are left out.
    half = [np.array([4000, value], np.float16) for value in (0, 15)]
    assert compare_values(*half, DEFAULT).agree
    half = [np.array([4094, value], np.float16) for value in (0, 15)]
    assert not compare_values(*half, DEFAULT).agree
    # The larger side counts, whichever it is.
    a, b = f32(1e6, 0), f32(1e6 + 1, 9)
    assert compare_values(a, b, DEFAULT).agree
    assert compare_values(f32(0, 0), f32(-2, 1e-5 * 1.5), Tolerance(rtol=1.0)).agree
    assert compare_values(f32(-2, 1e-5 * 1.5), f32(0, 0), Tolerance(rtol=1.0)).agree


def test_steps_of_the_smallest_floats() -> None:
    """The bits of a float4 take half of a byte."""
    numbers = [-6, -0.5, -0.0, 0.0, 0.5, 6]
    first = np.array(numbers).astype(ml_dtypes.float4_e2m1fn)
    found = compare_values(first, first[::-1].copy(), DEFAULT)
    assert (found.max_ulp, found.max_abs, found.spread) == (14, 12.0, (2, 0, 2, 0, 2))
    ends = [np.array([sign * np.finfo(np.float64).max]) for sign in (1, -1)]
    assert compare_values(*ends, DEFAULT).max_ulp == 2 * int(np.array(ends[0]).view(np.uint64)[0])


def test_parts_of_values() -> None:
    assert compare_values({1: 0.5, 2: 1.0}, {1: 0.5, 2: 2.0}, DEFAULT).mismatches == 1
    assert compare_values({1: 0.5}, {2: 0.5}, DEFAULT).problem == "the keys of the maps differ"
    assert (
        compare_values([f32(1)], [f32(1), f32(2)], DEFAULT).problem
        == "sequence lengths differ: 1 and 2"
    )
    for first, second, text in [
        ([f32(1)], f32(1), "kinds differ: a sequence and a tensor"),
        (f32(1), [f32(1)], "kinds differ: a tensor and a sequence"),
        ({1: 0.5}, f32(1), "kinds differ: a map and a tensor"),
        (None, {1: 0.5}, "kinds differ: an empty optional and a map"),
        (f32(1), None, "kinds differ: a tensor and an empty optional"),
    ]:
        assert compare_values(first, second, DEFAULT) == Errors(bit_exact=False, problem=text)
    words = np.array(["a", "b"])
    assert compare_values(words, words, DEFAULT) == Errors(2)
    assert compare_values(words, np.array(["a", "c"], object), DEFAULT) == Errors(
        2, 1, bit_exact=False
    )
    assert (
        compare_values(f32(1), np.ones(1), DEFAULT).problem == "dtypes differ: float32 and float64"
    )
    assert compare_values(words, f32(1, 2), DEFAULT).mismatches == 2
    assert (
        compare_values(np.ones(1), f32(1), DEFAULT).problem == "dtypes differ: float64 and float32"
    )
    assert compare_values(f32(1, 2), f32(1), DEFAULT).problem == "shapes differ: [2] and [1]"
    assert compare_values(np.ones(1, np.longlong), np.ones(1, np.int64), DEFAULT).agree
    assert compare_values([f32(1)] * 300, [f32(1)] * 300, DEFAULT).agree
    assert len({DEFAULT, Tolerance(), Errors(), Errors()}) == 2


def test_complex_numbers_are_compared_by_their_parts() -> None:
    for dtype in (np.complex64, np.complex128):
        first = np.array([1 + 1j, 2 - 3j], dtype)
        assert compare_values(first, first.conj(), DEFAULT).mismatches == 2
        assert compare_values(first, first * (1 + 1e-11), DEFAULT).agree
        assert not compare_values(first, first * (1 + 1e-3), DEFAULT).agree
    assert compare_values(first, first * (1 + 1e-7), DEFAULT).mismatches == 4
