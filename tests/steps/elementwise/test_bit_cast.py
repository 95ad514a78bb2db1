"""BitCast below opset 26, by arithmetic."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from onnxreduce_cli import convert, executor
from tests.support import blockers, converts, one_node, op_types

pytestmark = pytest.mark.newest

INTEGERS = {8: ("int8", "uint8"), 16: ("int16", "uint16"), 32: ("int32", "uint32")}
INTEGERS[64] = ("int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
X = np.array([1.5, -0.0, np.nan], np.float32)


def number_of(kind: str) -> int:
    return helper.np_dtype_to_tensor_dtype(dtype_of(kind))


def dtype_of(kind: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, kind) if hasattr(ml_dtypes, kind) else kind)


def bits_of(kind: str) -> np.ndarray:
    """Bits of an integer: all where they are few, else those around every power of two."""
    dtype = np.dtype(kind)
    width = dtype.itemsize * 8
    if width == 8:
        return np.arange(2**width).astype(f"uint{width}").view(dtype)
    powers = [1 << place for place in range(width)]
    full = (1 << width) - 1
    numbers = {number + step & full for number in (*powers, full) for step in (-2, -1, 0, 1, 2)}
    numbers |= {full - number for number in numbers}
    numbers |= {number * 0x9E3779B97F4A7C15 & full for number in numbers}
    return np.array(sorted(numbers), f"uint{width}").view(dtype)


@pytest.mark.parametrize("width", INTEGERS)
def test_between_integers(width: int) -> None:
    for given, to in (INTEGERS[width], INTEGERS[width][::-1]):
        x = bits_of(given)
        source = one_node("BitCast", 26, {"x": x}, to=number_of(to))
        for target in (25, 13, 9, 7):
            assert op_types(converts(source, target, {"x": x}, exact=True)) == ["Cast"]


def same_bits(source: onnx.ModelProto, target: int, x: np.ndarray) -> None:
    """Convert, run in NumPy, compare bit by bit, but for those of a NaN; most must be numbers."""
    result = convert(source, target, check=False)
    onnx.checker.check_model(result, full_check=True)
    assert "BitCast" not in op_types(result)
    before, after = (executor.run(item, {"x": x})["y0"] for item in (source, result))
    assert before.dtype == after.dtype
    assert before.shape == after.shape
    unsigned = f"uint{before.dtype.itemsize * 8}"
    same = before.view(unsigned) == after.view(unsigned)
    wrong = ~same & ~((before != before) & (after != after))
    assert not wrong.any(), (x[wrong][:5], before[wrong][:5], after[wrong][:5])
    assert same.sum() > len(x) // 2


@pytest.mark.parametrize("to", FLOATS)
def test_bit_cast(to: str) -> None:
    for given in INTEGERS[dtype_of(to).itemsize * 8]:
        x = bits_of(given)
        source = one_node("BitCast", 26, {"x": x}, to=number_of(to))
        for target in (25, 13) if to == "bfloat16" else (25, 13, 9, 7):
            same_bits(source, target, x)


@pytest.mark.parametrize("to", FLOAT8)
def test_to_float8(to: str) -> None:
    for given in INTEGERS[8]:
        x = bits_of(given)
        source = one_node("BitCast", 26, {"x": x}, to=number_of(to))
        for target in (25, 19):
            same_bits(source, target, x)


@pytest.mark.parametrize("given", ["float8_e4m3fnuz", "float8_e5m2fnuz"])
@pytest.mark.parametrize("to", ["int8", "uint8", "float8_e5m2"])
def test_from_floats_of_one_nan(given: str, to: str) -> None:
    x = np.arange(256).astype(np.uint8).view(dtype_of(given))
    source = one_node("BitCast", 26, {"x": x}, to=number_of(to))
    for target in (25, 19):
        same_bits(source, target, x)


def test_four_bits() -> None:
    x = np.arange(16).astype(np.uint8)
    for given, to in (("uint4", "int4"), ("float4_e2m1fn", "uint4"), ("int4", "float4_e2m1fn")):
        array = x.astype(np.uint8).view(dtype_of(given)) if given[0] == "f" else x.astype(given)
        source = one_node("BitCast", 26, {"x": array}, to=number_of(to))
        same_bits(source, 25, array)


def test_scales_of_a_byte() -> None:
    x = np.arange(256).astype(np.uint8)
    scales = x.view(dtype_of("float8_e8m0fnu"))
    source = one_node("BitCast", 26, {"x": scales}, to=TensorProto.UINT8)
    same_bits(source, 25, scales)
    back = convert(one_node("BitCast", 26, {"x": x}, to=number_of("float8_e8m0fnu")), 25)
    (given,) = ReferenceEvaluator(back).run(None, {"x": x})
    assert (given.view(np.uint8) == x).all()


def test_one_dtype_and_bools() -> None:
    x = np.array([True, False])
    source = one_node("BitCast", 26, {"x": x}, to=TensorProto.UINT8)
    assert op_types(converts(source, 25, {"x": x}, exact=True)) == ["Cast"]
    source = one_node("BitCast", 26, {"x": X}, to=TensorProto.FLOAT)
    assert op_types(converts(source, 25, {"x": X}, exact=True)) == ["Identity"]


def test_constants_keep_the_bits_of_their_nans() -> None:
    x = np.array([0x7FC01234, 0x3F800000], np.uint32).view(np.float32)
    source = one_node("BitCast", 26, {"x": x}, initializers=("x",), to=TensorProto.INT32)
    result = converts(source, 13, {}, exact=True)
    assert op_types(result) == ["Constant"]
    assert executor.run(result, {})["y0"].tolist() == [0x7FC01234, 0x3F800000]


@pytest.mark.parametrize("given", ["float32", "float16", "float8_e4m3fn"])
def test_bits_of_a_float_that_may_be_nan(given: str) -> None:
    x = X.astype(dtype_of(given))
    to = number_of(INTEGERS[x.itemsize * 8][0])
    (blocker,) = blockers(one_node("BitCast", 26, {"x": x}, to=to), 25)
    assert "nothing before opset 26 gives those of a NaN" in blocker.reason


def test_complex_numbers() -> None:
    x = np.array([1 + 2j], np.complex64)
    (blocker,) = blockers(one_node("BitCast", 26, {"x": x}, to=TensorProto.INT64), 25)
    assert "nothing before opset 26 takes complex64 apart" in blocker.reason
