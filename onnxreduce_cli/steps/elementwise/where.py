"""Where below opset 9, which it came with: a Gather, or integer arithmetic."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.axes import squeezed
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import dims_of, known_dims
from onnxreduce_cli.model import folding
from onnxreduce_cli.steps.elementwise import emulated_where
from onnxreduce_cli.steps.registry import introduced


@introduced(
    "Where",
    9,
    "a Gather from both inputs, or arithmetic on integers",
    blocks=NO_COUNTING,
)
def where(context: Context) -> None:
    """``Where(c, x, y)`` becomes
    ``Gather(Concat(Reshape(x, [-1]), Reshape(y, [-1])), places)`` with ``places`` those of y, and
    where c holds those of x.

    Blending ``c * x + (1 - c) * y`` would be wrong where what is not chosen is NaN or infinite;
    of integers it is exact, and needs no shapes.
    """
    op = context.op
    condition, first, second = (context.input(index) for index in range(3))
    elem_type = context.need_elem_type(first, "how to choose depends on it")
    if elem_type in (TensorProto.INT32, TensorProto.INT64):
        chosen = cast(context, condition, elem_type)
        apart = op.Sub(first, second)
        part = op.Mul(apart, chosen)
        context.replace("Add", [part, second], keep=())
        return
    if None in [context.specialised_rank(name) for name in (first, second)]:
        context = context.at(shapes.OPSET)
        op = context.op
    here, there = _flat_places(context, first), _flat_places(context, second)
    behind = _element_count(context, first)
    there = op.Add(there, behind)
    flat = [op.Reshape(name, context.array([-1], "flat")) for name in (first, second)]
    both = op.Concat(*flat, axis=0)
    chosen = cast(context, condition, TensorProto.INT64)
    apart = op.Sub(here, there)
    part = op.Mul(apart, chosen)
    places = op.Add(part, there)
    context.replace("Gather", [both, places], keep=(), axis=0)


def _flat_places(context: Context, name: str) -> str:
    """The place of each element in the flattened tensor, int64 in the tensor's shape."""
    dims = known_dims(dims_of(context, name))
    if dims is None or math.prod(dims) > folding.LIMIT:
        return emulated_where.flat_places(context, name)
    places = np.arange(math.prod(dims), dtype=np.int64).reshape(dims)
    return context.array(places, "places")


def _element_count(context: Context, name: str) -> str:
    """The number of a tensor's elements, an int64 scalar."""
    dims = known_dims(dims_of(context, name))
    if dims is not None:
        return context.scalar(math.prod(dims), "size")
    return squeezed(context, emulated_where.element_count(context, name).name, [0])
