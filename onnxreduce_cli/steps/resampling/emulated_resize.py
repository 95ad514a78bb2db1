"""Resizing by Gather: what to do where an opset's Resize has no words for a mapping.

Each axis is resized on its own: an output element is made of one element of the input, or of
several that have weights. Which they are is known at conversion where lengths and scales are, else
it is computed when the model runs, by the same formulas: in float, as runtimes compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.casts import HALVES, cast
from onnxreduce_cli.emit.context import Array, Blocked, Context
from onnxreduce_cli.emit.numbers import constant
from onnxreduce_cli.emit.terms import Term, counted, term

_FLOAT = TensorProto.FLOAT


@dataclass(frozen=True)
class Axis:
    """One axis to resize; all terms have rank 0.

    Attributes:
        index: which.
        length: its length before, a float.
        resized: its length after, an int64.
        scale: the ratio that places elements, a float.
        start: where the region begins that tf_crop_and_resize takes, from 0 to 1.
        end: where it ends.
    """

    index: int
    length: Term
    resized: Term
    scale: Term
    start: Term | None = None
    end: Term | None = None


@dataclass(frozen=True)
class Method:
    """How axes are resized, in the words of Resize's attributes.

    Of `nearest` there is one more: "simple", which is floor where an axis is enlarged and ceil
    where it is shrunk, as before opset 11.
    """

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0


def places(axis: Axis, coordinates: str) -> Term:
    """Where each output element lies in the input."""
    x, scale, last = counted(axis.resized, _FLOAT), axis.scale, axis.length - 1
    after = axis.resized.cast(_FLOAT)
    if coordinates == "asymmetric":
        return x / scale
    if coordinates == "align_corners":
        return x * last / (after - 1).most(1)
    if coordinates == "tf_half_pixel_for_nn":
        # Where nothing is resized nothing is moved.
        return (x + (scale.less(1) | scale.greater(1)).cast(_FLOAT) * 0.5) / scale
    several = after.greater(1).cast(_FLOAT)
    if coordinates == "tf_crop_and_resize":
        assert axis.start is not None
        assert axis.end is not None
        apart = x * (axis.end - axis.start) * last / (after - 1).most(1)
        middle = (axis.start + axis.end) * 0.5 * last
        return (axis.start * last + apart) * several + middle * (several * -1 + 1)
    centred = (x + 0.5) / scale
    if coordinates == "half_pixel":
        return centred - 0.5
    if coordinates == "pytorch_half_pixel":
        return (centred - 0.5) * several
    if coordinates == "half_pixel_symmetric":
        # Of which the sum is rounded once: often it is whole, or halfway between two elements.
        cut = after / (axis.length * scale)
        offset = (axis.length * 0.5) * (cut * -1 + 1)
        x, scale, offset = (item.cast(TensorProto.DOUBLE) for item in (x, scale, offset))
        return (offset + (x + 0.5) / scale - 0.5).cast(_FLOAT)
    raise Blocked(
        f"its coordinate_transformation_mode={coordinates!r} does not exist", "mend the model"
    )


def nearest_indices(axis: Axis, method: Method) -> Term:
    """The input element that each output element copies, an int64."""
    at = places(axis, method.coordinates)
    rounded = {
        "floor": lambda: at.floor(),
        "ceil": lambda: at.ceil(),
        "round_prefer_floor": lambda: (at - 0.5).ceil(),
        # One half less is exact where one half more is not.
        "round_prefer_ceil": lambda: (at - 0.5).floor() + 1,
        "simple": lambda: at.floor() + (at.ceil() - at.floor()) * axis.scale.less(1).cast(_FLOAT),
    }[method.nearest]()
    return rounded.within(0, axis.length - 1).cast(TensorProto.INT64)


@dataclass(frozen=True)
class _Window:
    """The elements that each output element is made of, and how much each counts.

    Attributes:
        indices: int64 of shape [resized, taps].
        weights: float of the same shape.
        has_none: whether an index beyond the last element stands for none at all.
    """

    indices: Term
    weights: Term
    has_none: bool = False


def _window(axis: Axis, method: Method) -> _Window:
    if method.mode == "linear" and not method.antialias:
        return _linear(axis, places(axis, method.coordinates))
    at, context = places(axis, method.coordinates).shaped(-1, 1), axis.length.context
    stretch = axis.scale.least(1) if method.antialias else term(context, 1, _FLOAT)
    reach = term(context, 1 if method.mode == "linear" else 2, _FLOAT) / stretch
    taps = counted((reach.ceil() * 2).cast(TensorProto.INT64), _FLOAT)
    indices = (at - reach).floor() + 1 + taps
    distance = (indices - at).abs() * stretch
    if method.mode == "linear":
        weights = (distance.least(1) * -1) + 1
    else:
        weights = _cubic(distance, method.cubic_coeff_a)
    inside = indices.within(0, axis.length - 1)
    if method.exclude_outside:
        outside = indices.less(0) | indices.greater(axis.length - 1)
        weights = weights * outside.negated().cast(_FLOAT)
    if method.exclude_outside or method.antialias:
        weights = weights / weights.sum(1)
    return _without_zeros(axis, inside, weights)


def _linear(axis: Axis, at: Term) -> _Window:
    """The elements on either side; where there is one only, half of it and the other half."""
    at = at.within(0, axis.length - 1).shaped(-1, 1)
    low, high = at.floor(), at.ceil()
    either = term(axis.length.context, [[0.0, 1.0]], _FLOAT)
    indices = low + (high - low) * either
    whole = (high - low) * -1 + 1
    share = (at - low) + whole * 0.5
    weights = (either * -1 + 1) * (share * -1 + 1) + either * share
    return _Window(indices.cast(TensorProto.INT64), weights)


def _cubic(distance: Term, coefficient: float) -> Term:
    """R. Keys' cubic convolution, 0 at any whole distance but 0."""
    near, far = distance.least(1), distance.within(1, 2)
    factor = float(np.float32(coefficient))
    inner = (near * -1 + 1) * (near + 1 - near * near * (factor + 2))
    outer = (far - 1) * (far - 2) * (far - 2) * factor
    return inner + outer


