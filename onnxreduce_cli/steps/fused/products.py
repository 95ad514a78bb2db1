"""Products of com.microsoft, with what ONNX Runtime fuses into them beside them.

Source: docs/ContribOperators.md of ONNX Runtime, and its kernels.
"""

from __future__ import annotations

from typing import Any

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import instead

#: Below it Clip has attributes; all other operators here are as they are later.
_MODERN = 13

_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_GEMM = ("alpha", "beta", "transA", "transB")

#: The attributes of each activation that a FusedConv may have, in the order of its
#: `activation_params`.
_OF_CONV: dict[str, tuple[str, ...]] = {
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
}

#: The attributes of each activation that a FusedGemm may have.
_OF_GEMM: dict[str, tuple[str, ...]] = {
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}


@instead("com.microsoft.FusedConv", {"any"}, "Conv, Add and its activation")
def fused_conv(context: Context) -> None:
    """``FusedConv<activation="Relu">(x, w, b, z)`` becomes ``Relu(Add(Conv(x, w, b), z))``."""
    activation = _activation(context, _OF_CONV)
    names = _OF_CONV[activation] if activation else ()
    numbers = context.value("activation_params", [])
    if len(numbers) != len(names):
        raise Blocked(
            f"its activation {activation!r} has {len(names)} numbers, and {len(numbers)} are given",
            f"mend the model: give it {len(names)} activation_params",
        )
    context = context.at(max(context.op.opset, _MODERN))
    inputs, added = [context.input(index) for index in range(3)], context.input(3)
    attributes: dict[str, Any] = {name: context.attribute(name) for name in _CONV}
    if not activation and not added:
        context.replace("Conv", inputs, keep=_CONV)
        return
    total = context.op.Conv(*inputs, **attributes)
    if added and not activation:
        context.replace("Add", [total, added], keep=())
        return
    data = context.op.Add(total, added) if added else total
    _activate(context, activation, data, dict(zip(names, numbers, strict=True)))


@instead("com.microsoft.FusedGemm", {"any"}, "Gemm and its activation")
def fused_gemm(context: Context) -> None:
    """``FusedGemm<activation="LeakyRelu", activation_alpha=0.1>(a, b, c)`` becomes
    ``LeakyRelu<alpha=0.1>(Gemm(a, b, c))``.
    """
    activation = _activation(context, _OF_GEMM)
    context = context.at(max(context.op.opset, _MODERN))
    inputs = [context.input(index) for index in range(3)]
    if not activation:
        context.replace("Gemm", inputs, keep=_GEMM)
        return
    attributes: dict[str, Any] = {name: context.attribute(name) for name in _GEMM}
    given = {name: context.value(f"activation_{name}") for name in _OF_GEMM[activation]}
    lacking = [name for name, number in given.items() if number is None]
    if lacking:
        raise Blocked(
            f"its activation {activation!r} lacks activation_{lacking[0]}", "mend the model: add it"
        )
    _activate(context, activation, context.op.Gemm(*inputs, **attributes), given)


def _activation(context: Context, known: dict[str, tuple[str, ...]]) -> str:
    """Return the activation of a node; empty where it has none."""
    found: str = context.value("activation", "")
    if found and found not in known:
        raise Blocked(
            f"its activation {found!r} is not among those that are written out "
            f"({', '.join(known)})",
            "export the model without ONNX Runtime's optimisations",
        )
    return found


def _activate(context: Context, activation: str, data: Value, values: dict[str, Any]) -> None:
    """Replace the node by its activation of data."""
    if activation == "Clip":
        elem_type = context.need_elem_type(context.input(0), "its limits have it")
        limits = [context.scalar(number, name, elem_type) for name, number in values.items()]
        context.replace("Clip", [data, *limits], keep=())
    else:
        context.replace(activation, [data], keep=(), **values)


@instead("com.microsoft.FusedMatMul", {"any"}, "Transpose, MatMul and Mul")
def fused_mat_mul(context: Context) -> None:
    """``FusedMatMul<alpha=0.5, transB=1>(a, b)`` becomes
    ``Mul(MatMul(a, Transpose(b)), 0.5)``.
    """
    context = context.at(max(context.op.opset, _MODERN))
    alpha = context.value("alpha", 1.0)
    inputs = [_turned(context, index, side) for index, side in enumerate("AB")]
    if alpha == 1:
        context.replace("MatMul", inputs, keep=())
        return
    elem_type = context.need_elem_type(context.input(0), "its alpha is multiplied in it")
    factor = context.scalar(alpha, "alpha", elem_type)
    context.replace("Mul", [context.op.MatMul(*inputs), factor], keep=())


def _turned(context: Context, index: int, side: str) -> Value:
    """Return an input of a FusedMatMul, transposed as its attributes say.

    With transBatch the first dimension comes before the last, before trans swaps these two.
    """
    data = context.input(index)
    last, batch = (bool(context.value(f"{name}{side}", 0)) for name in ("trans", "transBatch"))
    if not last and not batch:
        return data
    rank = context.need_rank(data, "its last dimensions are transposed")
    if rank < 2:
        return data  # A vector is taken as it is.
    perm = list(range(rank))
    if batch:
        perm = [*perm[1:-1], 0, perm[-1]]
    if last:
        perm[-2:] = perm[:-3:-1]
    return context.op.Transpose(data, perm=perm)
