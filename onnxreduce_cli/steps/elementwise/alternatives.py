"""Alternatives to forms of element-wise operators that some runtimes get wrong.

An alternative means the same at the same opset. Which runtime gets what wrong is in `targets/`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import FLOATS_WITH_BFLOAT16, UNSIGNED
from onnxreduce_cli.model.graph.values import Dims
from onnxreduce_cli.steps.registry import instead

#: Operators of one tensor that runtimes may compute in place.
UNARY = (
    "Abs",
    "Atan",
    "Ceil",
    "Clip",
    "Cos",
    "Erf",
    "Exp",
    "Floor",
    "HardSwish",
    "LeakyRelu",
    "Log",
    "Neg",
    "PRelu",
    "Reciprocal",
    "Relu",
    "Round",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softplus",
    "Sqrt",
    "Tanh",
)

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


@instead("Softmax", {"quantized"}, "written with a Max before it, which changes nothing")
@instead(
    UNARY,
    {"reads an output", "reads a reshaped output"},
    "given a copy, the maximum of it with itself",
)
def of_copy(context: Context) -> None:
    """``Relu(x)``, x being an output of the model too, becomes ``Relu(Max(x, x))``.

    What a runtime would join a node with, or overwrite, is another value then.
    """
    data = context.input(0)
    context.replace(inputs=[context.op.Max(data, data), *context.node.input[1:]])


@instead("CastLike", {"any"}, "written as Cast")
def as_cast(context: Context) -> None:
    """``CastLike(x, y)`` with y of int64 becomes ``Cast<to=7>(x)``."""
    to = context.need_elem_type(context.input(1), "it says what to cast to")
    context.replace("Cast", [context.input(0)], to=to)


@instead("HardSigmoid", {"default beta"}, "written without its beta, which is the default")
def without_beta(context: Context) -> None:
    """``HardSigmoid<alpha=0.1667, beta=0.5>(x)`` becomes ``HardSigmoid<alpha=0.1667>(x)``."""
    context.replace(drop=("beta",))


@instead(("Add", "Sub"), {"broadcast"}, "written with a matrix and a row")
def as_rows(context: Context) -> None:
    """``Add(x, z)`` of shapes [2, 3, 4] and [2, 1, 4] becomes Transpose and Reshape of x to [3, 8],
    of z to [1, 8], ``Add`` of these, and Reshape and Transpose back.
    """
    _in_matrices(context, rows_first=True)


@instead(
    ("Equal", "Greater", "Less", "Max", "Min"),
    {"broadcast before image"},
    "written with images of one row, and a number for each",
)
def as_images(context: Context) -> None:
    """``Max(x, z)`` of shapes [2, 3, 4] and [2, 1, 4] becomes Transpose and Reshape of x to
    [8, 1, 1, 3], of z to [8, 1, 1, 1], ``Max`` of these, and Reshape and Transpose back.
    """
    _in_matrices(context, rows_first=False)


def _in_matrices(context: Context, *, rows_first: bool) -> None:
    """Write a node with one operand that is broadcast along one axis, the first or the last.

    Args:
        context: the node.
        rows_first: whether the shapes become [n, m] and [1, m], else [m, 1, 1, n] and [m, 1, 1, 1].

    Raises:
        Blocked: both operands are broadcast, or their sizes are not known.
    """
    op = context.op
    names = [context.input(0), context.input(1)]
    shapes = _of_one_rank(context, names)
    larger = 0 if all(one != 1 or other == 1 for one, other in zip(*shapes, strict=True)) else 1
    dims, other = shapes[larger], shapes[1 - larger]
    if any(size == 1 != mate for size, mate in zip(dims, other, strict=True)):
        raise Blocked("both of its operands are broadcast")
    rows = [axis for axis, size in enumerate(other) if size == 1]
    kept = [axis for axis in range(len(dims)) if axis not in rows]
    perm = [*rows, *kept] if rows_first else [*kept, *rows]
    height, width = (_product(dims[axis] for axis in axes) for axes in (rows, kept))
    if height == width == -1:
        raise Blocked("more than one of its sizes is not known", "fix them: --dim NAME=SIZE")
    height = -1 if width != -1 else height
    wide, narrow = [height, width], [1, width]
    if not rows_first:
        wide, narrow = [width, 1, 1, height], [width, 1, 1, 1]
    turned = names[larger]
    if perm != sorted(perm):
        turned = op.Transpose(turned, perm=perm)
    operands = [
        op.Reshape(turned, context.array(wide, "matrix")),
        op.Reshape(names[1 - larger], context.array(narrow, "row")),
    ]
    if larger and context.node.op_type == "Sub":
        made = op.Add(op.Neg(operands[0]), operands[1])
    else:
        if larger and context.node.op_type in ("Greater", "Less"):
            operands.reverse()
        made = op.emit(context.node.op_type, *operands)
    back = [size if isinstance(size, int) else -1 for size in (dims[axis] for axis in perm)]
    if back.count(-1) > 1 or 0 in back:
        raise Blocked("more than one of its sizes is not known", "fix them: --dim NAME=SIZE")
    last = context.array(back, "shape")
    inverse = [perm.index(axis) for axis in range(len(perm))]
    if inverse == perm == sorted(perm):
        context.replace("Reshape", [made, last], keep=())
    else:
        context.replace("Transpose", [op.Reshape(made, last)], keep=(), perm=inverse)


def _product(sizes: Iterable[int | str | None]) -> int:
    """Return the product of sizes, -1 where one is not known."""
    known = list(sizes)
    whole = [size for size in known if isinstance(size, int)]
    return math.prod(whole) if len(whole) == len(known) else -1


def _of_one_rank(context: Context, names: Sequence[str]) -> list[Dims]:
    """Return the dimensions of values, with 1s before those of a lower rank.

    Raises:
        Blocked: a rank is not known.
    """
    rank = max(context.need_rank(name, "the others are reshaped to it") for name in names)
    known = [context.type(name) for name in names]
    shapes = [() if item is None or item.dims is None else tuple(item.dims) for item in known]
    return [(1,) * (rank - len(dims)) + dims for dims in shapes]


@instead(
    ("Max", "Min"),
    {"inner broadcast"},
    "written with the dimensions that it broadcasts last, between Transposes",
)
def broadcasting_last(context: Context) -> None:
    """``Max(x, z)`` of shapes [2, 3, 4] and [2, 1, 4] becomes
    ``Transpose(Max(Transpose(x), Transpose(z)))`` of shapes [2, 4, 3] and [2, 4, 1].
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