def _without_zeros(axis: Axis, indices: Term, weights: Term) -> _Window:
    """What does not count is left out: an infinity with weight 0 is no part of a sum.

    Known indices are replaced by that of the element which counts most, which shares its weight;
    others by one beyond the last.
    """
    known, given = indices.known, weights.known
    if known is None or given is None:
        counts = (weights.less(0) | weights.greater(0)).cast(_FLOAT)
        indices = axis.length + (indices - axis.length) * counts
        return _Window(indices.cast(TensorProto.INT64), weights, has_none=True)
    context = axis.length.context
    indices, weights = (term(context, part, _FLOAT) for part in _shared(known, given))
    return _Window(indices.cast(TensorProto.INT64), weights)


def _shared(indices: Array, weights: Array) -> tuple[Array, Array]:
    zero = weights == 0
    if not zero.any():
        return indices, weights
    rows = np.arange(len(weights))
    most = np.absolute(weights).argmax(1)
    share = weights[rows, most] / (zero.sum(1) + 1)
    weights = np.where(zero, share[:, None], weights)
    weights[rows, most] = share
    return np.where(zero, indices[rows, most][:, None], indices), weights


def resample(context: Context, method: Method, axes: Sequence[Axis], rank: int) -> None:
    """``Resize(x)`` becomes one Gather for each axis, or a few and their weighted sum.

    Nearest: ``Gather<axis=a>(x, indices)``. Linear: ``Gather<axis=a>(x, low) * (1 - w) +
    Gather<axis=a>(x, high) * w``. Cubic is the same with the two elements on either side. Where
    weights are only known at run time, or there are many, one Gather takes all elements:
    ``ReduceSum<axis=a + 1>(Gather<axis=a>(x, indices) * weights)``.
    """
    data: str
    data, given, working = context.input(0), 0, 0
    if method.mode != "nearest":
        given = context.need_elem_type(data, "its elements are to be weighted")
        working = int(TensorProto.FLOAT) if given in HALVES else given
        if working not in (TensorProto.FLOAT, TensorProto.DOUBLE):
            raise Blocked(
                f"it interpolates integers, and how their weighted sums are rounded is not "
                f"defined; opset {context.target_opset} can express this mapping by such sums only",
                "cast its input to float, and round its output",
            )
        data = data if working == given else cast(context, data, working)
    for axis in axes:
        if method.mode == "nearest":
            indices = nearest_indices(axis, method).name
            data = context.op.Gather(data, indices, axis=axis.index)
        else:
            data = _weighted(context, data, axis, rank, _window(axis, method), working)
    if method.coordinates == "tf_crop_and_resize":
        data = _extrapolated(context, data, axes, rank, method.extrapolation)
    if working == given:
        context.replace("Identity", [data], keep=())
    else:
        context.replace("Cast", [data], keep=(), to=given)


def _weighted(
    context: Context, data: str, axis: Axis, rank: int, window: _Window, working: int
) -> str:
    op = context.op
    behind = [1] * (rank - 1 - axis.index)
    indices, weights = window.indices.known, window.weights.known
    if indices is not None and weights is not None and indices.shape[1] <= _MOST_TAPS:
        total = ""
        for index, weight in zip(indices.T, weights.T, strict=True):
            gathered = [data, context.array(np.ascontiguousarray(index), "indices")]
            factors = term(context, weight.reshape(-1, *behind), working).name
            tap = op.Gather(*gathered, axis=axis.index)
            part = op.Mul(tap, factors)
            total = op.Add(total, part) if total else part
        return total
    if window.has_none:
        pads = [0] * (2 * rank)
        pads[rank + axis.index] = 1
        data = op.Pad(data, context.array(pads, "pads"))
    taps = op.Gather(data, window.indices.name, axis=axis.index)
    factors = window.weights.cast(working).shaped(0, 0, *behind).name
    parts = op.Mul(taps, factors)
    along = context.array([axis.index + 1], "along")
    return op.ReduceSum(parts, along, keepdims=0)


#: Up to so many elements are gathered one by one, which is faster.
_MOST_TAPS = 4


def _extrapolated(
    context: Context, data: str, axes: Sequence[Axis], rank: int, value: float
) -> str:
    """What lies outside the input on some axis is the value."""
    outside: Term | None = None
    for axis in axes:
        at = places(axis, "tf_crop_and_resize")
        beyond = at.less(0) | at.greater(axis.length - 1)
        if beyond.known is not None and not beyond.known.any():
            continue
        beyond = beyond.shaped(-1, *[1] * (rank - 1 - axis.index))
        outside = beyond if outside is None else outside | beyond
    if outside is None:
        return data
    elem_type = context.need_elem_type(data, "outside it is a value of that dtype")
    filled = constant(context, value, elem_type, "extrapolation")
    return context.op.Where(outside.name, filled, data)
