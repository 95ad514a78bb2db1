"""Resizing by Gather: what to do where an opset's Resize has no words for a mapping.

Each axis is resized on its own. With its length known, the elements that an output element is made
of are known as well: one for the nearest, two with their weights for linear interpolation, four
for cubic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.context import Blocked, Context

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Axis:
    """One axis to resize.

    Attributes:
        index: which.
        length: its length before.
        resized: its length after.
        scale: the ratio that places elements.
        coordinates: one of Resize's coordinate transformation modes.
        nearest: one of Resize's nearest modes.
    """

    index: int
    length: int
    resized: int
    scale: np.float32
    coordinates: str
    nearest: str


def places(axis: Axis) -> Floats:
    """Where each output element lies in the input; in float, as runtimes compute it."""
    half, one = np.float32(0.5), np.float32(1)
    x = np.arange(axis.resized, dtype=np.float32)
    if axis.coordinates == "asymmetric":
        return x / axis.scale
    if axis.coordinates == "align_corners":
        last = np.float32(axis.resized) - one
        return x * (np.float32(axis.length) - one) / last if last else x
    if axis.coordinates == "pytorch_half_pixel" and axis.resized == 1:
        return x
    if axis.coordinates in ("half_pixel", "pytorch_half_pixel"):
        return (x + half) / axis.scale - half
    raise Blocked(
        f"its coordinate_transformation_mode {axis.coordinates!r} has no counterpart in older "
        "opsets",
        "choose another mode in the exporter",
    )


def nearest_indices(axis: Axis) -> npt.NDArray[np.int64]:
    """The input element that each output element copies."""
    at, half = places(axis), np.float32(0.5)
    rounded = {
        "floor": np.floor(at),
        "ceil": np.ceil(at),
        "round_prefer_floor": np.ceil(at - half),
        "round_prefer_ceil": np.floor(at + half),
    }[axis.nearest]
    indices: npt.NDArray[np.int64] = rounded.clip(0, axis.length - 1).astype(np.int64)
    return indices


def resample(context: Context, mode: str, axes: list[Axis]) -> None:
    """``Resize(x)`` becomes one Gather for each axis, or two or four and their weighted sum.

    Nearest: ``Gather<axis=a>(x, indices)``. Linear: ``Gather<axis=a>(x, low) * (1 - w) +
    Gather<axis=a>(x, high) * w``. Cubic is the same with the two elements on either side.
    """
    elem_type = 0
    if mode != "nearest":
        elem_type = context.need_elem_type(context.input(0), "its elements are to be weighted")
        if elem_type not in (TensorProto.FLOAT, TensorProto.DOUBLE):
            raise Blocked(
                "it interpolates a dtype other than float and double in a way that the older "
                "opset cannot express",
                "cast its input to float",
            )
    rank = context.need_rank(context.input(0), "its axes are resized one by one")
    data = context.input(0)
    for axis in axes:
        if axis.resized == axis.length and axis.scale == 1:
            continue
        if mode == "nearest":
            indices = context.array(nearest_indices(axis), "indices")
            data = context.emit("Gather", [data, indices], "nearest", axis=axis.index)
        else:
            taps = _linear(axis) if mode == "linear" else _cubic(context, axis)
            data = _interpolated(context, data, axis, rank, taps, numpy_dtype(elem_type))
    context.replace("Identity", [data], keep=())


#: The elements that one neighbour of each output element is, and how much they count.
Tap = tuple[npt.NDArray[np.int64], Floats]


def _linear(axis: Axis) -> list[Tap]:
    at = places(axis).clip(0, axis.length - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, axis.length - 1)
    weight = at - low.astype(np.float32)
    return [(low, np.float32(1) - weight), (high, weight)]


def _cubic(context: Context, axis: Axis) -> list[Tap]:
    """The two elements on either side, weighted as by R. Keys' cubic convolution."""
    factor = np.float32(context.value("cubic_coeff_a", -0.75))
    at = places(axis)
    first = np.floor(at)
    taps = []
    for offset in (-1, 0, 1, 2):
        index = first + np.float32(offset)
        x = np.abs(at - index)
        near = ((factor + 2) * x - (factor + 3)) * x * x + 1
        far = ((x - 5) * x + 8) * x * factor - 4 * factor
        taps.append((index.astype(np.int64), np.where(x <= 1, near, far).astype(np.float32)))
    if context.value("exclude_outside", 0):
        inside = [
            np.where((index >= 0) & (index < axis.length), weight, 0) for index, weight in taps
        ]
        total = np.sum(inside, axis=0)
        taps = [
            (index, (weight / total).astype(np.float32))
            for (index, _), weight in zip(taps, inside, strict=True)
        ]
    return [(index.clip(0, axis.length - 1), weight) for index, weight in taps]


def _interpolated(
    context: Context,
    data: str,
    axis: Axis,
    rank: int,
    taps: list[Tap],
    dtype: np.dtype[np.generic],
) -> str:
    shape = [-1] + [1] * (rank - 1 - axis.index)
    total = ""
    for indices, weights in taps:
        name = context.array(indices, "indices")
        gathered = context.emit("Gather", [data, name], "neighbour", axis=axis.index)
        factors = context.array(weights.astype(dtype).reshape(shape), "weights")
        part = context.emit("Mul", [gathered, factors], "part")
        total = context.emit("Add", [total, part], "interpolated") if total else part
    return total
