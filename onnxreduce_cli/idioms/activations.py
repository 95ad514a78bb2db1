"""Activations: Gelu, HardSwish, Mish, Softplus, Swish."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.idiom import Idiom
from onnxreduce_cli.idioms.matching import IdiomMatch
from onnxreduce_cli.idioms.parameters import not_of_double
from onnxreduce_cli.idioms.writer import Writer

#: Returns ``data * 0.5 * factor``, in one of several orders.
Halve = Callable[[Writer, str, Value], Value]


def _first(to: Writer, data: str, factor: Value) -> Value:
    half = to.op.Mul(data, to.number(0.5))
    return to.op.Mul(half, factor)


def _last(to: Writer, data: str, factor: Value) -> Value:
    return to.op.Mul(to.op.Mul(data, factor), to.number(0.5))


def _factor(to: Writer, data: str, factor: Value) -> Value:
    return to.op.Mul(data, to.op.Mul(factor, to.number(0.5)))


def _by_division(to: Writer, data: str) -> Value:
    return to.op.Div(data, to.number(math.sqrt(2)))


def _by_factor(to: Writer, data: str) -> Value:
    return to.op.Mul(data, to.number(math.sqrt(0.5)))


def gelu(
    to: Writer,
    data: str,
    scaled: Callable[[Writer, str], Value] = _by_division,
    halve: Halve = _first,
) -> Value:
    """Gelu as ``x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))`` is exported.

    ONNX Runtime fuses these nodes (`GeluFusion`), but not a factor in place of the division. It
    fuses ``x * (1 + erf) * 0.5`` as well, which overflows for the largest x.
    """
    curve = to.op.Erf(scaled(to, data))
    return halve(to, data, to.op.Add(curve, to.number(1)))


def _by_pow(to: Writer, data: str) -> Value:
    return to.op.Pow(data, to.number(3))


def _by_mul(to: Writer, data: str) -> Value:
    return to.op.Mul(to.op.Mul(data, data), data)


def gelu_by_tanh(
    to: Writer,
    data: str,
    cubed: Callable[[Writer, str], Value] = _by_pow,
    halve: Halve = _first,
) -> Value:
    """``Gelu<approximate="tanh">`` as PyTorch's exporter writes it below opset 20."""
    op = to.op
    bent = op.Mul(cubed(to, data), to.number(0.044715))
    inner = op.Mul(op.Add(data, bent), to.number(math.sqrt(2 / math.pi)))
    return halve(to, data, op.Add(op.Tanh(inner), to.number(1)))


def mish(to: Writer, data: str) -> Value:
    """``x * Tanh(Softplus(x))``, as PyTorch's exporter writes Mish below opset 18."""
    op = to.op
    return op.Mul(data, op.Tanh(op.Softplus(data)))


def softplus(to: Writer, data: str) -> Value:
    """``Log(Exp(x) + 1)``, which overflows for large x."""
    op = to.op
    return op.Log(op.Add(op.Exp(data), to.number(1)))


def _mish_by_log(to: Writer, data: str) -> Value:
    """``x * Tanh(Log(Exp(x) + 1))``; where the Softplus overflows its Tanh is 1, which is right."""
    return to.op.Mul(data, to.op.Tanh(softplus(to, data)))


def hard_swish(to: Writer, data: str) -> Value:
    """``x * HardSigmoid(x)``, as PyTorch's exporter writes HardSwish below opset 14."""
    return to.op.Mul(data, to.op.HardSigmoid(data, alpha=1 / 6, beta=0.5))


def swish(to: Writer, data: str) -> Value:
    """``x * Sigmoid(x)``, as exporters write SiLU; ONNX Runtime fuses it to a QuickGelu."""
    return to.op.Mul(data, to.op.Sigmoid(data))


def swish_with_alpha(to: Writer, data: str) -> Value:
    """``x * Sigmoid(x * alpha)``, as models write ``Swish<alpha=1.702>``."""
    op = to.op
    return op.Mul(data, op.Sigmoid(op.Mul(data, to.number("alpha", 1.0))))


def _hard_swish_by_clip(to: Writer, data: str) -> Value:
    """``x * Clip(x + 3, 0, 6) / 6``, as ``x * relu6(x + 3) / 6`` is exported."""
    op = to.op
    gate = op.Clip(op.Add(data, to.number(3)), to.number(0), to.number(6))
    return op.Div(op.Mul(data, gate), to.number(6))


def _hard_swish_by_gate(to: Writer, data: str) -> Value:
    """``x * (Clip(x + 3, 0, 6) / 6)``."""
    op = to.op
    gate = op.Clip(op.Add(data, to.number(3)), to.number(0), to.number(6))
    return op.Mul(data, op.Div(gate, to.number(6)))


def _by_tanh(context: NodeFacts, found: IdiomMatch) -> Mapping[str, Any]:
    return {"approximate": "tanh", **not_of_double(context, found)}


_HALVES = (_first, _last, _factor)

IDIOMS = (
    Idiom(
        "Gelu",
        tuple(
            partial(gelu, scaled=scaled, halve=halve)
            for scaled, halve in product((_by_division, _by_factor), _HALVES)
        ),
    ),
    Idiom(
        "Gelu",
        tuple(
            partial(gelu_by_tanh, cubed=cubed, halve=halve)
            for cubed, halve in product((_by_pow, _by_mul), _HALVES)
        ),
        _by_tanh,
    ),
    Idiom("HardSwish", (hard_swish,)),
    Idiom("HardSwish", (_hard_swish_by_clip, _hard_swish_by_gate), not_of_double),
    Idiom("Mish", (mish, _mish_by_log)),
    Idiom("Softplus", (softplus,), stabler=True),
    Idiom("Swish", (swish, swish_with_alpha)),
)
