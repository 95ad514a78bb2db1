"""Element-wise operators: arithmetic, comparison, activations.

Source: the definitions named at each kernel. float16 and bfloat16 are computed in float32
and rounded once. Before opset 7 the binary operators broadcast by attributes, from then on
like NumPy; before opset 8 the variadic ones do not broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce as fold
from typing import Any, TypeAlias

import numpy as np

from onnxreduce_cli.executor.broadcast import legacy, same_shapes
from onnxreduce_cli.executor.dtypes import (
    BOOL,
    FLOAT64,
    Array,
    finfo,
    is_float,
    to_dtype,
    truncate_to_integer,
    wider,
)
from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.registry import Call, Kernel, kernel

Unary: TypeAlias = Callable[[Array], Any]
Binary: TypeAlias = Callable[[Array, Array], Any]

_erf64 = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    """Compute the error function in float64."""
    return np.asarray(_erf64(x.astype(FLOAT64))).astype(FLOAT64)


def sigmoid(x: Array) -> Array:
    """Compute 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.absolute(x))
    return np.where(np.signbit(x), small / (1 + small), 1 / (1 + small))


def _sign(x: Array) -> Array:
    # The definition does not say what the sign of NaN is; NumPy gives NaN.
    return np.sign(x)


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, np.zeros((), dtype=x.dtype))


def _unary_kernel(function: Unary) -> Kernel:
    def run(call: Call, x: Array) -> Array:
        return to_dtype(function(wider(x)), x.dtype)

    return run


_UNARY: dict[str, tuple[Unary, tuple[int, ...]]] = {
    "Abs": (np.absolute, (1, 6, 13)),
    "Acos": (np.arccos, (7, 22)),
    "Acosh": (np.arccosh, (9, 22)),
    "Asin": (np.arcsin, (7, 22)),
    "Asinh": (np.arcsinh, (9, 22)),
    "Atan": (np.arctan, (7, 22)),
    "Atanh": (np.arctanh, (9, 22)),
    "BitwiseNot": (np.bitwise_not, (18,)),
    "Ceil": (np.ceil, (1, 6, 13)),
    "Cos": (np.cos, (7, 22)),
    "Cosh": (np.cosh, (9, 22)),
    "Erf": (erf, (9, 13)),
    "Exp": (np.exp, (1, 6, 13)),
    "Floor": (np.floor, (1, 6, 13)),
    "Log": (np.log, (1, 6, 13)),
    "Neg": (np.negative, (1, 6, 13)),
    "Not": (np.logical_not, (1,)),
    "Reciprocal": (np.reciprocal, (1, 6, 13)),
    "Relu": (lambda x: np.maximum(x, np.zeros((), x.dtype)), (1, 6, 13, 14)),
    "Round": (np.rint, (11, 22)),
    "Sigmoid": (sigmoid, (1, 6, 13)),
    "Sign": (_sign, (9, 13)),
    "Sin": (np.sin, (7, 22)),
    "Sinh": (np.sinh, (9, 22)),
    "Softplus": (_softplus, (1, 22)),
    "Softsign": (lambda x: x / (1 + np.absolute(x)), (1, 22)),
    "Sqrt": (np.sqrt, (1, 6, 13)),
    "Tan": (np.tan, (7, 22)),
    "Tanh": (np.tanh, (1, 6, 13)),
}

for _name, (_unary, _versions) in _UNARY.items():
    kernel(_name, *_versions)(_unary_kernel(_unary))


@kernel("IsNaN", 9, 13, 20)
def is_nan(call: Call, x: Array) -> Array:
    """Return whether each element is NaN, for any float type."""
    return np.not_equal(x, x)


@kernel("IsInf", 10, 20)
def is_inf(call: Call, x: Array) -> Array:
    """Return whether each element is an infinity of a sign that the attributes ask for."""
    wide = x.astype(FLOAT64)
    above = np.isposinf(wide) if call.attrs["detect_positive"] else np.zeros(x.shape, BOOL)
    below = np.isneginf(wide) if call.attrs["detect_negative"] else np.zeros(x.shape, BOOL)
    return np.logical_or(above, below)


def _divide(a: Array, b: Array) -> Array:
    if is_float(a.dtype):
        return np.divide(a, b)
    if np.any(b == 0):
        raise Invalid("integer division by zero")
    # Towards zero, as Div 14 says, and as every runtime did before.
    quotient = np.floor_divide(a, b)
    if a.dtype.kind == "u":
        return quotient
    inexact = np.multiply(quotient, b) != a
    return quotient + (inexact & (np.less(a, 0) != np.less(b, 0))).astype(a.dtype)


