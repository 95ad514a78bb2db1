"""Max, Mean, Min and Sum: 8 made them broadcast as NumPy does, 12 let Max and Min take integers."""

from __future__ import annotations

from functools import reduce

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.broadcast import broadcast_together
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS_OF_64_BITS
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.steps.registry import down


@down(("Max", "Min"), 12, "64-bit integers chosen by Where")
def extreme_of_64_bit_integers(context: Context) -> None:
    """``Max(x, y)`` of int64 becomes ``Where(Less(x, y), y, x)``."""
    op = context.op
    if context.elem_type(context.input(0)) not in INTEGERS_OF_64_BITS:
        return
    first, *others = context.node.input
    if not others:
        context.replace("Identity")
    for count, other in enumerate(others, 1):
        pair = [first, other] if context.node.op_type == "Max" else [other, first]
        inputs = [op.Less(*pair), other, first]
        if count < len(others):
            first = op.Where(*inputs)
        else:
            context.replace("Where", inputs)


_OPERATORS = ("Max", "Mean", "Min", "Sum")


@down(
    _OPERATORS,
    8,
    "inputs of different shapes: added one by one, limited by Clip, or repeated by Tile",
    blocks=f"neither the rank nor the dtype of an input is known, or {NO_COUNTING}",
)
def operands_of_one_shape(context: Context) -> None:
    """``Max(x, y)`` with y of shape [3] becomes ``Max(x, Tile(Unsqueeze(y)))``.

    ``Sum(x, y, z)`` becomes ``Add(Add(x, y), z)``, which broadcast one opset longer, and
    ``Max(x, 0.0)`` becomes ``Clip<min=0.0>(x)``.
    """
    names = list(context.node.input)
    shapes = [dims_of(context, name) for name in names]
    if shapes[0] is not None and None not in shapes[0] and all(s == shapes[0] for s in shapes):
        return
    op_type = context.node.op_type
    if op_type == "Sum" and len(names) > 1:
        total = reduce(lambda a, b: context.op.Add(a, b), names[:-1])
        context.replace("Add", [total, names[-1]])
        return
    if len(names) == 1:
        return
    if op_type in ("Max", "Min") and _replaced_by_clip(context, names):
        return
    context.replace(inputs=broadcast_together(context, names))


def _replaced_by_clip(context: Context, names: list[str]) -> bool:
    """Replace a Max or Min of a tensor and a float constant of one element by a Clip.

    Args:
        context: the context of the node.
        names: its inputs.

    Returns:
        whether that was possible.
    """
    if len(names) != 2:
        return False
    for data, other in (names, names[::-1]):
        limit = context.constant(other)
        known = context.type(data)
        if limit is None or limit.size != 1 or known is None or known.dims is None:
            continue
        if known.elem_type != TensorProto.FLOAT or limit.ndim > len(known.dims):
            continue
        value = float(limit.reshape(-1)[0])
        if not np.isnan(value):
            # The other limit is infinite: the default would be the largest finite number.
            low, high = (value, np.inf) if context.node.op_type == "Max" else (-np.inf, value)
            context.replace("Clip", [data], min=low, max=high)
            return True
    return False
