"""Sin, Cos, Tan, Asin, Acos and Atan below the opset they came with: NumPy alone judges there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onnxreduce_cli import convert, executor
from onnxreduce_cli.steps.trigonometric import _two_over_pi
from tests.support import converts, one_node

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
}


def numbers(dtype: type) -> np.ndarray:
    """Of every exponent some, multiples of a quarter turn, and all around 1."""
    info = np.finfo(dtype)
    exponents = np.arange(np.log2(info.tiny), np.log2(info.max))
    sizes = np.concatenate([2.0**exponents, 1.7 * 2.0 ** exponents[:-1], [info.max, np.inf]])
    quarters = np.arange(200) * np.pi / 2
    near_one = 1 + np.linspace(0, 1, 200) ** 4
    some = np.linspace(0, 60, 997)
    sizes = np.concatenate([sizes, quarters, near_one, 1 / near_one, some, [0.0]])
    with np.errstate(over="ignore"):
        return np.concatenate([sizes, -sizes, [np.nan]]).astype(dtype)


@pytest.mark.parametrize(("dtype", "wider", "ulps"), [
    (np.float16, np.float64, 0.501),
    (np.float32, np.float64, 0.501),
    (np.float64, np.longdouble, 6),
])  # fmt: skip
@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_to_the_last_digit(op_type: str, dtype: type, wider: type, ulps: float) -> None:
    x = numbers(dtype)
    model = convert(one_node(op_type, 7, {"x": x}), 6, check=False)
    with np.errstate(all="ignore"):
        truth = FUNCTIONS[op_type](x.astype(wider))
        rounded = truth.astype(dtype)
    result = executor.run(model, {"x": x})["y0"]
    assert result.dtype == dtype
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(result[~finite], rounded[~finite])
    assert np.array_equal(np.signbit(result[finite]), np.signbit(rounded[finite]))
    apart = np.abs(result[finite].astype(wider) - truth[finite])
    assert np.all(apart <= ulps * np.spacing(np.abs(rounded[finite])))


@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_sin_cos_tan_asin_acos_atan_of_any_shape(op_type: str) -> None:
    x = np.linspace(-3, 3, 24).reshape(2, 3, 4).astype(np.float32)
    sets = [{"x": x}, {"x": x[:, :0]}, {"x": np.array(x[0, 0, 0])}]
    for target in (6, 1):
        for feeds in sets:
            converts(one_node(op_type, 7, feeds), target, feeds)
        converts(one_node(op_type, 7, {"x": x}, shapes={"x": [2, "n", None]}), target, {"x": x})


def test_digits_of_two_over_pi() -> None:
    groups = _two_over_pi(48)
    assert groups[0] == int(2 / np.pi * 2**24)
    assert groups[1] == int(2 / np.pi * 2**48) % 2**24
    assert groups[:9] == _two_over_pi(9)
