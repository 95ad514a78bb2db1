"""Operators that move elements or return shapes, and compute nothing.

Source: the definitions named at each kernel. Those of 19 to 25 only widen the types.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from onnxreduce_cli.executor.axes import many_axes, one_axis, vector
from onnxreduce_cli.executor.dtypes import INT64, Array
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.registry import Call, kernel


def _reshape(data: Array, dims: list[int], *, zero_copies: bool) -> Array:
    if dims.count(-1) > 1 or any(d < -1 for d in dims):
        raise Invalid(f"shape {dims} has more than one -1, or a lower number")
    if not zero_copies and -1 in dims and 0 in dims:
        raise Invalid(f"shape {dims} has both -1 and 0, with allowzero")
    target = list(dims)
    for index, dim in enumerate(dims):
        if dim == 0 and zero_copies:
            if index >= data.ndim:
                raise Invalid(f"shape {dims} copies dimension {index} of rank {data.ndim}")
            target[index] = data.shape[index]
    if -1 in target:
        rest = prod(d for d in target if d != -1)
        if rest == 0 or data.size % rest:
            raise Invalid(f"shape {dims} does not fit {data.size} elements")
        target[target.index(-1)] = data.size // rest
    if prod(target) != data.size:
        raise Invalid(f"shape {dims} does not fit {data.size} elements of {data.shape}")
    return data.reshape(target)


@kernel("Reshape", 1)
def reshape_1(call: Call, data: Array) -> Array:
    """Reshape to the attribute `shape`; 0 copies a dimension, one -1 is inferred."""
    if "shape" not in call.attrs:
        raise Invalid("attribute 'shape' is missing")
    return _reshape(data, list(call.attrs["shape"]), zero_copies=True)


@kernel("Reshape", 5, 13, 14, 19, 21, 23, 24, 25)
def reshape_5(call: Call, data: Array, shape: Array) -> Array:
    """Reshape to an input; from 14 `allowzero` takes a 0 literally."""
    zero_copies = not call.attrs.get("allowzero", 0)
    return _reshape(data, vector("shape", shape), zero_copies=zero_copies)


@kernel("Flatten", 1, 9, 11, 13, 21, 23, 24, 25)
def flatten(call: Call, data: Array) -> Array:
    """Reshape to 2-D: the dimensions before `axis` (negative from 11), and those from it on."""
    axis = one_axis(call.attrs["axis"], data.ndim, negative=call.since >= 11, end=True)
    return data.reshape(prod(data.shape[:axis]), prod(data.shape[axis:]))


def _squeeze(data: Array, axes: tuple[int, ...] | None) -> Array:
    if axes is None:
        axes = tuple(i for i, dim in enumerate(data.shape) if dim == 1)
    for axis in axes:
        if data.shape[axis] != 1:
            raise Invalid(f"axis {axis} has {data.shape[axis]} elements, only 1 can be dropped")
    return data.reshape([dim for i, dim in enumerate(data.shape) if i not in axes])


@kernel("Squeeze", 1, 11)
def squeeze_1(call: Call, data: Array) -> Array:
    """Drop dimensions of size 1: those in the attribute `axes`, or all."""
    given = call.attrs.get("axes")
    if given is None:
        return _squeeze(data, None)
    return _squeeze(data, many_axes(given, data.ndim))


@kernel("Squeeze", 13, 21, 23, 24, 25)
def squeeze_13(call: Call, data: Array, axes: Array | None = None) -> Array:
    """Drop dimensions of size 1: those in the input `axes`, or all without it."""
    if axes is None:
        return _squeeze(data, None)
    return _squeeze(data, many_axes(vector("axes", axes, scalar=True), data.ndim))


def _unsqueeze(data: Array, given: Any) -> Array:
    rank = data.ndim + len(given)
    axes = set(many_axes(given, rank))
    rest = iter(data.shape)
    return data.reshape([1 if i in axes else next(rest) for i in range(rank)])


@kernel("Unsqueeze", 1, 11)
def unsqueeze_1(call: Call, data: Array) -> Array:
    """Insert dimensions of size 1 at the attribute `axes` of the result."""
    return _unsqueeze(data, call.attrs["axes"])


@kernel("Unsqueeze", 13, 21, 23, 24, 25)
def unsqueeze_13(call: Call, data: Array, axes: Array) -> Array:
    """Insert dimensions of size 1 at the input `axes` of the result."""
    # The definition says 1-D, but bodies in onnx's own schemas pass a single value.
    return _unsqueeze(data, vector("axes", axes, scalar=True))


@kernel("Shape", 1, 13, 15, 19, 21, 23, 24, 25)
def shape(call: Call, data: Array) -> Array:
    """Return the shape as int64; from 15 the part from `start` to `end`, clamped."""
    return np.array(data.shape[call.attrs.get("start", 0) : call.attrs.get("end")], dtype=INT64)


@kernel("Size", 1, 13, 19, 21, 23, 24, 25)
def size(call: Call, data: Array) -> Array:
    """Return the number of elements as an int64 scalar."""
    return np.array(data.size, dtype=INT64)


@kernel("Transpose", 1, 13, 21, 23, 24, 25)
def transpose(call: Call, data: Array) -> Array:
    """Permute the dimensions by `perm`, by default in reverse."""
    perm = call.attrs.get("perm", tuple(reversed(range(data.ndim))))
    if sorted(perm) != list(range(data.ndim)):
        raise Invalid(f"perm {list(perm)} is no permutation of {data.ndim} dimensions")
    return np.transpose(data, perm)


@kernel("Expand", 8, 13)
def expand(call: Call, data: Array, target: Array) -> Array:
    """Broadcast data and a shape to each other."""
    dims = vector("shape", target)
    try:
        full = np.broadcast_shapes(data.shape, tuple(dims))
    except ValueError:
        raise Invalid(f"shapes {data.shape} and {dims} do not broadcast") from None
    return np.broadcast_to(data, full)


@kernel("Tile", 1)
def tile_1(call: Call, data: Array, tiles: Array, axis: Array) -> Array:
    """Repeat along one axis."""
    if tiles.size != 1 or axis.size != 1:
        raise Invalid("tiles and axis must hold one value")
    repeats = [1] * data.ndim
    repeats[one_axis(int(axis.reshape(())), data.ndim)] = int(tiles.reshape(()))
    return np.tile(data, repeats)


@kernel("Tile", 6, 13)
def tile_6(call: Call, data: Array, repeats: Array) -> Array:
    """Repeat along every axis."""
    counts = vector("repeats", repeats)
    if len(counts) != data.ndim:
        raise Invalid(f"{len(counts)} repeats are given for rank {data.ndim}")
    return np.tile(data, counts)


@kernel("Concat", 1, 4, 11, 13)
def concat(call: Call, *arrays: Array) -> Array:
    """Join along `axis` (definition 1: by default 1).

    Inputs of size 0 along it are left out; as in ONNX Runtime their other sizes may differ.
    """
    axis = one_axis(call.attrs.get("axis", 1), arrays[0].ndim)
    if any(array.ndim != arrays[0].ndim for array in arrays):
        raise Invalid(f"ranks {[array.ndim for array in arrays]} differ")
    return np.concatenate([array for array in arrays if array.shape[axis]] or arrays[:1], axis=axis)


def _split(data: Array, axis: int, lengths: list[int]) -> tuple[Array, ...]:
    if sum(lengths) != data.shape[axis] or min(lengths, default=0) < 0:
        raise Invalid(f"split {lengths} does not add up to {data.shape[axis]}")
    return tuple(np.split(data, np.cumsum(lengths)[:-1], axis=axis))


def _equal_split(call: Call, data: Array, axis: int) -> tuple[Array, ...]:
    parts = len(call.outputs)
    if data.shape[axis] % parts:
        raise Invalid(f"{data.shape[axis]} elements do not split into {parts} equal parts")
    return _split(data, axis, [data.shape[axis] // parts] * parts)


def _check_parts(call: Call, lengths: list[int]) -> list[int]:
    if len(lengths) != len(call.outputs):
        raise Invalid(f"split {lengths} does not fit {len(call.outputs)} outputs")
    return lengths


@kernel("Split", 1, 2, 11, 13)
def split_1(call: Call, data: Array, lengths: Array | None = None) -> tuple[Array, ...]:
    """Split by lengths (1: attribute or input, 2 and 11: attribute, 13: input), or equally."""
    axis = one_axis(call.attrs.get("axis", 0), data.ndim)
    if lengths is not None:
        return _split(data, axis, _check_parts(call, vector("split", lengths)))
    if "split" in call.attrs:
        return _split(data, axis, _check_parts(call, list(call.attrs["split"])))
    return _equal_split(call, data, axis)


@kernel("Split", 18)
def split_18(call: Call, data: Array, lengths: Array | None = None) -> tuple[Array, ...]:
    """Split by lengths, or into `num_outputs` parts with the last maybe smaller."""
    axis = one_axis(call.attrs["axis"], data.ndim)
    parts = call.attrs.get("num_outputs")
    if (lengths is None) == (parts is None):
        raise Invalid("either input 'split' or attribute 'num_outputs' must be given")
    if lengths is not None:
        return _split(data, axis, _check_parts(call, vector("split", lengths)))
    if parts != len(call.outputs):
        raise Invalid(f"num_outputs is {parts}, the node has {len(call.outputs)} outputs")
    total = data.shape[axis]
    chunk = -(-total // parts)
    last = total - chunk * (parts - 1)
    if last < 0:
        raise Invalid(f"{total} elements do not split into {parts} parts")
    return _split(data, axis, [chunk] * (parts - 1) + [last])


def _blocks(call: Call, data: Array) -> int:
    block = int(call.attrs["blocksize"])
    if data.ndim != 4 or block < 1:
        raise Invalid(f"rank 4 and a positive blocksize are needed, not {data.ndim} and {block}")
    return block


@kernel("DepthToSpace", 1, 11, 13, 28)
def depth_to_space(call: Call, data: Array) -> Array:
    """Move depth to blocks of height and width, in DCR (default) or, from 11, CRD order."""
    block = _blocks(call, data)
    n, c, h, w = data.shape
    rest, uneven = divmod(c, block**2)
    if uneven:
        raise Invalid(f"{c} channels do not divide by the square of blocksize {block}")
    if call.attrs.get("mode", "DCR") == "DCR":
        parts = data.reshape(n, block, block, rest, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = data.reshape(n, rest, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, rest, h * block, w * block)


@kernel("SpaceToDepth", 1, 13, 28)
def space_to_depth(call: Call, data: Array) -> Array:
    """Move blocks of height and width to depth, in DCR (default) or, from 28, CRD order."""
    block = _blocks(call, data)
    n, c, h, w = data.shape
    if h % block or w % block:
        raise Invalid(f"height {h} and width {w} do not divide by blocksize {block}")
    parts = data.reshape(n, c, h // block, block, w // block, block)
    if call.attrs.get("mode", "DCR") == "DCR":
        parts = parts.transpose(0, 3, 5, 1, 2, 4)
    else:
        parts = parts.transpose(0, 1, 3, 5, 2, 4)
    return parts.reshape(n, c * block**2, h // block, w // block)
