"""Gemm: 7 introduced NumPy's broadcasting of C, 9 integers; 11 made C optional."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.broadcast import broadcast_to
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, as_name
from onnxreduce_cli.emit.sizes import dims_of, need_dims, size_of
from onnxreduce_cli.model.graph.values import numpy_dtype
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
        wide = broadcast_to(context, c, full or (None, None), lambda: _product_sizes(context))
        context.replace(inputs=[a, b, wide])


def _product_sizes(context: Context) -> Value:
    """Return the shape of ``MatMul(A, B)``, A and B transposed as in the node, int64 [2]."""
    ends = (
        (context.input(0), 1 if context.value("transA", 0) else 0),
        (context.input(1), 0 if context.value("transB", 0) else 1),
    )
    sizes = [as_name(context, size_of(context, name, axis)) for name, axis in ends]
    return context.op.Concat(*sizes, axis=0)


@down(
    "Gemm",
    9,
    "of integers: Transpose, MatMul and Add",
    blocks="alpha or beta of integers is not whole",
)
def gemm_of_integers(context: Context) -> None:
    """``Gemm<transA=1>(a, b, c)`` of integers becomes ``Add(MatMul(Transpose(a), b), c)``."""
    elem_type = context.elem_type(context.input(0))
    if elem_type not in INTEGERS:
        return
    assert elem_type is not None
    context = context.at(9)  # There MatMul takes integers; its own step leads on.
    op = context.op
    terms = []
    factors = [
        op.Transpose(name) if context.value(attribute, 0) else name
        for attribute, name in zip(("transA", "transB"), context.node.input, strict=False)
    ]
    for attribute, name in (
        ("alpha", op.MatMul(*factors)),
        ("beta", context.input(2)),
    ):
        scale = context.value(attribute, 1.0)
        if scale != int(scale):
            raise Blocked(
                f"it scales integers by {attribute}={scale}, and its definition does not say how "
                "they are rounded",
                f"make {attribute} a whole number",
            )
        if scale != 1:
            name = op.Mul(name, context.scalar(int(scale), attribute, elem_type))
        terms.append(name)
    context.replace("Add", terms, keep=())


@down("Gemm", 11, "a missing C written as 0")
def gemm_with_bias(context: Context) -> None:
    """``Gemm(a, b)`` becomes ``Gemm(a, b, [-0.0, ..., -0.0])``, which leaves the sign of a zero.

    Some runtimes take C for the bias of a layer, which has a number for each column; it is one
    number where their number is not known.
    """
    if context.input(2):
        return
    elem_type = context.need_elem_type(context.input(0), "C gets the same")
    dims = dims_of(context, context.node.output[0])
    columns = dims[1] if dims is not None and len(dims) == 2 else None
    if isinstance(columns, int) and columns <= LARGEST_CONSTANT:
        zero = context.array(np.full(columns, -0.0).astype(numpy_dtype(elem_type)), "zeros")
    else:
        zero = context.scalar(-0.0, "zero", elem_type)
    context.replace(inputs=[context.input(0), context.input(1), zero], drop=("beta",))
