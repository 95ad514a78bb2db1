"""Linear and cubic Resize: the elements summed to each output element, and their weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import Term, term
from onnxreduce_cli.emit.sizes import range_of
from onnxreduce_cli.steps.resampling.resize_mapping import (
    AxisTerms,
    ResizeMethod,
    input_coordinates,
)


@dataclass(frozen=True, slots=True)
class WeightedElements:
    """The input elements that each output element is the weighted sum of.

    Attributes:
        indices: int64 of shape [resized, taps].
        weights: of the same shape, in the dtype of coordinates.
        has_none: whether the index beyond the last element stands for an element of 0.
    """

    indices: Term
    weights: Term
    has_none: bool = False


def elements_and_weights(axis: AxisTerms, method: ResizeMethod) -> WeightedElements:
    """Return the elements along an axis, and their weights, for mode linear or cubic."""
    if method.mode == "linear" and not method.antialias:
        return _linear(axis, input_coordinates(axis, method.coordinates))
    coordinates, context = (
        input_coordinates(axis, method.coordinates).shaped(-1, 1),
        axis.length.context,
    )
    stretch = axis.scale.least(1) if method.antialias else term(context, 1, axis.dtype)
    reach = term(context, 1 if method.mode == "linear" else 2, axis.dtype) / stretch
    taps = range_of((reach.ceil() * 2).cast(TensorProto.INT64), axis.dtype)
    indices = (coordinates - reach).floor() + 1 + taps
    distance = (indices - coordinates).abs() * stretch
    if method.mode == "linear":
        weights = (distance.least(1) * -1) + 1
    else:
        weights = _cubic(distance, method.cubic_coeff_a)
    inside = indices.within(0, axis.length - 1)
    if method.exclude_outside:
        outside = indices.less(0) | indices.greater(axis.length - 1)
        weights = weights * outside.negated().cast(axis.dtype)
    if method.exclude_outside or method.antialias:
        weights = weights / weights.sum(1)
    return _without_zeros(axis, inside, weights)


def _linear(axis: AxisTerms, coordinates: Term) -> WeightedElements:
    """Return the elements on either side of each coordinate; a whole one has one element twice."""
    coordinates = coordinates.within(0, axis.length - 1).shaped(-1, 1)
    low, high = coordinates.floor(), coordinates.ceil()
    either = term(axis.length.context, [[0.0, 1.0]], axis.dtype)
    indices = low + (high - low) * either
    whole = (high - low) * -1 + 1
    share = (coordinates - low) + whole * 0.5
    weights = (either * -1 + 1) * (share * -1 + 1) + either * share
    return WeightedElements(indices.cast(TensorProto.INT64), weights)


def _cubic(distance: Term, coefficient: float) -> Term:
    """Return R. Keys' cubic convolution of distances from 0 on: exactly 0 at 1, and from 2 on.

    The results are of the distances' dtype and shape.
    """
    up_to_1, beyond_1 = distance.least(1), distance.within(1, 2)
    factor = float(np.float32(coefficient))
    inner = (up_to_1 * -1 + 1) * (up_to_1 + 1 - up_to_1 * up_to_1 * (factor + 2))
    outer = (beyond_1 - 1) * (beyond_1 - 2) * (beyond_1 - 2) * factor
    return inner + outer


def _without_zeros(axis: AxisTerms, indices: Term, weights: Term) -> WeightedElements:
    """Return the elements without those of weight 0: infinity times 0 would be NaN.

    Their indices are replaced, where known, by that of the element of the largest weight, which
    they share; else by one beyond the last.
    """
    known_indices, known_weights = indices.known, weights.known
    if known_indices is None or known_weights is None:
        counts = (weights.less(0) | weights.greater(0)).cast(axis.dtype)
        indices = axis.length + (indices - axis.length) * counts
        return WeightedElements(indices.cast(TensorProto.INT64), weights, has_none=True)
    context = axis.length.context
    indices, weights = (
        term(context, part, axis.dtype)
        for part in _without_zero_weights(known_indices, known_weights)
    )
    return WeightedElements(indices.cast(TensorProto.INT64), weights)


def _without_zero_weights(indices: Array, weights: Array) -> tuple[Array, Array]:
    """Return indices and weights, [resized, taps], without weights of 0; see `_without_zeros`."""
    zero = weights == 0
    if not zero.any():
        return indices, weights
    rows = np.arange(len(weights))
    most = np.absolute(weights).argmax(1)
    share = weights[rows, most] / (zero.sum(1) + 1)
    weights = np.where(zero, share[:, None], weights)
    weights[rows, most] = share
    return np.where(zero, indices[rows, most][:, None], indices), weights