def _binary_kernels(
    name: str, function: Binary, old: tuple[int, ...], new: tuple[int, ...]
) -> None:
    def compute(a: Array, b: Array, dtype: Any) -> Array:
        return to_dtype(function(wider(a), wider(b)), dtype)

    def old_kernel(call: Call, a: Array, b: Array) -> Array:
        return compute(a, legacy(call, a, b), a.dtype)

    def new_kernel(call: Call, a: Array, b: Array) -> Array:
        return compute(a, b, a.dtype)

    if old:
        kernel(name, *old)(old_kernel)
    kernel(name, *new)(new_kernel)


_binary_kernels("Add", np.add, (1, 6), (7, 13, 14))
_binary_kernels("Sub", np.subtract, (1, 6), (7, 13, 14))
_binary_kernels("Mul", np.multiply, (1, 6), (7, 13, 14))
_binary_kernels("Div", _divide, (1, 6), (7, 13, 14))
_binary_kernels("And", np.logical_and, (1,), (7,))
_binary_kernels("Or", np.logical_or, (1,), (7,))
_binary_kernels("Xor", np.logical_xor, (1,), (7,))
_binary_kernels("BitwiseAnd", np.bitwise_and, (), (18,))
_binary_kernels("BitwiseOr", np.bitwise_or, (), (18,))
_binary_kernels("BitwiseXor", np.bitwise_xor, (), (18,))


def _comparison_kernels(
    name: str, function: Binary, old: tuple[int, ...], new: tuple[int, ...]
) -> None:
    def old_kernel(call: Call, a: Array, b: Array) -> Array:
        return to_dtype(function(a, legacy(call, a, b)), BOOL)

    def new_kernel(call: Call, a: Array, b: Array) -> Array:
        return to_dtype(function(a, b), BOOL)

    if old:
        kernel(name, *old)(old_kernel)
    kernel(name, *new)(new_kernel)


_comparison_kernels("Equal", np.equal, (1,), (7, 11, 13, 19))
_comparison_kernels("Greater", np.greater, (1,), (7, 9, 13))
_comparison_kernels("Less", np.less, (1,), (7, 9, 13))
_comparison_kernels("GreaterOrEqual", np.greater_equal, (), (12, 16))
_comparison_kernels("LessOrEqual", np.less_equal, (), (12, 16))


def _power(base: Array, exponent: Array) -> Array:
    """Raise to a power; the result has the dtype of the base."""
    dtype = base.dtype
    if is_float(dtype):
        return to_dtype(np.power(wider(base).astype(FLOAT64), exponent.astype(FLOAT64)), dtype)
    if not is_float(exponent.dtype) and not np.any(np.less(exponent, 0)):
        return np.power(base, exponent.astype(dtype))
    return truncate_to_integer(np.power(base.astype(FLOAT64), exponent.astype(FLOAT64)), dtype)


@kernel("Pow", 1)
def pow_1(call: Call, base: Array, exponent: Array) -> Array:
    """Raise to a power, broadcasting by attributes."""
    return _power(base, legacy(call, base, exponent))


@kernel("Pow", 7, 12, 13, 15)
def pow_7(call: Call, base: Array, exponent: Array) -> Array:
    """Raise to a power, broadcasting like NumPy; from 12 the types may differ."""
    return _power(base, exponent)


@kernel("Mod", 10, 13, 28)
def mod(call: Call, a: Array, b: Array) -> Array:
    """Return the remainder, with the sign of the divisor or, with `fmod`, of the dividend."""
    if not is_float(a.dtype):
        if np.any(np.equal(b, 0)):
            raise Invalid("integer division by zero")
        return np.fmod(a, b) if call.attrs["fmod"] else np.mod(a, b)
    if call.attrs["fmod"]:
        return to_dtype(np.fmod(wider(a), wider(b)), a.dtype)
    if call.since < 28:
        raise Invalid("fmod must be 1 for floating-point inputs")
    return to_dtype(np.mod(wider(a), wider(b)), a.dtype)


@kernel("BitShift", 11, 28)
def bit_shift(call: Call, x: Array, amount: Array) -> Array:
    """Shift bits; beyond the width only copies of the sign bit remain (defined since 28)."""
    bits = x.dtype.itemsize * 8
    beyond = np.less(amount, 0) | np.greater_equal(amount, bits)
    safe = np.where(beyond, 0, amount).astype(x.dtype)
    direction = call.attrs["direction"]
    if direction == "LEFT":
        return np.where(beyond, 0, np.left_shift(x, safe)).astype(x.dtype)
    if direction == "RIGHT":
        # In the dtype itself, as NumPy computes uint64 with int64 in float64.
        rest = np.where(np.less(x, 0), -1, 0).astype(x.dtype)
        return np.where(beyond, rest, np.right_shift(x, safe)).astype(x.dtype)
    raise Invalid(f"direction {direction!r} is neither LEFT nor RIGHT")


