"""LayerNormalization and RMSNormalization as exporters write them.

ONNX Runtime fuses both (`LayerNormFusion`, `SimplifiedLayerNormFusion`) over the last axis, in
float and double, where the square is a Pow, the root a divisor, and there is a bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from onnx import TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.idiom import Idiom
from onnxreduce_cli.idioms.matching import IdiomMatch, NoMatchError
from onnxreduce_cli.idioms.parameters import (
    is_filled,
    is_shape_of,
    parameter_of_axes,
    require_dims,
    require_shape,
)
from onnxreduce_cli.idioms.tracing import Tracer
from onnxreduce_cli.idioms.writer import Writer

#: Returns the square of a tensor.
Square = Callable[[Writer, str], Value]
#: Returns a tensor divided by a root.
Divide = Callable[[Writer, str, str], Value]


class NormalizedData(NamedTuple):
    """Data minus its mean, divided by its standard deviation.

    Attributes:
        result: the normalised data, in the shape of the data.
        mean: the mean, of size 1 along the axes.
        deviation: the square root of variance + epsilon, of the mean's shape.
    """

    result: Value
    mean: str
    deviation: Value


def by_pow(to: Writer, data: str) -> Value:
    """Return the square as runtimes recognise it in a normalization."""
    return to.op.Pow(data, to.number(2))


def by_mul(to: Writer, data: str) -> Value:
    """Return the square in fewer nodes."""
    return to.op.Mul(data, data)


def _by_div(to: Writer, data: str, root: str) -> Value:
    return to.op.Div(data, root)


def _by_reciprocal(to: Writer, data: str, root: str) -> Value:
    return to.op.Mul(data, to.op.Reciprocal(root))


def _by_one_over(to: Writer, data: str, root: str) -> Value:
    return to.op.Mul(data, to.op.Div(to.number(1), root))


def normalized(
    to: Writer, data: str, square: Square = by_pow, divide: Divide = _by_div
) -> NormalizedData:
    """Return ``d / Sqrt(ReduceMean(Pow(d, 2)) + epsilon)`` with ``d = data - ReduceMean(data)``."""
    mean = to.reduced("ReduceMean", data)
    centred = to.op.Sub(data, mean)
    deviation = _root_mean(to, square(to, centred))
    return NormalizedData(divide(to, centred, deviation), mean, deviation)


def affine(to: Writer, data: str, scale: str, bias: str) -> Value:
    """Return ``data * scale + bias``, or ``data * scale`` if `bias` is empty."""
    scaled = to.op.Mul(data, scale)
    return to.op.Add(scaled, bias) if bias else scaled


def layer_normalization(
    to: Writer,
    data: str,
    scale: str,
    bias: str,
    square: Square = by_pow,
    divide: Divide = _by_div,
) -> Value:
    """LayerNormalization as PyTorch's exporter writes it below opset 17."""
    return affine(to, normalized(to, data, square, divide).result, scale, bias)


def _without_bias(to: Writer, data: str, scale: str, square: Square, divide: Divide) -> Value:
    return layer_normalization(to, data, scale, "", square, divide)


def rms_normalization(
    to: Writer, data: str, scale: str, square: Square = by_pow, divide: Divide = _by_div
) -> Value:
    """RMSNormalization as models write it below opset 23."""
    root = _root_mean(to, square(to, data))
    return to.op.Mul(divide(to, data, root), scale)


def _root_mean(to: Writer, squares: str) -> Value:
    """Return ``Sqrt(ReduceMean(squares) + epsilon)``."""
    mean = to.reduced("ReduceMean", squares)
    return to.op.Sqrt(to.op.Add(mean, to.number("epsilon", 1e-5)))


def _shift_by_neg(to: Writer, mean: str, factor: Value, bias: str) -> Value:
    return to.op.Add(to.op.Mul(to.op.Neg(mean), factor), bias)


def _shift_by_sub(to: Writer, mean: str, factor: Value, bias: str) -> Value:
    return to.op.Sub(bias, to.op.Mul(mean, factor))


def _folded(
    to: Writer,
    data: str,
    scale: str,
    bias: str,
    shift: Callable[[Writer, str, Value, str], Value],
    divide: Divide,
) -> Value:
    """``x * f + (bias - mean * f)`` with ``f = scale / root``, as Keras and tf.nn write it."""
    mean = to.reduced("ReduceMean", data)
    root = _root_mean(to, by_mul(to, to.op.Sub(data, mean)))
    factor = divide(to, scale, root)
    return to.op.Add(to.op.Mul(data, factor), shift(to, mean, factor, bias))


