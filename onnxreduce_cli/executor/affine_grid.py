"""AffineGrid.

Source: definition 20. Its function body is not used, as it removes a batch dimension of one, and
takes matrices of other batches or sizes than the text says.
"""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.executor.axes import vector
from onnxreduce_cli.executor.dtypes import FLOAT64, Array, to_dtype
from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.registry import Call, kernel


def _coordinates(length: int, corners: bool) -> Array:
    """Return the coordinates of an axis's elements between -1 and 1: at corners or at centres."""
    if not corners:
        return (2.0 * np.arange(length) + 1) / length - 1
    if length == 1:
        raise NotSupported("align_corners divides by 0 where a size is 1")
    return 2.0 * np.arange(length) / (length - 1) - 1


@kernel("AffineGrid", 20)
def affine_grid(call: Call, theta: Array, size: Array) -> Array:
    """Return each point of an image mapped by the matrices `theta`, (N, 2, 3) or (N, 3, 4)."""
    batch, _, *lengths = sizes = vector("size", size)
    rank = len(lengths)
    if rank not in (2, 3) or theta.shape != (batch, rank, rank + 1):
        raise Invalid(f"theta of shape {theta.shape} does not fit size {sizes}")
    corners = bool(call.attrs["align_corners"])
    axes = np.meshgrid(*(_coordinates(length, corners) for length in lengths), indexing="ij")
    # The last axis of the image is the first coordinate.
    points = np.stack([*axes[::-1], np.ones(lengths)], axis=-1)
    moved = np.einsum("nij,...j->n...i", theta.astype(FLOAT64), points)
    return to_dtype(moved, theta.dtype)
