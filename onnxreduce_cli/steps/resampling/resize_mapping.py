"""The mappings of Resize from coordinates of the output to those of the input, along one axis.

They are computed at conversion where lengths and scales are known, else when the model runs, by the
same formulas: in float, as runtimes compute them. Weighted sums of doubles have coordinates and
weights of double.
"""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TensorProto

from onnxreduce_cli.emit.numbers import Term
from onnxreduce_cli.emit.sizes import range_of


@dataclass(frozen=True, slots=True)
class AxisTerms:
    """The terms of an axis to resize, known or computed at run time; all have rank 0.

    Attributes:
        index: the axis.
        length: its length before, in the dtype of coordinates: float or double.
        resized: its length after, an int64.
        scale: the ratio by which coordinates are mapped, in their dtype.
        start: the start, from 0 to 1, of the region that tf_crop_and_resize takes, in their dtype.
        end: its end.
    """

    index: int
    length: Term
    resized: Term
    scale: Term
    start: Term | None = None
    end: Term | None = None

    @property
    def dtype(self) -> int:
        """Return the dtype in which coordinates are computed: float or double."""
        return self.length.elem_type


@dataclass(frozen=True, slots=True)
class ResizeMethod:
    """The method by which axes are resized: the attributes of Resize.

    `nearest` has one more value than `nearest_mode`: "simple", which is floor where an axis is
    enlarged and ceil where it is shrunk, as before opset 11.
    """

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0


#: Each coordinate_transformation_mode of Resize.
COORDINATES = frozenset({
    "align_corners", "asymmetric", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
    "tf_crop_and_resize", "tf_half_pixel_for_nn",
})  # fmt: skip

#: Each nearest_mode of Resize.
ROUNDINGS = frozenset({"ceil", "floor", "round_prefer_ceil", "round_prefer_floor"})


def input_coordinates(axis: AxisTerms, coordinates: str) -> Term:
    """Return the coordinate in the input of each output element, of shape [resized].

    Args:
        axis: the axis.
        coordinates: one of `COORDINATES`.
    """
    dtype = axis.dtype
    x, scale, last = range_of(axis.resized, dtype), axis.scale, axis.length - 1
    after = axis.resized.cast(dtype)
    if coordinates == "asymmetric":
        return x / scale
    if coordinates == "align_corners":
        return x * last / (after - 1).most(1)
    if coordinates == "tf_half_pixel_for_nn":
        # Where nothing is resized nothing is moved.
        return (x + (scale.less(1) | scale.greater(1)).cast(dtype) * 0.5) / scale
    several = after.greater(1).cast(dtype)
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
    assert coordinates == "half_pixel_symmetric"
    # The sum is rounded only once: often it is whole, or halfway between two elements.
    cut = after / (axis.length * scale)
    offset = (axis.length * 0.5) * (cut * -1 + 1)
    x, scale, offset = (item.cast(TensorProto.DOUBLE) for item in (x, scale, offset))
    return (offset + (x + 0.5) / scale - 0.5).cast(dtype)


def nearest_indices(axis: AxisTerms, method: ResizeMethod) -> Term:
    """Return the index of the input element that each output element copies: int64, [resized]."""
    coordinates = input_coordinates(axis, method.coordinates)
    rounded = {
        "floor": lambda: coordinates.floor(),
        "ceil": lambda: coordinates.ceil(),
        "round_prefer_floor": lambda: (coordinates - 0.5).ceil(),
        # One half less is exact where one half more is not.
        "round_prefer_ceil": lambda: (coordinates - 0.5).floor() + 1,
        "simple": lambda: (
            coordinates.floor()
            + (coordinates.ceil() - coordinates.floor()) * axis.scale.less(1).cast(axis.dtype)
        ),
    }[method.nearest]()
    return rounded.within(0, axis.length - 1).cast(TensorProto.INT64)
