"""Resizing by Gather: what to do where an opset's Resize has no words for a mapping.

Each axis is resized on its own. With its length known, the elements that an output element is made
of are known as well: one for the nearest, two with their weights for linear interpolation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.context import Array, Blocked, Context

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
    """``Resize(x)`` becomes one Gather for each axis, or two and their weighted sum.

    Nearest: ``Gather<axis=a>(x, indices)``. Linear: ``Gather<axis=a>(x, low) * (1 - w) +
    Gather<axis=a>(x, high) * w``.
    """
    elem_type = 0
    if mode == "linear":
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
            data = _interpolated(context, data, axis, rank, numpy_dtype(elem_type))
    context.replace("Identity", [data], keep=())


def _interpolated(
    context: Context, data: str, axis: Axis, rank: int, dtype: np.dtype[np.generic]
) -> str:
    at = places(axis).clip(0, axis.length - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, axis.length - 1)
    weight = (at - low.astype(np.float32)).astype(dtype)
    shape = [-1] + [1] * (rank - 1 - axis.index)

    def part(indices: Array, factor: Array, hint: str) -> str:
        name = context.array(indices, f"{hint}_indices")
        gathered = context.emit("Gather", [data, name], hint, axis=axis.index)
        weights = context.array(factor.reshape(shape), f"{hint}_weights")
        return context.emit("Mul", [gathered, weights], f"{hint}_part")

    parts = [part(low, (1 - weight).astype(dtype), "low"), part(high, weight, "high")]
    return context.emit("Add", parts, "linear")
