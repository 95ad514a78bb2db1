"""Activations of com.microsoft as those of the default domain, which later steps write out.

Source: docs/ContribOperators.md of ONNX Runtime, and its kernels.
"""

from __future__ import annotations

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import instead

#: The opsets that introduced Gelu and Swish.
_GELU, _SWISH = 20, 24


@instead("com.microsoft.Gelu", {"any"}, "Gelu of opset 20")
def gelu(context: Context) -> None:
    """``com.microsoft.Gelu(x)`` becomes ``Gelu(x)``."""
    context.at(max(context.op.opset, _GELU)).replace("Gelu", keep=())


@instead("com.microsoft.BiasGelu", {"any"}, "Gelu of a sum")
def bias_gelu(context: Context) -> None:
    """``BiasGelu(x, bias)`` becomes ``Gelu(Add(x, bias))``."""
    context = context.at(max(context.op.opset, _GELU))
    context.replace("Gelu", [_biased(context)], keep=())


@instead("com.microsoft.FastGelu", {"any"}, "Gelu by Tanh, of a sum where there is a bias")
def fast_gelu(context: Context) -> None:
    """``FastGelu(x, bias)`` becomes ``Gelu<approximate="tanh">(Add(x, bias))``."""
    context = context.at(max(context.op.opset, _GELU))
    context.replace("Gelu", [_biased(context)], keep=(), approximate="tanh")


@instead("com.microsoft.QuickGelu", {"any"}, "Swish with its alpha")
def quick_gelu(context: Context) -> None:
    """``QuickGelu<alpha=1.702>(x)`` becomes ``Swish<alpha=1.702>(x)``."""
    context = context.at(max(context.op.opset, _SWISH))
    context.replace("Swish", keep=(), alpha=context.value("alpha", 1.702))


def _biased(context: Context) -> Value:
    """Return the first input, plus the second if there is one."""
    data, bias = context.input(0), context.input(1)
    return context.op.Add(data, bias) if bias else data