def _mean_of(arrays: list[Array]) -> Array:
    return fold(np.add, arrays) / np.array(len(arrays), dtype=arrays[0].dtype)


_VARIADIC: dict[str, Callable[[list[Array]], Array]] = {
    "Max": lambda arrays: fold(np.maximum, arrays),
    "Min": lambda arrays: fold(np.minimum, arrays),
    "Sum": lambda arrays: fold(np.add, arrays),
    "Mean": _mean_of,
}


def _variadic_kernels(name: str, function: Callable[[list[Array]], Array]) -> None:
    def new_kernel(call: Call, *arrays: Array) -> Array:
        return to_dtype(function([wider(array) for array in arrays]), arrays[0].dtype)

    def old_kernel(call: Call, *arrays: Array) -> Array:
        same_shapes(arrays)
        return new_kernel(call, *arrays)

    kernel(name, 1, 6)(old_kernel)
    kernel(name, 8, 13)(new_kernel)
    if name in {"Max", "Min"}:
        kernel(name, 12)(new_kernel)


for _name, _variadic in _VARIADIC.items():
    _variadic_kernels(_name, _variadic)


def _limits(x: Array) -> tuple[Any, Any]:
    """Return the lowest and the highest finite number of a dtype, Clip's default bounds."""
    if is_float(x.dtype):
        info = finfo(x.dtype)
        return float(info.min), float(info.max)
    whole = np.iinfo(x.dtype)
    return whole.min, whole.max


def _clip(x: Array, low: Any, high: Any) -> Array:
    wide = wider(x)
    low, high = np.asarray(low, dtype=wide.dtype), np.asarray(high, dtype=wide.dtype)
    return to_dtype(np.minimum(np.maximum(wide, low), high), x.dtype)


@kernel("Clip", 1, 6)
def clip_1(call: Call, x: Array) -> Array:
    """Clip to the attributes `min` and `max`, by default the limits of the type, from 6 of float.

    float16 is compared with them in float, so that float's limits leave its infinities.
    """
    low, high = _limits(x)
    return _clip(x, call.attrs.get("min", low), call.attrs.get("max", high))


@kernel("Clip", 11, 12, 13)
def clip_11(call: Call, x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """Clip to scalar inputs, by default the type's limits; if they cross, to the upper one."""
    lowest, highest = _limits(x)
    return _clip(
        x,
        lowest if low is None else _scalar("min", low),
        highest if high is None else _scalar("max", high),
    )


def _scalar(name: str, value: Array) -> Array:
    if value.ndim:
        raise Invalid(f"{name} has shape {value.shape}, it must be a scalar")
    return value


@kernel("Where", 9, 16)
def where(call: Call, condition: Array, x: Array, y: Array) -> Array:
    """Return elements of `x` or `y` by a condition; all three broadcast."""
    return to_dtype(np.where(condition, x, y), x.dtype)


@kernel("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
def identity(call: Call, x: Any) -> Any:
    """Return the input; from 14 also sequences, from 16 also optionals."""
    return x


def _no_training_attribute(call: Call) -> None:
    if not call.attrs["is_test"] and call.attrs["ratio"] != 0:
        raise NotSupported("the node is in training mode (is_test is 0), its result is random")


@kernel("Dropout", 1, 6, check=_no_training_attribute)
def dropout_1(call: Call, data: Array) -> Any:
    """Return the input; in test mode the mask is not defined."""
    if call.wants(1):
        raise NotSupported("in test mode the mask output is not defined")
    return data


@kernel("Dropout", 7, 10)
def dropout_7(call: Call, data: Array) -> Any:
    """Return the input and a mask of ones (7: of the data's type, 10: bool)."""
    return data, np.ones(data.shape, dtype=BOOL if call.since == 10 else data.dtype)


@kernel("Dropout", 12, 13, 22)
def dropout_12(
    call: Call, data: Array, ratio: Array | None = None, training_mode: Array | None = None
) -> Any:
    """Return the input and a mask of ones; the random results of training are not computed."""
    training = training_mode is not None and bool(training_mode)
    if training and (ratio is None or float(ratio) != 0):
        raise NotSupported("the node is in training mode, its result is random")
    return data, np.ones(data.shape, dtype=BOOL)
