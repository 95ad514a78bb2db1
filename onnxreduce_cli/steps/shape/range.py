"""Range: 11 introduced it; 27 added half types, and stash_type: the dtype in which it counts."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES, INTEGERS
from onnxreduce_cli.emit.numbers import sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import arange
from onnxreduce_cli.model.graph.values import dtype_name, numpy_dtype
from onnxreduce_cli.steps.registry import down, introduced


@down(
    "Range",
    27,
    "half types computed in float or double, as stash_type says",
    blocks="stash_type is another dtype, which the function body does not define",
)
def range_in_float(context: Context) -> None:
    """``Range(a, b, c)`` of float16 becomes ``Cast<float16>(Range(Cast<float>(a), ...))``."""
    stash = context.value("stash_type", TensorProto.FLOAT)
    elem_type = context.need_elem_type(context.input(0), "half types came with opset 27")
    drop = ("stash_type",)
    if elem_type not in HALVES:
        if context.attribute("stash_type") is not None:
            context.replace(drop=drop)
        return
    if stash not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        raise Blocked(
            f"its stash_type is {dtype_name(stash)}, and nothing says how to count in that: the "
            "operator's function body knows float and double",
            "use float or double",
        )
    inputs = [cast(context, name, stash) for name in context.node.input]
    outputs = [context.fresh(dtype_name(stash))]
    wide = context.replace(inputs=inputs, outputs=outputs, drop=drop).output[0]
    cast(context, wide, elem_type, [context.node.output[0]])


@introduced("Range", 11, "start + i * delta, i the indices of as many ones", blocks=NO_COUNTING)
def range_(context: Context) -> None:
    """``Range(start, limit, delta)`` becomes ``Add(start, Mul(i, delta))`` with
    ``i = Squeeze(NonZero(ConstantOfShape<value=1>(count)))``; before opset 9 a Loop counts.
    """
    op = context.op
    start, limit, delta = (context.input(index) for index in range(3))
    elem_type = context.need_elem_type(start, "how to count depends on it")
    distance = op.Sub(limit, start)
    integers = elem_type in INTEGERS
    wide = TensorProto.INT64 if integers else TensorProto.DOUBLE
    distance_and_delta = (
        _as(context, distance, elem_type, wide),
        _delta_as(context, elem_type, wide),
    )
    if integers:
        count = _integer_count(context, *distance_and_delta)
    else:
        steps = op.Ceil(op.Div(*distance_and_delta))
        count = cast(context, op.Relu(steps), TensorProto.INT64)
    # Function bodies of other operators give Range tensors of shape [1] for scalars.
    count = op.Reshape(count, context.array([1], "one"))
    numbers = arange(context, sizes(context, count))
    numbers = _as(context, numbers, TensorProto.INT64, elem_type)
    scaled = numbers
    if not _is(context, delta, 1):
        scaled = op.Mul(numbers, delta)
    if _is(context, start, 0):
        context.replace("Identity", [scaled], keep=())
    else:
        context.replace("Add", [scaled, start], keep=())


def _as(context: Context, name: str, elem_type: int, to: int) -> str:
    """Return a tensor of dtype `elem_type` in dtype `to`."""
    return name if elem_type == to else cast(context, name, to)


def _delta_as(context: Context, elem_type: int, to: int) -> str:
    """Return the delta in dtype `to`; a constant becomes another constant, without a Cast."""
    delta = context.input(2)
    known = context.constant(delta)
    if known is not None:
        return context.array(known.astype(numpy_dtype(to)), "number")
    return _as(context, delta, elem_type, to)


def _is(context: Context, name: str, value: int) -> bool:
    """Return whether a tensor is a constant whose elements all equal `value`."""
    known = context.constant(name)
    return known is not None and bool(np.all(known == value))


def _integer_count(context: Context, distance: str, delta: str) -> Value:
    """Return how many steps of `delta` cover `distance`, 0 if they lead away; all are int64."""
    op = context.op
    zero = context.array(np.array(0, np.int64), "zero")
    if _is(context, delta, 1):
        steps = distance
        forward = cast(context, op.Greater(distance, zero), TensorProto.INT64)
    else:
        whole = op.Div(distance, delta)
        covered = op.Mul(whole, delta)
        rest = op.Not(op.Equal(covered, distance))
        steps = op.Add(whole, cast(context, rest, TensorProto.INT64))
        signs = [op.Greater(name, zero) for name in (distance, delta)]
        forward = cast(context, op.Equal(*signs), TensorProto.INT64)
    return op.Mul(steps, forward)
