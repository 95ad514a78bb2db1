"""Sinh, Cosh, Asinh, Acosh and Atanh below the opset they came with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onnxreduce_cli import convert, executor
from tests.support import converts, one_node, run

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
}


def numbers(dtype: type) -> np.ndarray:
    """Of every exponent some, and where the functions change their ways more."""
    info = np.finfo(dtype)
    exponents = np.arange(np.log2(info.smallest_subnormal), np.log2(info.max))
    sizes = np.concatenate([2.0**exponents, 1.7 * 2.0 ** exponents[:-1], [info.max, np.inf]])
    near_one = 1 + np.linspace(0, 1, 300) ** 4
    sizes = np.concatenate([sizes, near_one, 1 / near_one, np.linspace(0, 800, 3001), [0.0]])
    return np.concatenate([sizes, -sizes, [np.nan]]).astype(dtype)


@pytest.mark.parametrize(("dtype", "wider", "ulps"), [
    (np.float16, np.float64, 1),
    (np.float32, np.float64, 8),
    (np.float64, np.longdouble, 8),
])  # fmt: skip
@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_to_a_few_units_in_the_last_place(
    op_type: str, dtype: type, wider: type, ulps: int
) -> None:
    x = numbers(dtype)
    model = convert(one_node(op_type, 9, {"x": x}), 8, check=False)
    with np.errstate(all="ignore"):
        truth = FUNCTIONS[op_type](x.astype(wider))
        rounded = truth.astype(dtype)
    for result in (executor.run(model, {"x": x})["y0"], run(model, {"x": x})["y0"]):
        assert result.dtype == dtype
        finite = np.isfinite(rounded)
        np.testing.assert_array_equal(result[~finite], rounded[~finite])
        assert np.array_equal(np.signbit(result[finite]), np.signbit(rounded[finite]))
        apart = np.abs(result[finite].astype(wider) - truth[finite])
        assert np.all(apart <= ulps * np.spacing(np.abs(rounded[finite])))


@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_sinh_cosh_asinh_acosh_atanh_of_any_shape(op_type: str) -> None:
    x = np.linspace(-3, 3, 24).reshape(2, 3, 4).astype(np.float32)
    source = one_node(op_type, 9, {"x": x})
    empty, scalar = {"x": x[:, :0]}, {"x": np.array(x[0, 0, 0])}
    for target in (8, 7):
        converts(source, target, {"x": x})
        converts(one_node(op_type, 9, empty), target, empty)
        converts(one_node(op_type, 9, scalar), target, scalar)
        converts(one_node(op_type, 9, {"x": x}, shapes={"x": [2, "n", None]}), target, {"x": x})
    converts(one_node(op_type, 22, {"x": x.astype(np.float16)}), 8, {"x": x.astype(np.float16)})
