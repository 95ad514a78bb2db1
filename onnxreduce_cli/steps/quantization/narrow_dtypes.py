"""What a QuantizeLinear gives in a dtype that an opset lacks, computed in a wider one.

Its numbers are those of the narrow dtype: integers cut off at that one's ends, floats rounded to
its digits. A DequantizeLinear that reads it computes it anew; the QuantizeLinear goes where nothing
else reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import HALVES, cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model import attributes
from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.quantization.arithmetic import Parts, spread

#: The lowest and the highest number of narrow integers, by name.
_ENDS = {"INT2": (-2, 1), "UINT2": (0, 3), "INT4": (-8, 7), "UINT4": (0, 15)}


@dataclass(frozen=True)
class Grid:
    """A narrow float's numbers.

    Attributes:
        digits: bits of the fraction.
        least: the exponent of the smallest normal number.
        most: the exponent of the largest.
        highest: the largest number.
        beyond: what is beyond that, if it is not the largest.
    """

    digits: int
    least: int
    most: int
    highest: float
    beyond: float


_GRIDS = {
    "FLOAT8E4M3FN": Grid(3, -6, 8, 448.0, np.nan),
    "FLOAT8E5M2": Grid(2, -14, 15, 57344.0, np.inf),
}


def quantized_again(context: Context, name: str, holder: int) -> str | None:
    """The value in the dtype `holder`; None where it is not quantized here, or to another dtype."""
    node = context.producer(name)
    opset = context.scope.opset
    if node is None or node.op_type != "QuantizeLinear" or opset is None:
        return None
    dtype = TensorProto.DataType.Name(context.elem_type(name) or 0)
    if any(item.ref_attr_name for item in node.attribute):
        return None
    if dtype in _ENDS:
        return _integers(context, node, holder, _ENDS[dtype], opset)
    if dtype in _GRIDS:
        return _floats(context, node, _GRIDS[dtype])
    return None


def _integers(
    context: Context, node: NodeProto, holder: int, ends: tuple[int, int], opset: int
) -> str | None:
    """``Clip(QuantizeLinear(x, scale, zero_point), -8, 7)`` in int8, at the source's opset."""
    context = context.at(max(context.op.opset, opset))
    op = context.op
    inputs = list(node.input)
    dropped = ("output_dtype", "saturate")
    values: dict[str, Any] = {i.name: i for i in node.attribute if i.name not in dropped}
    if len(inputs) > 2 and inputs[2]:
        zero = context.constant(inputs[2])
        if zero is None:
            return None
        inputs[2] = context.array(zero.astype(numpy_dtype(holder)), "held")
    else:
        values["output_dtype"] = holder
    wide = op.QuantizeLinear(*inputs, **values)
    limits = [context.scalar(end, "end", holder) for end in ends]
    return op.Clip(wide, *limits)


def _floats(context: Context, node: NodeProto, grid: Grid) -> str | None:
    """The quotient, rounded to the dtype that it is computed in, and then to the grid."""
    values = {item.name: attributes.value(item) for item in node.attribute}
    data, scale = node.input[:2]
    working = values.get("precision", 0) or context.elem_type(scale)
    if working not in (TensorProto.FLOAT, *HALVES):
        return None
    if len(node.input) > 2 and node.input[2]:
        zero = context.constant(node.input[2])
        if zero is None or np.any(zero.astype(np.float32) != 0):
            return None
    given = context.need_elem_type(data, "it is divided")
    for to in (working, TensorProto.FLOAT):
        if given != to:
            data, given = cast(context, data, to), to
    of = Parts(data, values.get("axis", 1), values.get("block_size", 0))
    quotient = context.op.Div(data, spread(context, scale, of))
    if working in HALVES:
        quotient = cast(context, cast(context, quotient, working), TensorProto.FLOAT)
    return _on_grid(context, quotient, grid, saturate=bool(values.get("saturate", 1)))


def _on_grid(context: Context, name: str, grid: Grid, *, saturate: bool) -> Value:
    """``Round(x / step) * step``, where the step is that of each number's power of two."""
    op = context.op
    flat = op.Reshape(name, context.array([-1, 1], "column"))
    powers = np.arange(grid.most, grid.least, -1, dtype=np.float32)
    bounds = context.array(np.exp2(powers), "powers")
    below = op.Less(op.Abs(flat), bounds)
    one = context.array([1], "axis")
    count = op.ReduceSum(cast(context, below, TensorProto.INT64), one)
    steps = np.exp2(np.append(powers, np.float32(grid.least)) - grid.digits)
    step = op.Gather(context.array(steps, "steps"), count, axis=0)
    whole = op.Round(op.Div(flat, step))
    rounded = op.Mul(whole, step)
    beyond = grid.highest if saturate else grid.beyond
    # NaN is neither above nor below, and stays.
    for end, past in ((grid.highest, beyond), (-grid.highest, -beyond)):
        pair = [context.scalar(end, "highest"), rounded]
        is_past = op.Less(*pair if end > 0 else pair[::-1])
        rounded = op.Where(is_past, context.scalar(past, "beyond"), rounded)
    return op.Reshape(rounded, op.Shape(name))
