"""Gemm, PRelu, Mod, BitShift, Selu and Range: what changed besides the dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import INTEGERS, cast
from onnxreduce_cli.emit.context import Blocked, Context
from onnxreduce_cli.emit.numbers import as_name, dims_of, need_dims, size_of
from onnxreduce_cli.emit.repeat import rank_of, repeated_to, trailing_ones
from onnxreduce_cli.model.values import Dims, dtype_name
from onnxreduce_cli.steps.registry import down, up


@up("Gemm", 7, "broadcast: dropped")
def gemm_without_broadcast(context: Context) -> None:
    """``Gemm<broadcast=1>(a, b, c)`` becomes ``Gemm(a, b, c)``."""
    if context.attribute("broadcast") is not None:
        context.replace(drop=("broadcast",))


@down(
    "Gemm",
    7,
    "broadcast=1 where C is repeated along the rows, else C repeated by Tile",
    blocks="the rank of C is not known",
)
def gemm_with_broadcast(context: Context) -> None:
    """``Gemm(a, b, c)`` with c of shape [N] becomes ``Gemm<broadcast=1>(a, b, c)``, and with c of
    shape [M, 1] ``Gemm(a, b, Tile(c, [1, N]))``.
    """
    a, b, c = (context.input(index) for index in range(3))
    dims = need_dims(context, c, "before opset 7 broadcasting depends on it")
    full = dims_of(context, context.node.output[0])
    if len(dims) < 2:
        context.replace(broadcast=1)
    elif None not in dims and dims == full:
        return
    elif dims[0] == 1:
        row = context.op.Squeeze(c, axes=[0])
        context.replace(inputs=[a, b, row], broadcast=1)
    else:
        wide = repeated_to(context, c, full or (None, None), lambda: _product_sizes(context))
        context.replace(inputs=[a, b, wide])


def _product_sizes(context: Context) -> Value:
    """The shape of a product of two matrices, each of which may be transposed."""
    ends = (
        (context.input(0), 1 if context.value("transA", 0) else 0),
        (context.input(1), 0 if context.value("transB", 0) else 1),
    )
    sizes = [as_name(context, size_of(context, name, axis)) for name, axis in ends]
    return context.op.Concat(*sizes, axis=0)


@down("Gemm", 11, "a missing C written as 0")
def gemm_with_bias(context: Context) -> None:
    """``Gemm(a, b)`` becomes ``Gemm(a, b, 0)``."""
    if not context.input(2):
        elem_type = context.need_elem_type(context.input(0), "C gets the same")
        zero = context.scalar(0, "zero", elem_type)
        context.replace(inputs=[context.input(0), context.input(1), zero])


@up("PRelu", 7, "slope: aligned with the channels")
def slope_aligned(context: Context) -> None:
    """``PRelu(x, slope)`` with slopes [C], x [N, C, H, W], becomes ``PRelu(x, Unsqueeze(slope))``.

    The slope then has the shape [C, 1, 1]. Where a rank is not known that is done at run time.
    """
    op = context.op
    data, slope = context.input(0), context.input(1)
    dims, rank = dims_of(context, slope), context.settled_rank(data)
    if dims is not None and all(dim == 1 for dim in dims):
        return
    if rank is None or dims is None:
        two = context.array(np.array([2], np.float32), "two")
        apart = op.Sub(rank_of(context, data, TensorProto.FLOAT), two)
        behind = cast(context, op.Relu(apart), TensorProto.INT64)
        slopes = op.Reshape(slope, context.array([-1], "list"))
        context.replace(inputs=[data, trailing_ones(context, slopes, behind)])
    elif len(dims) == 1 and rank > 2:
        axes = list(range(1, rank - 1))
        context.replace(inputs=[data, op.Unsqueeze(slope, axes=axes)])


@down(
    "PRelu",
    7,
    "slope: one element, or one for each channel, which may be every element",
    blocks="a rank is not known",
)
def slope_for_channels(context: Context) -> None:
    """``PRelu(x, slope)`` with slopes [C, 1, 1] becomes ``PRelu(x, Reshape(slope, [-1]))``.

    Any other slope is repeated to the shape of x, whose elements are all channels of one then:
    ``Reshape(PRelu(Flatten<axis=0>(x), Reshape(Expand(slope, Shape(x)), [-1])), Shape(x))``.
    """
    op = context.op
    data, slope = context.input(0), context.input(1)
    dims, rank = dims_of(context, slope), context.settled_rank(data)
    if dims is not None and (
        all(dim == 1 for dim in dims) or (rank is not None and _is_for_channels(dims, rank))
    ):
        if len(dims) > 1:
            slopes = op.Reshape(slope, context.array([-1], "list"))
            context.replace(inputs=[data, slopes])
        return
    context = context.at(14)  # A Reshape takes a 0 for what it is there; its own step goes on.
    op = context.op
    shape = op.Shape(data)
    wide = op.Expand(slope, shape)
    slopes = op.Reshape(wide, context.array([-1], "list"))
    flat = op.Flatten(data, axis=0)
    output = context.node.output[0]
    result = context.replace(inputs=[flat, slopes], outputs=[context.fresh("flat")]).output[0]
    op.Reshape(result, shape, outputs=[output], allowzero=1)


def _is_for_channels(dims: Dims, rank: int) -> bool:
    channel = 1 - (rank - len(dims))
    return all(dim == 1 or index == channel for index, dim in enumerate(dims))


@down("Mod", 28, "fmod=0 of floats: fmod=1, to which B is added where the signs differ")
def floor_of_floats(context: Context) -> None:
    """``Mod(a, b)`` of floats becomes ``Where(r and b differ in sign, r + b, Abs(r) * Sign(b))``.

    r is ``Mod<fmod=1>(a, b)``. The sign is written anew because a zero has that of b too.
    """
    op = context.op
    elem_type = context.need_elem_type(context.input(0), "fmod=0 of floats came with opset 28")
    if elem_type in INTEGERS or context.value("fmod", 0):
        return
    divisor, output = context.input(1), context.node.output[0]
    rest = context.replace(outputs=[context.fresh("rest")], fmod=1).output[0]
    zero = context.scalar(0, "zero", elem_type)
    signs = [
        op.And(op.emit(first, rest, zero), op.emit(second, divisor, zero))
        for first, second in (("Less", "Greater"), ("Greater", "Less"))
    ]
    differ = op.Or(*signs)
    moved = op.Add(rest, divisor)
    size = op.Abs(rest)
    sign = op.Sign(divisor)
    signed = op.Mul(size, sign)
    op.Where(differ, moved, signed, outputs=[output])


_SELU: dict[str, tuple[float, float]] = {
    "alpha": (1.6732, 1.67326319217681884765625),
    "gamma": (1.0507, 1.05070102214813232421875),
}


@up("Selu", 6, "the less precise defaults written out, consumed_inputs dropped")
def selu_older_defaults(context: Context) -> None:
    """``Selu(x)`` becomes ``Selu<alpha=1.6732, gamma=1.0507>(x)``."""
    values: dict[str, Any] = {
        n: older for n, (older, _) in _SELU.items() if context.attribute(n) is None
    }
    if values or context.attribute("consumed_inputs") is not None:
        context.replace(drop=("consumed_inputs",), **values)


@down("Selu", 6, "the more precise defaults written out")
def selu_newer_defaults(context: Context) -> None:
    """``Selu(x)`` becomes ``Selu<alpha=1.6732632, gamma=1.0507010>(x)``."""
    values: dict[str, Any] = {
        n: newer for n, (_, newer) in _SELU.items() if context.attribute(n) is None
    }
    if values:
        context.replace(**values)


_HALVES = {TensorProto.FLOAT16, TensorProto.BFLOAT16}


@down(
    "Range",
    27,
    "half types computed in float or double, as stash_type says",
    blocks="stash_type is neither for them, for which nothing says how to count",
)
def range_in_float(context: Context) -> None:
    """``Range(a, b, c)`` of float16 becomes ``Cast<float16>(Range(Cast<float>(a), ...))``."""
    stash = context.value("stash_type", TensorProto.FLOAT)
    given = context.need_elem_type(context.input(0), "half types came with opset 27")
    drop = ("stash_type",)
    if given not in _HALVES:
        if context.attribute("stash_type") is not None:
            context.replace(drop=drop)
        return
    if stash not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        raise Blocked(
            f"its stash_type is {dtype_name(stash)}, and nothing says how to count in that: the "
            "operator's function body knows float and double",
            "use one of these",
        )
    inputs = [cast(context, name, stash) for name in context.node.input]
    outputs = [context.fresh(dtype_name(stash))]
    wide = context.replace(inputs=inputs, outputs=outputs, drop=drop).output[0]
    cast(context, wide, given, [context.node.output[0]])
