"""Experimental operators of ONNX 1.0 to 1.4, which ONNX removed.

The checker still passes them, and ONNX Runtime still has kernels for some. Operators that
a formula defines are written in those of opset 10; the others only by name, to say why they block.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import numpy_dtype

#: The opset of the operators that replace them.
OPSET = 10

#: The operators without a replacement.
_NAMES = (
    *("ATen", "ConstantFill", "DynamicSlice", "GRUUnit", "GivenTensorFill"),
    *("SpatialBN", "Caffe2ConvTranspose"),
)


def _attribute_scalar(context: Context, name: str, default: float | None = None) -> Value:
    """Return an attribute as a scalar of the data's dtype."""
    value = context.value(name, default)
    if value is None:
        raise Blocked(f"it has no attribute {name!r}", "mend the model: add it")
    data = context.input(0)
    elem_type = context.need_elem_type(data, f"its attribute {name!r} takes it")
    return context.scalar(float(value), name, elem_type)


def _affine(context: Context) -> None:
    """``Affine<alpha=2, beta=1>(x)`` becomes ``Add(Mul(x, 2), 1)``."""
    scaled = context.op.Mul(context.input(0), _attribute_scalar(context, "alpha", 1.0))
    context.replace("Add", [scaled, _attribute_scalar(context, "beta", 0.0)], keep=())


def _crop(context: Context) -> None:
    """``Crop<border=[1, 2, 3, 4]>(x)`` becomes a Slice without 1 column on the left, 2 rows at the
    top, 3 columns on the right, and 4 rows at the bottom; with ``scale=[h, w]`` of h rows and w
    columns.
    """
    left, top, right, bottom = context.value("border")
    scale = context.value("scale")
    if scale:
        ends = [top + scale[0], left + scale[1]]
    else:
        ends = [-size if size else (1 << 62) for size in (bottom, right)]
    inputs = [context.array(each, "bounds") for each in ([top, left], ends, [2, 3])]
    context.replace("Slice", [context.input(0), *inputs], keep=())


def _image_scaler(context: Context) -> None:
    """``ImageScaler<scale=2, bias=[1, 2, 3]>(x)`` becomes ``Add(Mul(x, 2), bias)``."""
    data = context.input(0)
    elem_type = context.need_elem_type(data, "its attribute 'bias' takes it")
    scaled = context.op.Mul(data, _attribute_scalar(context, "scale", 1.0))
    values = [[[value]] for value in context.value("bias")]
    bias = context.array(np.array(values).astype(numpy_dtype(elem_type)), "bias")
    context.replace("Add", [scaled, bias], keep=())


def _parametric_softplus(context: Context) -> None:
    """``ParametricSoftplus<alpha=2, beta=3>(x)`` becomes ``Mul(Softplus(Mul(x, 3)), 2)``."""
    op = context.op
    inner = op.Softplus(op.Mul(context.input(0), _attribute_scalar(context, "beta")))
    context.replace("Mul", [inner, _attribute_scalar(context, "alpha")], keep=())


def _scale(context: Context) -> None:
    """``Scale<scale=2>(x)`` becomes ``Mul(x, 2)``."""
    context.replace("Mul", [context.input(0), _attribute_scalar(context, "scale", 1.0)], keep=())


def _scaled_tanh(context: Context) -> None:
    """``ScaledTanh<alpha=2, beta=3>(x)`` becomes ``Mul(Tanh(Mul(x, 3)), 2)``."""
    op = context.op
    inner = op.Tanh(op.Mul(context.input(0), _attribute_scalar(context, "beta")))
    context.replace("Mul", [inner, _attribute_scalar(context, "alpha")], keep=())


def _thresholded_relu(context: Context) -> None:
    """``ThresholdedRelu<alpha=2>(x)`` stays: what was experimental means what opset 10 has."""
    context.replace("ThresholdedRelu")


def _nothing(_: Context) -> None:
    raise Blocked(
        "ONNX removed this experimental operator, and no other stands for it",
        "export the model anew, or keep its opset",
    )


#: What is done to each of them, bound to `OPSET`.
REMOVED: dict[str, Callable[[Context], None]] = {
    "Affine": _affine,
    "Crop": _crop,
    "ImageScaler": _image_scaler,
    "ParametricSoftplus": _parametric_softplus,
    "Scale": _scale,
    "ScaledTanh": _scaled_tanh,
    "ThresholdedRelu": _thresholded_relu,
    **dict.fromkeys(_NAMES, _nothing),
}
