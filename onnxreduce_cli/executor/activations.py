"""Element-wise activations with attributes or slopes.

Source: the definitions named at each kernel. float16 and bfloat16 are computed in float32 and
rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from onnxreduce_cli.executor.broadcast import one_way
from onnxreduce_cli.executor.dtypes import (
    FLOAT64,
    Array,
    is_float,
    to_dtype,
    truncate_to_integer,
    wider,
)
from onnxreduce_cli.executor.elementwise import erf
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.registry import Call, Kernel, kernel


def _weak(value: float, x: Array) -> Array:
    # An array of x's dtype: NumPy 1 would widen a rank-0 x on meeting a Python float.
    return np.array(value, dtype=x.dtype)


_Shaped: TypeAlias = Callable[[Array, dict[str, Any]], Any]


def _elu(x: Array, attrs: dict[str, Any]) -> Array:
    alpha = _weak(attrs["alpha"], x)
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, _weak(0, x))), x)


def _selu(x: Array, attrs: dict[str, Any]) -> Array:
    alpha, gamma = _weak(attrs["alpha"], x), _weak(attrs["gamma"], x)
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, _weak(0, x))))


def _celu(x: Array, attrs: dict[str, Any]) -> Array:
    alpha, zero = _weak(attrs["alpha"], x), _weak(0, x)
    return np.maximum(x, zero) + np.minimum(zero, alpha * np.expm1(x / alpha))


def _gelu(x: Array, attrs: dict[str, Any]) -> Array:
    # As the text says: the function body in the schema has float constants even for doubles.
    wide, approximate = x.astype(FLOAT64), attrs["approximate"]
    if approximate == "tanh":
        curve = np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))
    elif approximate == "none":
        curve = erf(wide / math.sqrt(2))
    else:
        raise Invalid(f"approximate {approximate!r} is unknown")
    return 0.5 * wide * (1 + curve)


def _hard_sigmoid(x: Array, attrs: dict[str, Any]) -> Array:
    line = _weak(attrs["alpha"], x) * x + _weak(attrs["beta"], x)
    return np.maximum(_weak(0, x), np.minimum(_weak(1, x), line))


def _leaky_relu(x: Array, attrs: dict[str, Any]) -> Array:
    return np.where(x < 0, _weak(attrs["alpha"], x) * x, x)


def _thresholded_relu(x: Array, attrs: dict[str, Any]) -> Array:
    return np.where(x > _weak(attrs["alpha"], x), x, _weak(0, x))


def _shrink(x: Array, attrs: dict[str, Any]) -> Array:
    bias, bound = attrs["bias"], attrs["lambd"]
    if not is_float(x.dtype):
        # Integers: the attributes are floats, so the result is cut back to an integer.
        wide = x.astype(FLOAT64)
        shrunk = np.where(wide < -bound, wide + bias, np.where(wide > bound, wide - bias, 0.0))
        return truncate_to_integer(shrunk, x.dtype)
    bias, bound = _weak(bias, x), _weak(bound, x)
    return np.where(x < -bound, x + bias, np.where(x > bound, x - bias, _weak(0, x)))


def _attribute_kernel(function: _Shaped) -> Kernel:
    def run(call: Call, x: Array) -> Array:
        return to_dtype(function(wider(x), call.attrs), x.dtype)

    return run


_WITH_ATTRIBUTES: dict[str, tuple[_Shaped, tuple[int, ...]]] = {
    "Celu": (_celu, (12, 28)),
    "Elu": (_elu, (1, 6, 22)),
    "Gelu": (_gelu, (20,)),
    "HardSigmoid": (_hard_sigmoid, (1, 6, 22)),
    "LeakyRelu": (_leaky_relu, (1, 6, 16)),
    "Selu": (_selu, (1, 6, 22)),
    "Shrink": (_shrink, (9,)),
    "ThresholdedRelu": (_thresholded_relu, (10, 22)),
}

for _name, (_shaped, _versions) in _WITH_ATTRIBUTES.items():
    kernel(_name, *_versions)(_attribute_kernel(_shaped))


@kernel("PRelu", 1, 6)
def prelu_1(call: Call, x: Array, slope: Array) -> Array:
    """Scale negative elements by one slope, or by one slope for each channel (axis 1)."""
    if slope.size == 1:
        fitted = slope.reshape((1,) * x.ndim)
    elif slope.ndim == 1 and x.ndim > 1 and slope.shape[0] == x.shape[1]:
        fitted = slope.reshape((-1,) + (1,) * (x.ndim - 2))
    elif slope.shape == x.shape:
        fitted = slope
    else:
        raise Invalid(f"slope of shape {slope.shape} fits neither one value nor the channels")
    return _prelu(x, fitted)


@kernel("PRelu", 7, 9, 16)
def prelu_7(call: Call, x: Array, slope: Array) -> Array:
    """Scale negative elements by slopes that broadcast to x."""
    return _prelu(x, one_way(slope, x.shape))


def _prelu(x: Array, slope: Array) -> Array:
    wide = wider(x)
    return to_dtype(np.where(wide < 0, wide * wider(slope), wide), x.dtype)