def _by_batch_normalization(to: Tracer, data: str, scale: str, bias: str) -> Value:
    """LayerNormalization as Keras 2 fuses it and tf2onnx writes it, by BatchNormalization.

    The rows are the channels of that.
    """
    op = to.op
    rows = op.Reshape(data, to.aside("rows"))
    mean = to.reduced("ReduceMean", rows)
    squares = to.reduced("ReduceSumSquare", op.Sub(rows, mean), keep=False)
    normal = op.BatchNormalization(
        rows,
        to.aside("ones"),
        to.aside("zeros"),
        to.reduced("Squeeze", mean),
        op.Div(squares, to.aside("count")),
        epsilon=to.attribute("epsilon"),
    )
    return affine(to, op.Reshape(normal, to.aside("shape")), scale, bias)


FORMS: list[dict[str, Any]] = [
    {"square": square, "divide": divide}
    for square, divide in product((by_pow, by_mul), (_by_div, _by_reciprocal, _by_one_over))
]


FOLDED = tuple(
    partial(_folded, shift=shift, divide=divide)
    for shift, divide in product((_shift_by_neg, _shift_by_sub), (_by_div, _by_reciprocal))
)


def _over_last_axes(facts: NodeFacts, found: IdiomMatch) -> dict[str, Any]:
    """Return the attributes of a node that normalises over the last axes.

    Raises:
        NoMatchError: the axes are not the last ones, or a parameter may have another shape.
    """
    dims = require_dims(facts, found["data"])
    _refuse_doubles(facts, found)
    rank = len(dims)
    if not rank:
        raise NoMatchError("its data is a scalar")
    axes = sorted(axis % rank for axis in found.axes or range(rank))
    if axes != list(range(rank - len(axes), rank)):
        raise NoMatchError(f"its axes {axes} are not the last of {rank}")
    for name in found.match.pattern.inputs[1:]:
        require_shape(facts, name, found[name], dims[axes[0] :], rank)
    return {"axis": axes[0] - rank, **found.numbers}


def _refuse_doubles(facts: NodeFacts, found: IdiomMatch) -> None:
    if facts.elem_type(found["data"]) == TensorProto.DOUBLE:
        raise NoMatchError("by its definition the operator computes doubles in float")


def _over_rows(facts: NodeFacts, found: IdiomMatch) -> dict[str, Any]:
    """Return the attributes of a node that normalises over the last axis, written by rows.

    Raises:
        NoMatchError: the rows are others, or a parameter may have another shape.
    """
    dims = require_dims(facts, found["data"])
    last = dims[-1:]
    _refuse_doubles(facts, found)
    rows = require_dims(facts, found["Reshape.0"])
    if last in ((), (None,)) or (rows[:1], rows[2:]) != ((1,), (*last, 1)):
        raise NoMatchError("it does not make rows of its last axis")
    if sorted(axis % 4 for axis in found.axes or ()) != [0, 2, 3] or found.keepdims:
        raise NoMatchError("it does not normalise each row")
    if not is_filled(facts, found["ones"], 1) or not is_filled(facts, found["zeros"], 0):
        raise NoMatchError("its BatchNormalization has a scale or a bias of its own")
    if not _counts(facts, found, last[0]):
        raise NoMatchError("it may not divide by the number of a row's elements")
    if not is_shape_of(facts, found["shape"], found["data"]):
        raise NoMatchError("it may not get the shape back that it had")
    for name in ("scale", "bias"):
        require_shape(facts, name, found[name], last, len(dims))
    return {"axis": -1, **found.numbers}


def _counts(facts: NodeFacts, found: IdiomMatch, size: int | str | None) -> bool:
    """Return whether a row's sum of squares is divided by the number of its elements."""
    known = facts.constant(found["count"])
    if known is not None:
        return known.size == 1 and float(known.reshape(())) == size
    node = facts.producer(found["count"])
    product_ = None if node is None or node.op_type != "Cast" else facts.producer(node.input[0])
    if product_ is None or product_.op_type != "ReduceProd":
        return False
    sizes = facts.elements(product_.input[0])
    return sizes is not None and None not in sizes and math.prod(map(int, sizes)) == size  # type: ignore[arg-type]


def _parameters(context: Context, found: IdiomMatch) -> list[str]:
    """Return the data, and its parameters in the shape of the normalised axes."""
    inputs = found.match.pattern.inputs
    dims = require_dims(context, found["data"])
    count = 1 if found.match.pattern.asides else len(found.axes or dims)
    return [
        found["data"],
        *(parameter_of_axes(context, found[name], range(-count, 0)) for name in inputs[1:]),
    ]


IDIOMS = (
    Idiom(
        "LayerNormalization",
        (
            *(partial(layer_normalization, **form) for form in FORMS),
            *(partial(_without_bias, **form) for form in FORMS),
        ),
        _over_last_axes,
        make_inputs=_parameters,
    ),
    # With an infinite scale the folded form gives NaN.
    Idiom("LayerNormalization", FOLDED, _over_last_axes, stabler=True, make_inputs=_parameters),
    Idiom("LayerNormalization", (_by_batch_normalization,), _over_rows, make_inputs=_parameters),
    Idiom(
        "RMSNormalization",
        tuple(partial(rms_normalization, **form) for form in FORMS),
        _over_last_axes,
        make_inputs=_parameters,
    ),
)
