"""QuantizeLinear to a dtype that an opset lacks, computed in a wider one.

The numbers are those of the narrow dtype: integers clipped to its limits, floats rounded to its
numbers. The step of the DequantizeLinear that reads them quantizes once more; the QuantizeLinear
itself goes where nothing else reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.quantization.scales import Granularity, spread

#: The lowest and the highest number of narrow integer dtypes, by name.
_LIMITS = {"INT2": (-2, 1), "UINT2": (0, 3), "INT4": (-8, 7), "UINT4": (0, 15)}


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """The format of a narrow float dtype.

    Attributes:
        fraction_bits: bits of the fraction.
        min_exponent: the exponent of the smallest normal number.
        max_exponent: the exponent of the largest.
        highest: the largest number.
        overflow: what greater numbers become unless they saturate.
    """

    fraction_bits: int
    min_exponent: int
    max_exponent: int
    highest: float
    overflow: float


_FORMATS = {
    "FLOAT8E4M3FN": FloatFormat(3, -6, 8, 448.0, np.nan),
    "FLOAT8E5M2": FloatFormat(2, -14, 15, 57344.0, np.inf),
}


def quantized_in_wider_dtype(context: Context, name: str, storage: int) -> str | None:
    """Return a quantized value, of the same shape, in the dtype `storage`.

    Returns:
        None where no QuantizeLinear of the model makes it, or none to a dtype that is known here.
    """
    node = context.producer(name)
    opset = context.scope.opset
    if node is None or node.op_type != "QuantizeLinear" or opset is None:
        return None
    dtype = TensorProto.DataType.Name(context.elem_type(name) or 0)
    if any(item.ref_attr_name for item in node.attribute):
        return None
    if dtype in _LIMITS:
        return _integers(context, node, storage, _LIMITS[dtype], opset)
    if dtype in _FORMATS:
        return _floats(context, node, _FORMATS[dtype])
    return None


def _integers(
    context: Context, node: NodeProto, storage: int, limits: tuple[int, int], opset: int
) -> str | None:
    """Return ``Clip(QuantizeLinear(x, scale, zero_point), -8, 7)`` in int8, at the source opset."""
    context = context.at(max(context.op.opset, opset))
    op = context.op
    inputs = list(node.input)
    dropped = ("output_dtype", "saturate")
    values: dict[str, Any] = {i.name: i for i in node.attribute if i.name not in dropped}
    if len(inputs) > 2 and inputs[2]:
        zero = context.constant(inputs[2])
        if zero is None:
            return None
        inputs[2] = context.array(zero.astype(numpy_dtype(storage)), "stored")
    else:
        values["output_dtype"] = storage
    wide = op.QuantizeLinear(*inputs, **values)
    bounds = [context.scalar(limit, "limit", storage) for limit in limits]
    return op.Clip(wide, *bounds)


def _floats(context: Context, node: NodeProto, form: FloatFormat) -> str | None:
    """Return the quotient in float, rounded to the dtype that it is computed in, then to `form`."""
    values = {item.name: attributes.value(item) for item in node.attribute}
    data, scale = node.input[:2]
    working = values.get("precision", 0) or context.elem_type(scale)
    if working not in (TensorProto.FLOAT, *HALVES):
        return None
    if len(node.input) > 2 and node.input[2]:
        zero = context.constant(node.input[2])
        if zero is None or np.any(zero.astype(np.float32) != 0):
            return None
    elem_type = context.need_elem_type(data, "it is divided")
    for to in (working, TensorProto.FLOAT):
        if elem_type != to:
            data, elem_type = cast(context, data, to), to
    of = Granularity(data, values.get("axis", 1), values.get("block_size", 0))
    quotient = context.op.Div(data, spread(context, scale, of))
    if working in HALVES:
        quotient = cast(context, cast(context, quotient, working), TensorProto.FLOAT)
    return _rounded_to_format(context, quotient, form, saturate=bool(values.get("saturate", 1)))


def _rounded_to_format(context: Context, name: str, form: FloatFormat, *, saturate: bool) -> str:
    """Return ``Round(x / step) * step``, where the step is that of each number's power of two."""
    op = context.op
    rank = context.rank(name)
    if rank is None:
        shape, rank = op.Shape(name), 1
        flat = op.Reshape(name, context.array([-1], "flat"))
        rounded = _rounded_to_steps(context, flat, rank, form, saturate=saturate)
        return op.Reshape(rounded, shape, allowzero=1)
    return _rounded_to_steps(context, name, rank, form, saturate=saturate)


def _rounded_to_steps(
    context: Context, name: str, rank: int, form: FloatFormat, *, saturate: bool
) -> str:
    """Return what `_rounded_to_format` does, of a tensor of rank `rank`, in its shape."""
    op = context.op
    column = unsqueezed(context, name, [rank])
    powers = np.arange(form.max_exponent, form.min_exponent, -1, dtype=np.float32)
    # Nothing is below 0: so many powers are above a number as come before the first that is not.
    bounds = context.array(np.append(np.exp2(powers), np.float32(0)), "powers")
    context.warn(f"each element is compared with {len(powers)} numbers: memory for all those pairs")
    below = cast(context, op.Less(op.Abs(column), bounds), TensorProto.INT32)
    count = op.ArgMin(below, axis=rank, keepdims=0)
    steps = np.exp2(np.append(powers, np.float32(form.min_exponent)) - form.fraction_bits)
    step = op.Gather(context.array(steps, "steps"), count, axis=0)
    whole = op.Round(op.Div(name, step))
    rounded = op.Mul(whole, step)
    beyond = form.highest if saturate else form.overflow
    # NaN is neither above nor below, and stays.
    for end, past in ((form.highest, beyond), (-form.highest, -beyond)):
        pair = [context.scalar(end, "highest"), rounded]
        is_past = op.Less(*pair if end > 0 else pair[::-1])
        rounded = op.Where(is_past, context.scalar(past, "beyond"), rounded)
    return rounded
