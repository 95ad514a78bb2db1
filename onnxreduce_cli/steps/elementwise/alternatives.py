"""Alternatives to forms of element-wise operators that some runtimes get wrong.

An alternative means the same at the same opset. Which runtime gets what wrong is in `targets/`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import UNSIGNED
from onnxreduce_cli.model.graph.values import Dims
from onnxreduce_cli.steps.registry import instead

#: From this opset on floats can be compared for equality.
_EQUAL_OF_FLOATS = 11

#: Elements of a constant that is made as large as what it meets: 4 MB of float.
_MOST = 2**20


@instead("Pow", {"any", "scaled next"}, "written as products")
def as_products(context: Context) -> None:
    """``Pow(x, 3)`` becomes ``Mul(Mul(x, x), x)``, and ``Pow(x, 2)`` ``Mul(x, x)``."""
    base, exponent = context.input(0), context.constant(context.input(1))
    if exponent is None or exponent.size != 1 or exponent.ndim > (base.rank or 0):
        raise Blocked("its exponent is not one known number")
    power = exponent.reshape(()).item()
    if power not in (2, 3):
        raise Blocked("its exponent is neither 2 nor 3")
    factor = base if power == 2 else context.op.Mul(base, base)
    context.replace("Mul", [factor, base], keep=())


@instead("HardSigmoid", {"default beta"}, "written without its beta, which is the default")
def without_beta(context: Context) -> None:
    """``HardSigmoid<alpha=0.1667, beta=0.5>(x)`` becomes ``HardSigmoid<alpha=0.1667>(x)``."""
    context.replace(drop=("beta",))


@instead(
    ("Add", "Sub", "Equal", "Greater", "Less", "Max", "Min"),
    {"broadcast", "inner broadcast"},
    "written with the dimensions that it broadcasts last, between Transposes",
)
def broadcasting_last(context: Context) -> None:
    """``Add(x, z)`` of shapes [2, 3, 4] and [2, 1, 4] becomes
    ``Transpose(Add(Transpose(x), Transpose(z)))`` of shapes [2, 4, 3] and [2, 4, 1].
    """
    found = [_of_rank(context, index) for index in range(len(context.node.input))]
    operands, shapes = [value for value, _ in found], [dims for _, dims in found]
    first = shapes[0]
    rank = len(first)
    last = [axis for axis in range(rank) if any(dims[axis] != first[axis] for dims in shapes)]
    perm = [axis for axis in range(rank) if axis not in last] + last
    if perm == list(range(rank)) or rank - len(last) < 2:
        raise Blocked("Transposes would not make it broadcast its last dimensions")
    turned = [context.op.Transpose(operand, perm=perm) for operand in operands]
    made = context.replace(inputs=turned, outputs=[context.fresh("last")])
    inverse = [perm.index(axis) for axis in range(rank)]
    context.op.Transpose(made.output[0], outputs=[context.node.output[0]], perm=inverse)


def _of_rank(context: Context, index: int) -> tuple[str, Dims]:
    """Return an operand with 1s added before its dimensions up to the rank of the result.

    Raises:
        Blocked: its shape is not known, or the rank is not.
    """
    value = context.input(index)
    rank = max(
        context.need_rank(name, "the others are reshaped to it") for name in context.node.input
    )
    dims = value.dims or ()
    if len(dims) == rank:
        return value, dims
    known = [1] * (rank - len(dims)) + [dim if isinstance(dim, int) else -1 for dim in dims]
    if known.count(-1) > 1 or 0 in known:
        raise Blocked("its operands are of several ranks, and their shapes are not known")
    return context.op.Reshape(value, context.array(known, "shape")), tuple(known)


@instead("Sub", {"smaller first"}, "written with the larger operand first")
def larger_first(context: Context) -> None:
    """``Sub(x, y)`` becomes ``Add(Neg(y), x)``, which rounds to the same."""
    first, second = context.input(0), context.input(1)
    if second.elem_type is None or second.elem_type in UNSIGNED:
        raise Blocked("its dtype has no negative numbers, or is not known")
    context.replace("Add", [context.op.Neg(second), first])


@instead(
    ("Add", "Sub", "Mul", "Div"), {"smaller constant"}, "its constant made as large as the result"
)
def with_whole_constant(context: Context) -> None:
    """``Mul(x, [5.0, 6.0])``, x of shape [2, 2], becomes ``Mul(x, [[5.0, 6.0], [5.0, 6.0]])``."""
    result = context.type(context.node.output[0])
    dims = None if result is None else result.dims
    known = [dim for dim in dims or () if isinstance(dim, int)]
    if dims is None or len(known) < len(dims) or math.prod(known) > _MOST:
        raise Blocked(f"the shape of the result is not known, or has over {_MOST:,} elements")
    inputs = []
    for name in (context.input(0), context.input(1)):
        array = context.constant(name)
        if array is None or array.size == 1 or list(array.shape) == known:
            inputs.append(name)
        elif not _fits(array.shape, known):
            raise Blocked("the model states another shape of the result than it has")
        else:
            inputs.append(context.array(np.broadcast_to(array, known).copy(), "whole"))
    context.replace(inputs=inputs)


def _fits(shape: Sequence[int], result: Sequence[int]) -> bool:
    """Return whether a tensor of a shape can be broadcast to that of the result."""
    pairs = zip(reversed(shape), reversed(result), strict=False)
    return len(shape) <= len(result) and all(size in (1, dim) for size, dim in pairs)


@instead(("Div", "Mul"), {"norm", "norm of another"}, "written with both operands negated")
def of_negatives(context: Context) -> None:
    """``Div(x, ReduceL2(x))`` becomes ``Div(Neg(x), Neg(ReduceL2(x)))``, which is the same."""
    operands = [context.input(0), context.input(1)]
    if operands[1].elem_type is None or operands[1].elem_type in UNSIGNED:
        raise Blocked("its dtype has no negative numbers, or is not known")
    context.replace(inputs=[context.op.Neg(operand) for operand in operands])


@instead(
    ("Add", "Sub", "Mul", "Div", "Max", "Min"),
    {"operand of rank 1"},
    "written with that operand reshaped to the rank of the result",
)
def of_one_rank(context: Context) -> None:
    """``Add(x, z)`` of shapes [2, 3, 4] and [4] becomes ``Add(x, Reshape(z, [1, 1, -1]))``."""
    names = [context.input(index) for index in range(len(context.node.input))]
    ranks = [context.need_rank(name, "the others are reshaped to it") for name in names]
    shape = [1] * (max(ranks) - 1) + [-1]
    context.replace(
        inputs=[
            context.op.Reshape(name, context.array(shape, "row"))
            if rank == 1 and context.constant(name) is None
            else name
            for name, rank in zip(names, ranks, strict=True)
        ]
    )


@instead(("Max", "Min", "Sum", "Mean"), {"more than two"}, "written in pairs")
def in_pairs(context: Context) -> None:
    """``Max(a, b, c)`` becomes ``Max(Max(a, b), c)``, and Mean ``Div(Add(Add(a, b), c), 3)``."""
    op_type = context.node.op_type
    names = [context.input(index) for index in range(len(context.node.input))]
    pair = "Add" if op_type in ("Sum", "Mean") else op_type
    found: str = names[0]
    for name in names[1:] if op_type == "Mean" else names[1:-1]:
        found = context.op.emit(pair, found, name)
    last: str = names[-1]
    if op_type == "Mean":
        elem_type = context.need_elem_type(names[0], "the number of operands is of the same")
        pair, last = "Div", context.scalar(len(names), "count", elem_type)
    context.replace(pair, [found, last], keep=())


@instead("Cast", {"float to integer"}, "written with what it cuts off cut off before")
def of_whole_numbers(context: Context) -> None:
    """``Cast<to=7>(x)`` becomes ``Cast<to=7>(Floor(Relu(x)) - Floor(Relu(-x)))``; to bool it is
    whether ``x == 0`` is false.
    """
    context = context.at(max(context.op.opset, _EQUAL_OF_FLOATS))
    op, given = context.op, context.input(0)
    if context.value("to") == TensorProto.BOOL:
        elem_type = context.need_elem_type(given, "it is compared with 0 of it")
        is_zero = op.Cast(op.Equal(given, context.scalar(0, "zero", elem_type)), to=elem_type)
        context.replace("Equal", [is_zero, context.scalar(0, "zero", elem_type)], keep=())
        return
    below = op.Floor(op.Relu(op.Neg(given)))
    context.replace(inputs=[op.Sub(op.Floor(op.Relu(given)), below)])
