"""Activations below the opset that introduced them, written out in older operators.

Gelu (20), Mish (18), HardSwish (14), Swish (24), SwiGLU (28), Celu (12, doubles 28),
ThresholdedRelu (10) and Shrink (9); also Selu, whose defaults changed at 6, and Relu, which 14
allowed of integers.

Half precision is computed in float, as the kernels do, so that nothing is rounded on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.idioms import activations as idioms
from onnxreduce_cli.idioms.expansion import Expansion, replace_by_last
from onnxreduce_cli.idioms.writer import Writer
from onnxreduce_cli.steps.registry import down, introduced, up


@introduced("Gelu", 20, "written out with Erf or Tanh, as runtimes know it")
def gelu(context: Context) -> None:
    """``Gelu(x)`` becomes ``x * 0.5 * (Erf(x / sqrt(2)) + 1)``, and ``Gelu<approximate="tanh">(x)``
    ``x * 0.5 * (Tanh(sqrt(2 / pi) * (x + 0.044715 * Pow(x, 3))) + 1)``.
    """
    by_tanh = context.value("approximate", "none") == "tanh"
    _write_idiom(context, idioms.gelu_by_tanh if by_tanh else idioms.gelu)


@introduced("Mish", 18, "x * Tanh(Softplus(x))")
def mish(context: Context) -> None:
    """``Mish(x)`` becomes ``Mul(x, Tanh(Softplus(x)))``."""
    _write_idiom(context, idioms.mish)


@introduced("HardSwish", 14, "x * HardSigmoid(x)")
def hard_swish(context: Context) -> None:
    """``HardSwish(x)`` becomes ``Mul(x, HardSigmoid<alpha=1/6, beta=0.5>(x))``."""
    elem_type = context.elem_type(context.input(0)) or 0
    to = Expansion(context, elem_type)
    replace_by_last(context, idioms.hard_swish(to, context.input(0)), elem_type, elem_type)


@introduced("Swish", 24, "x * Sigmoid(alpha * x)")
def swish(context: Context) -> None:
    """``Swish<alpha=2.0>(x)`` becomes ``Mul(x, Sigmoid(Mul(x, 2.0)))``."""
    plain = context.value("alpha", 1.0) == 1
    _write_idiom(context, idioms.swish if plain else idioms.swish_with_alpha)


def _write_idiom(context: Context, idiom: Callable[[Writer, str], Value]) -> None:
    """Write out an idiom of one input; halves in float."""
    data, elem_type, working = widened(context, 0)
    replace_by_last(context, idiom(Expansion(context, working), data), elem_type, working)


@introduced("SwiGLU", 28, "Swish(a) * b")
def swiglu(context: Context) -> None:
    """``SwiGLU<alpha=2.0>(a, b)`` becomes ``Mul(Swish<alpha=2.0>(a), b)``."""
    gate = context.op.Swish(context.input(0), alpha=context.attribute("alpha"))
    context.replace("Mul", [gate, context.input(1)], keep=())


@introduced("Celu", 12, "Elu of a scaled input, times Exp of it where alpha is negative")
def celu(context: Context) -> None:
    """``Celu(x)`` becomes ``Elu(x)``, and ``Celu<alpha=2.0>(x)``
    ``Sub(Relu(x), Mul(Elu(Div(Relu(-x), -2.0)), -2.0))``.

    Only the negative part is scaled: dividing a positive x by alpha may overflow. With a negative
    alpha it becomes positive, and ``Exp(y) - 1`` is ``-Elu(-y) * Exp(y)``. With an alpha of 0
    everything is, so that what is divided by it is NaN as in the definition.
    """
    op = context.op
    alpha = context.value("alpha", 1.0)
    data = context.input(0)
    if alpha == 1:
        context.replace("Elu", keep=(), alpha=1.0)
        return
    elem_type = context.need_elem_type(data, "its alpha has that dtype")
    scale = context.scalar(alpha, "alpha", elem_type)
    positive = op.Relu(data)
    negative = data
    if alpha:
        below = op.Relu(op.Neg(data))
        negative = op.Neg(below)
    scaled = op.Div(negative, scale)
    if alpha < 0:
        turned = op.Elu(op.Neg(scaled), alpha=1.0)
        grown = op.Mul(turned, op.Exp(scaled))
        curve = op.Neg(grown)
    else:
        curve = op.Elu(scaled, alpha=1.0)
    back = op.Mul(curve, scale)
    context.replace("Add", [positive, back], keep=())


@down("Celu", 28, "double as Elu of a scaled input, times Exp of it where alpha is negative")
def celu_of_doubles(context: Context) -> None:
    """``Celu(x)`` of doubles becomes ``Elu(x)`` (see `celu`): before there was float only."""
    if context.elem_type(context.input(0)) == TensorProto.DOUBLE:
        celu(context)


@introduced("ThresholdedRelu", 10, "Where(x > alpha, x, 0)")
def thresholded_relu(context: Context) -> None:
    """``ThresholdedRelu<alpha=2.0>(x)`` becomes ``Where(Greater(x, 2.0), x, 0.0)``."""
    data = context.input(0)
    elem_type = context.need_elem_type(data, "its alpha has that dtype")
    alpha = context.scalar(context.value("alpha", 1.0), "alpha", elem_type)
    above = context.op.Greater(data, alpha)
    context.replace("Where", [above, data, context.scalar(0, "zero", elem_type)], keep=())


@introduced("Shrink", 9, "two comparisons and a choice between x + bias, x - bias and 0")
def shrink(context: Context) -> None:
    """``Shrink<lambd=l, bias=b>(x)`` becomes ``Where(x < -l, x + b, Where(x > l, x - b, 0))``."""
    context = context.at(9)  # Where was introduced by the same opset; its own step goes on.
    op = context.op
    data = context.input(0)
    elem_type = context.need_elem_type(data, "its limits have that dtype")
    lambd, bias = context.value("lambd", 0.5), context.value("bias", 0.0)

    def number(value: float, hint: str) -> str:
        return context.scalar(value, hint, elem_type)

    below = op.Less(data, number(-lambd, "lowest"))
    above = op.Greater(data, number(lambd, "highest"))
    raised = op.Add(data, number(bias, "bias"))
    lowered = op.Sub(data, number(bias, "bias"))
    inner = op.Where(above, lowered, number(0, "zero"))
    context.replace("Where", [below, raised, inner], keep=())


_SELU: dict[str, tuple[float, float]] = {
    "alpha": (1.6732, 1.67326319217681884765625),
    "gamma": (1.0507, 1.05070102214813232421875),
}


@up("Selu", 6, "the less precise defaults written out, consumed_inputs dropped")
def selu_older_defaults(context: Context) -> None:
    """``Selu(x)`` becomes ``Selu<alpha=1.6732, gamma=1.0507>(x)``."""
    values: dict[str, Any] = {
        n: older for n, (older, _) in _SELU.items() if context.attribute(n) is None
    }
    if values or context.attribute("consumed_inputs") is not None:
        context.replace(drop=("consumed_inputs",), **values)


@down("Selu", 6, "the more precise defaults written out")
def selu_newer_defaults(context: Context) -> None:
    """``Selu(x)`` becomes ``Selu<alpha=1.6732632, gamma=1.0507010>(x)``."""
    values: dict[str, Any] = {
        n: newer for n, (_, newer) in _SELU.items() if context.attribute(n) is None
    }
    if values:
        context.replace(**values)


@down("Relu", 14, "integers as Max with 0")
def relu_of_integers(context: Context) -> None:
    """``Relu(x)`` of int32 becomes ``Max(x, 0)``."""
    elem_type = context.elem_type(context.input(0))
    if elem_type in INTEGERS:
        context.replace("Max", [context.input(0), context.scalar(0, "zero", elem_type)])