@instead("Add", {"like Gelu", "like Gelu in order"}, "written as Sub")
def as_difference(context: Context) -> None:
    """``Add(Erf(x), 1.0)`` becomes ``Sub(Erf(x), -1.0)``, which is the same."""
    kept, added = context.input(0), context.input(1)
    if context.constant(kept) is not None:
        kept, added = added, kept
    if added.elem_type not in FLOATS_WITH_BFLOAT16:
        raise Blocked("its dtype has no negative numbers, or is not known")
    array = context.constant(added)
    negated = context.op.Neg(added) if array is None else context.array(-array, "negated")
    context.replace("Sub", [kept, negated])


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


@instead(
    ("Less", "LessOrEqual", "Greater", "GreaterOrEqual"),
    {"narrow integer"},
    "written with its operands in int64",
)
def compared_in_int64(context: Context) -> None:
    """``Less(x, z)`` of int8 becomes ``Less(Cast<to=7>(x), Cast<to=7>(z))``."""
    names = [context.input(0), context.input(1)]
    context.replace(inputs=[context.op.Cast(name, to=TensorProto.INT64) for name in names])


@instead(("LeakyRelu", "PRelu"), {"like a second Relu"}, "written as Relus of both signs")
def as_relus(context: Context) -> None:
    """``LeakyRelu<alpha=0.1>(x)`` becomes ``Sub(Relu(x), Mul(Relu(Neg(x)), 0.1))``."""
    op, given = context.op, context.input(0)
    slope = context.input(1)
    if context.node.op_type == "LeakyRelu":
        elem_type = context.need_elem_type(given, "its slope is of the same")
        slope = context.scalar(context.value("alpha", 0.01), "slope", elem_type)
    below = op.Mul(op.Relu(op.Neg(given)), slope)
    context.replace("Sub", [op.Relu(given), below], keep=())


@instead("Clip", {"infinite bound"}, "written without its infinite bounds")
def without_infinite_bounds(context: Context) -> None:
    """``Clip(x, 0, inf)`` becomes ``Clip(x, 0)``."""
    bounds = [(context.input(1), -np.inf), (context.input(2), np.inf)]
    kept = ["" if context.constant(name) == limit else name for name, limit in bounds]
    context.replace(inputs=[context.input(0), *kept])


@instead("Cast", {"number to bool"}, "written as a comparison with 0")
def as_comparison(context: Context) -> None:
    """``Cast<to=9>(x)`` becomes ``Not(Equal(x, 0))``."""
    # From this opset on numbers of all dtypes but halves in bfloat16 can be compared.
    context = context.at(max(context.op.opset, _EQUAL_OF_FLOATS))
    given = context.input(0)
    elem_type = context.need_elem_type(given, "it is compared with 0 of it")
    if elem_type == TensorProto.STRING:
        raise Blocked("a string is no number")
    is_zero = context.op.Equal(given, context.scalar(0, "zero", elem_type))
    context.replace("Not", [is_zero], keep=())


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
