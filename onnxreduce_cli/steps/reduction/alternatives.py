"""Alternatives to forms of the Reduce and Softmax family that some runtimes get wrong.

An alternative means the same at the same opset. Which runtime gets what wrong is in `targets/`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import (
    constant_axes,
    known_axes,
    non_negative_axes,
    reduced,
    squeezed,
    unsqueezed,
)
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.emit.refusals import need_few
from onnxreduce_cli.emit.sizes import sliced
from onnxreduce_cli.model.graph.values import Dims, iinfo, numpy_dtype
from onnxreduce_cli.schemas import REDUCE, SOFTMAX
from onnxreduce_cli.steps.reduction.reduce_sum_13_others_18 import elementwise_part
from onnxreduce_cli.steps.reduction.softmax import as_last_axis, restore_shape
from onnxreduce_cli.steps.registry import instead

#: The last opset at which all reductions have their axes as an attribute.
_AXES_AS_ATTRIBUTE = 12

#: Why a node of unknown rank has no alternative, and what to do.
_UNKNOWN_RANK = ("its rank is not known", "state the shape of its input in the model's value_info")

#: How many rows of a matrix OpenCV 4.8 reduces in one thread; in several it mixes them up.
_MOST_ROWS = 1535

#: Into how many matrices a reduction is written at most.
_MOST_MATRICES = 64

_OPPOSITES = {"ReduceMin": "ReduceMax", "ReduceMax": "ReduceMin"}

#: From this opset on integers of 8 and 16 bits are subtracted.
_SUB_OF_BYTES = 14

#: From this opset on floats can be compared for equality.
_EQUAL_OF_FLOATS = 11


@instead(REDUCE, {"noop"}, "written as the element-wise part alone")
def without_reduction(context: Context) -> None:
    """``ReduceSum<noop_with_empty_axes=1>(x)`` becomes ``Identity(x)``, ReduceL1 ``Abs(x)``."""
    axes = known_axes(context)
    if axes != ():
        raise Blocked("its axes are only known at run time")
    elementwise_part(context.at(_AXES_AS_ATTRIBUTE))


@instead(
    tuple(_OPPOSITES),
    {"any", "axes attribute", "axes input"},
    "written as the opposite of what is turned around",
)
def by_opposite(context: Context) -> None:
    """``ReduceMin(x)`` becomes ``Neg(ReduceMax(Neg(x)))``, of int64 ``-1 - ReduceMax(-1 - x)``.

    The least integer has no negative of its dtype. Of bool it is ``Not``, of uint8 ``255 - x``.
    """
    elem_type = context.need_elem_type(context.input(0), "what turns it around depends on it")

    whole = context.at(max(context.op.opset, _SUB_OF_BYTES))

    def turned(value: str, outputs: Sequence[str] | None = None) -> Value:
        if elem_type == TensorProto.BOOL:
            return context.op.Not(value, outputs=outputs)
        if elem_type not in INTEGERS:
            return context.op.Neg(value, outputs=outputs)
        limits = iinfo(numpy_dtype(elem_type))
        ends = context.scalar(limits.min + limits.max, "ends", elem_type)
        return whole.op.Sub(ends, value, outputs=outputs)

    given, axes = context.node.input[0], context.node.input[1:]
    made = context.replace(
        _OPPOSITES[context.node.op_type],
        [turned(given), *axes],
        outputs=[context.fresh("opposite")],
    )
    turned(made.output[0], context.node.output)


@instead(
    ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"),
    {"single elements"},
    "written as the element-wise part alone",
)
def of_single_elements(context: Context) -> None:
    """``ReduceL1<axes=[0], keepdims=0>(x)``, x of shape [1, 2], becomes ``Abs(Squeeze(x))``."""
    goes = [] if context.value("keepdims", 1) else _axes_from_front(context)
    elementwise_part(context, squeezed(context, context.input(0), goes))


@instead(
    ("ReduceMax", "ReduceMean", "ReduceSum"),
    {"outer axes"},
    "written as one reduction for each dimension",
)
def reduce_one_by_one(context: Context) -> None:
    """``ReduceMax<axes=[1, 2]>(x)`` becomes ``ReduceMax<axes=[2]>(ReduceMax<axes=[1]>(x))``."""
    op_type, axes = context.node.op_type, _axes_from_front(context)
    if len(axes) < 2:
        raise Blocked("it reduces over one dimension only")
    value: str = context.input(0)
    for axis in axes:
        value = reduced(context, op_type, value, [axis], keep=True)
    goes = [] if context.value("keepdims", 1) else axes
    context.replace("Identity", [squeezed(context, value, goes)], keep=())


@instead(REDUCE, {"negative axes"}, "written with axes counted from the front")
def counted_from_the_front(context: Context) -> None:
    """``ReduceMax<axes=[1, -1]>(x)``, x of rank 4, becomes ``ReduceMax<axes=[1, 3]>(x)``."""
    context.replace(axes=_axes_from_front(context))


@instead(REDUCE, {"all axes"}, "written without axes, which means all")
def without_axes(context: Context) -> None:
    """``ReduceMax<axes=[0, 1]>(x)``, x of shape [2, 3], becomes ``ReduceMax(x)``."""
    context.replace(inputs=[context.input(0)], drop=("axes", "noop_with_empty_axes"))


@instead(REDUCE, {"kept dimensions"}, "written with its dimensions dropped, and Unsqueeze")
@instead(
    REDUCE, {"scaled beside batch"}, "written with the other keepdims, and Unsqueeze or Squeeze"
)
def with_other_keepdims(context: Context) -> None:
    """``ReduceSum<axes=[1]>(x)`` becomes ``Unsqueeze(ReduceSum<axes=[1], keepdims=0>(x), [1])``,
    and ``ReduceSum<axes=[0], keepdims=0>(x)`` ``Squeeze(ReduceSum<axes=[0]>(x), [0])``.
    """
    axes, output = _axes_from_front(context), context.node.output[0]
    hint, keepdims, restored = (
        ("dropped", 0, unsqueezed) if context.value("keepdims", 1) else ("kept", 1, squeezed)
    )
    made = context.replace(outputs=[context.fresh(hint)], keepdims=keepdims)
    context.op.Identity(restored(context, made.output[0], axes), outputs=[output])


@instead(
    REDUCE,
    {"three kept", "last kept", "three reduced", "three reduced, not last"},
    "written as a matrix, over its last dimension",
)
def of_rows(context: Context) -> None:
    """``ReduceMax<axes=[0]>(x)``, x of shape [2, 3, 4, 5], becomes
    ``Reshape(ReduceMax<axes=[1]>(Reshape(Transpose(x), [60, 2])), [1, 3, 4, 5])``.
    """
    _write_of_rows(context)


@instead(REDUCE, {"in threads"}, "written as matrices of few rows, over their last dimension")
def of_few_rows(context: Context) -> None:
    """``ReduceMax<axes=[1]>(x)``, x of shape [2000, 3], becomes ``Concat(ReduceMax<axes=[1]>(a),
    ReduceMax<axes=[1]>(b))`` with ``a = Slice(x, [0], [1000])``, ``b = Slice(x, [1000], [2000])``.

    It does for any axes and shape what `of_rows` does before and behind that.
    """
    _write_of_rows(context, _MOST_ROWS)


def _write_of_rows(context: Context, most: int | None = None) -> None:
    """Write the node as reductions of matrices of at most so many rows, by default as one."""
    dims, axes = context.input(0).dims, _axes_from_front(context)
    known = None if dims is None else _dims_for_reshape(dims)
    if dims is None or known is None or (most and -1 in known):
        raise Blocked("its shape is not known", "fix its dimensions: --dim NAME=SIZE")
    kept = [axis for axis in range(len(dims)) if axis not in axes]
    perm, value = kept + axes, context.input(0)
    if perm != sorted(perm):
        value = context.op.Transpose(value, perm=perm)
    sizes = [max(math.prod(known[axis] for axis in part), -1) for part in (kept, axes)]
    matrix = context.op.Reshape(value, context.array(sizes, "matrix"))
    count = -(-sizes[0] // most) if most else 1
    if count > _MOST_MATRICES:
        raise Blocked(f"it has {sizes[0]:,} results, more than are written out")
    bounds = [sizes[0] * part // count for part in range(count + 1)]
    parts: list[str] = [matrix]
    if count > 1:
        parts = [sliced(context, matrix, start, end) for start, end in pairwise(bounds)]
    parts = [reduced(context, context.node.op_type, part, [1], keep=True) for part in parts]
    rows = context.op.Concat(*parts, axis=0) if count > 1 else parts[0]
    left = [known[axis] for axis in kept]
    if context.value("keepdims", 1):
        left = [1 if axis in axes else dim for axis, dim in enumerate(known)]
    context.replace("Reshape", [rows, context.array(left, "shape")], keep=())


def _axes_from_front(context: Context) -> list[int]:
    """Return the axes of a reduction as non-negative integers, in ascending order.

    Raises:
        Blocked: they are not known, or the rank is not.
    """
    dims, axes = context.input(0).dims, constant_axes(context)
    if dims is None:
        raise Blocked(*_UNKNOWN_RANK)
    return sorted(non_negative_axes(axes or tuple(range(len(dims))), len(dims)))


@instead(
    SOFTMAX,
    {"flattening", "flattening from the end"},
    "written as a matrix, over its last dimension",
)
def over_rows(context: Context) -> None:
    """``Softmax<axis=1>(x)``, x of shape [2, 3, 4], becomes
    ``Reshape(Softmax<axis=1>(Reshape(x, [2, 12])), [2, 3, 4])``.
    """
    dims = context.input(0).dims
    if dims is None:
        raise Blocked(*_UNKNOWN_RANK)
    axis = non_negative_axes((context.value("axis", 1),), len(dims))[0]
    flat = _flatten_to_matrix(context, dims, axis)
    made = context.replace(inputs=[flat], outputs=[context.fresh("matrix")], axis=1)
    _restore_dims(context, made.output[0], dims, axis)


@instead(SOFTMAX, {"inner axis"}, "written over the last dimension, between Transposes")
def over_last_axis(context: Context) -> None:
    """``Softmax<axis=1>(x)`` of x of rank 3, at 13 and above, becomes
    ``Transpose(Softmax<axis=2>(Transpose(x)))``.
    """
    known = context.input(0).type
    if known is None or known.dims is None:
        raise Blocked(*_UNKNOWN_RANK)
    axis = non_negative_axes((context.value("axis", -1),), len(known.dims))[0]
    as_last_axis(context, known, known.dims, axis)


@instead(
    "Hardmax",
    {"any", "flattening", "inner axis", "after Transpose"},
    "written as comparisons with the greatest element",
)
def by_comparison(context: Context) -> None:
    """``Hardmax<axis=-1>(x)`` becomes ``rank == ReduceMax(rank)`` where the greatest elements have
    the ranks n to 1 in order, and all others less: rank is
    ``n * ((x == ReduceMax(x)) - (x == x)) + [n, ..., 1]``.

    ArgMax would do with fewer nodes, but OpenCV 4.6 refuses it in the middle of a graph.
    """
    data, old = context.input(0), context.op.opset < 13
    dims = _known_dims(data.dims)
    if dims is None:
        raise Blocked("its shape is not known", "fix its dimensions: --dim NAME=SIZE")
    axis = non_negative_axes((context.value("axis", 1 if old else -1),), len(dims))[0]
    context = context.at(max(context.op.opset, _EQUAL_OF_FLOATS))
    output = context.node.output[0]
    if old and any(dim != 1 for dim in dims[axis + 1 :]):
        matrix = _flatten_to_matrix(context, dims, axis)
        rows = (math.prod(dims[:axis]), math.prod(dims[axis:]))
        _restore_dims(context, _first_greatest(context, matrix, rows, 1, None), dims, axis)
    else:
        _first_greatest(context, data, dims, axis, output)


def _first_greatest(
    context: Context, data: Value, dims: Sequence[int], axis: int, output: str | None
) -> Value:
    """Emit 1 for the first of the greatest elements along an axis, and 0 for all others."""
    op, count = context.op, dims[axis]
    elem_type = context.need_elem_type(context.input(0), "the result is of the same")
    need_few(math.prod(dims), "it has")

    def equal(a: str, b: str) -> Value:
        return op.Cast(op.Equal(a, b), to=elem_type)

    # 0 for the greatest, and for what is not equal to itself; -1 for all others.
    below = op.Sub(
        equal(data, reduced(context, "ReduceMax", data, [axis], keep=True)), equal(data, data)
    )
    ranks = np.arange(count, 0, -1).astype(numpy_dtype(elem_type))
    across = [1] * axis + [count] + [1] * (len(dims) - axis - 1)
    # Of the whole shape: OpenCV 4.6 refuses an operand that is constant and smaller.
    whole = context.array(np.broadcast_to(ranks.reshape(across), dims).copy(), "ranks")
    ranked = op.Add(op.Mul(below, context.scalar(count, "count", elem_type)), whole)
    first = op.Equal(ranked, reduced(context, "ReduceMax", ranked, [axis], keep=True))
    return op.Cast(first, to=elem_type, outputs=None if output is None else [output])


def _known_dims(dims: Dims | None) -> list[int] | None:
    """Return the dimensions if all are known, else None."""
    known = [dim for dim in dims or () if isinstance(dim, int)]
    return None if dims is None or len(known) < len(dims) else known


def _dims_for_reshape(dims: Dims | Sequence[int]) -> list[int] | None:
    """Return the dimensions for a Reshape, -1 for an unknown one; None if several are unknown.

    Nor may there be a dimension of 0, with which -1 could be anything.
    """
    known = [dim if isinstance(dim, int) else -1 for dim in dims]
    return None if known.count(-1) > 1 or 0 in known else known


def _flatten_to_matrix(context: Context, dims: Dims | Sequence[int], axis: int) -> Value:
    """Return the data of shape [product of dims[:axis], product of dims[axis:]]."""
    known = _dims_for_reshape(dims)
    if known is None:
        return context.op.Flatten(context.input(0), axis=axis)
    sizes = [max(math.prod(part), -1) for part in (known[:axis], known[axis:])]
    return context.op.Reshape(context.input(0), context.array(sizes, "matrix"))


def _restore_dims(context: Context, matrix: str, dims: Dims | Sequence[int], axis: int) -> None:
    """Give a matrix the shape of the data, as the node's output."""
    known = _dims_for_reshape(dims)
    if known is None:
        restore_shape(context, matrix, axis, tuple(dims))
    else:
        context.op.Reshape(matrix, context.array(known, "shape"), outputs=[context.node.output[0]])
