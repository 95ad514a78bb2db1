"""Variadic operators: 8 made them broadcast as NumPy does, and what repeats values below that.

Expand came with opset 8 as well, so before it a value is repeated by Tile, whose counts must be
known.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.model.values import Dims
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down

_OPERATORS = ("Max", "Mean", "Min", "Sum")


def expanded(context: Context, name: str, to: Dims | None) -> str:
    """The value repeated to a shape, without Expand.

    Raises:
        Blocked: a size of either is not known.
    """
    known = context.type(name)
    dims = None if known is None else known.dims
    if dims is not None and dims == to and None not in dims:
        return name
    old, new = _sizes(dims), _sizes(to)
    if old is None or new is None:
        raise Blocked(
            f"{name!r} has the shape {_text(dims)} and must be repeated to {_text(to)}, and before "
            "opset 8 that takes sizes that are known",
            "choose opset 8 or later, or state the shapes",
        )
    constant = context.constant(name)
    if constant is not None:
        return context.array(np.ascontiguousarray(np.broadcast_to(constant, new)), "expanded")
    added = len(new) - len(old)
    if added:
        name = context.emit("Unsqueeze", [name], "aligned", axes=list(range(added)))
    pairs = zip((1,) * added + old, new, strict=True)
    counts = [1 if before == after else after for before, after in pairs]
    return context.emit("Tile", [name, context.array(counts, "repeats")], "expanded")


def _sizes(dims: Dims | None) -> tuple[int, ...] | None:
    """The dimensions, if all are known."""
    if dims is None:
        return None
    sizes = tuple(dim for dim in dims if isinstance(dim, int))
    return sizes if len(sizes) == len(dims) else None


def _text(dims: Dims | None) -> str:
    if dims is None:
        return "[...]"
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in dims) + "]"


@down(
    _OPERATORS,
    8,
    "inputs of different shapes: added one by one, limited by Clip, or repeated by Tile",
    blocks="the shapes are not known",
)
def one_shape(context: Context) -> None:
    """``Max(x, y)`` with y of shape [3] becomes ``Max(x, Tile(Unsqueeze(y)))``.

    ``Sum(x, y, z)`` becomes ``Add(Add(x, y), z)``, which broadcast one opset longer, and
    ``Max(x, 0.0)`` becomes ``Clip<min=0.0>(x)``.
    """
    names = list(context.node.input)
    known = [context.type(name) for name in names]
    shapes = [None if item is None else item.dims for item in known]
    if shapes[0] is not None and None not in shapes[0] and all(s == shapes[0] for s in shapes):
        return
    op_type = context.node.op_type
    if op_type == "Sum" and len(names) > 1:
        total = reduce(lambda a, b: context.emit("Add", [a, b], "sum"), names[:-1])
        context.replace("Add", [total, names[-1]])
        return
    if len(names) == 1:
        return
    if op_type in ("Max", "Min") and _limited(context, names):
        return
    result = context.type(context.node.output[0])
    full = None if result is None else result.dims
    context.replace(inputs=[expanded(context, name, full) for name in names])


def _limited(context: Context, names: list[str]) -> bool:
    """Make a Clip of an extreme of a value and a float constant; whether that was possible."""
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
