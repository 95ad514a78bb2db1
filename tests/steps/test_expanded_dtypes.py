"""Operators written out at an opset that has them, of dtypes that came after they did."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxreduce_cli import ConversionError, convert
from tests.support import blockers, converts, one_node, op_types

pytestmark = pytest.mark.newest

BFLOAT16 = ml_dtypes.bfloat16
FLOAT8 = [
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
]
NUMBERS = [0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 7, -300, 1e-30, 3e38, np.inf, -np.inf, np.nan]
X = np.array(NUMBERS, BFLOAT16)


@pytest.mark.parametrize(
    ("op_type", "opset", "attributes"),
    [
        ("IsInf", 20, {}),
        ("IsInf", 20, {"detect_negative": 0}),
        ("IsNaN", 20, {}),
        ("Round", 22, {}),
        ("Sign", 13, {}),
        ("Asinh", 22, {}),
    ],
)
def test_bfloat16(op_type: str, opset: int, attributes: dict[str, Any]) -> None:
    x = X[:7] if op_type == "Asinh" else X
    source = one_node(op_type, opset, {"x": x}, **attributes)
    result = converts(source, opset, {"x": x}, expand=[op_type], in_numpy=True)
    assert op_type not in op_types(result)


def test_clip_of_bfloat16_for_a_runtime_without_kernels_for_it() -> None:
    source = one_node("Clip", 22, {"x": X})
    with pytest.raises(ConversionError, match="has no kernel for 16-bit floats"):
        convert(source, runtime="onnxruntime==1.15")


def test_mod_of_bfloat16_has_every_digit() -> None:
    rng = np.random.default_rng(0)
    a, b = (
        (rng.choice([-1, 1], 5000) * 2.0 ** rng.uniform(-120, 120, 5000)).astype(BFLOAT16)
        for _ in range(2)
    )
    source = one_node("Mod", 13, {"a": a, "b": b}, fmod=1)
    result = converts(source, 13, {"a": a, "b": b}, exact=True, in_numpy=True, expand=["Mod"])
    assert "Mod" not in op_types(result)


@pytest.mark.parametrize("op_type", ["IsInf", "IsNaN"])
@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_is_compared_in_float(op_type: str, dtype: type) -> None:
    x = np.arange(256, dtype=np.uint8).view(dtype)
    source = one_node(op_type, 20, {"x": x})
    result = converts(source, 20, {"x": x}, expand=[op_type], exact=True, in_numpy=True)
    assert "Cast" in op_types(result)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint8, np.uint16])
def test_narrow_integers_are_subtracted_in_wider_ones(dtype: type) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, 0, 1, info.max], dtype)
    source = one_node("Sign", 13, {"x": x})
    result = converts(source, 13, {"x": x}, expand=["Sign"], exact=True, in_numpy=True)
    assert op_types(result).count("Sub") == 1
    # From 14 on Sub takes them.
    assert op_types(converts(source, 14, {"x": x}, expand=["Sign"])).count("Cast") == 2


def test_a_product_of_float8_is_not_written_otherwise() -> None:
    x = np.ones((2, 2), ml_dtypes.float8_e4m3fn)
    scale, zero = np.ones((), np.float32), np.zeros((), ml_dtypes.float8_e4m3fn)
    names = ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero")
    inputs = dict(zip(names, (x, scale, zero, x, scale, zero, scale, zero), strict=True))
    (blocker,) = blockers(one_node("QLinearMatMul", 21, inputs), 21, expand=["QLinearMatMul"])
    assert blocker.reason.startswith(
        "it cannot be expanded: 'a' is float8e4m3fn, and only integers"
    )
