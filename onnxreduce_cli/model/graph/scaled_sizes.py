"""Sizes of Resize and Upsample by scales, which onnx and runtimes round otherwise.

A size is the one of the data times the scale, rounded down. onnx's shape inference multiplies
exactly, runtimes in float32, where 23 times the float32 next to 20 / 23 is 20. Sizes are those of
runtimes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, numpy_helper

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import MOST_DIMS, Dims

Array = npt.NDArray[np.generic]

RESIZED_BY_SCALES = frozenset({"Resize", "Upsample"})

#: Products of scales with so many bits and of sizes up to 4096 are exact in float32.
_BITS = 12


def uneven_scales(
    node: NodeProto, opset: int, constant: Callable[[str], Array | None]
) -> npt.NDArray[np.float32] | None:
    """Return the scales of a Resize or Upsample whose products with sizes may be rounded.

    They are None for other nodes, for scales such as 2 or 0.5, and where they are not known.

    Args:
        node: the node.
        opset: the opset that it is read by.
        constant: returns the value of an input; None if it is not known.
    """
    if node.op_type not in RESIZED_BY_SCALES or not is_default(node.domain):
        return None
    if node.op_type == "Upsample" and opset < 9:
        scales = np.array(_known(node, "scales", ()), np.float32)
    else:
        index = 1 if opset <= 10 else 2
        name = node.input[index] if index < len(node.input) else ""
        found = constant(name) if name else None
        if found is None or found.dtype != np.float32 or found.ndim != 1:
            return None
        scales = found.astype(np.float32)
    bits = np.frexp(scales)[0] * np.float32(1 << _BITS)
    return scales if bool((bits != np.floor(bits)).any()) else None


def scaled_dims(node: NodeProto, dims: Dims, scales: npt.NDArray[np.float32]) -> dict[int, int]:
    """Return the sizes that runtimes give the axes of known size, by axis.

    Args:
        node: the node.
        dims: the dimensions of its data.
        scales: its scales.
    """
    axes = _known(node, "axes", range(len(dims)))
    found = {}
    for axis, scale in zip(axes, scales, strict=False):
        dim = dims[axis] if -len(dims) <= axis < len(dims) else None
        if isinstance(dim, int):
            with np.errstate(over="ignore"):
                size = float(np.float32(dim) * scale)
            if 0 <= size < 1 << 63:
                found[axis % len(dims)] = int(size)
    return found


def scales_in(scope: Scope, node: NodeProto) -> npt.NDArray[np.float32] | None:
    """Return the scales of a node in a scope as `uneven_scales` does, if they are constants."""
    return uneven_scales(node, scope.opset or 0, lambda name: _constant(scope, name))


def has_uneven_scales(scope: Scope) -> bool:
    """Return whether onnx may infer other sizes than runtimes give of a node in a scope."""
    return not RESIZED_BY_SCALES.isdisjoint(scope.op_types) and any(
        scales_in(scope, node) is not None for node in scope.nodes
    )


def _constant(scope: Scope, name: str) -> Array | None:
    """Return a small initializer or Constant that a scope sees; None if it is none."""
    owner = scope.resolve(name)
    if owner is None:
        return None
    tensor = owner.initializers.get(name)
    node = owner.producers.get(name)
    if tensor is None and node is not None and node.op_type == "Constant":
        tensor = _known(node, "value", None)
        if tensor is None:
            return np.array(_known(node, "value_floats", ()), np.float32)
    if not isinstance(tensor, TensorProto) or tensor.data_location or len(tensor.dims) != 1:
        return None
    return numpy_helper.to_array(tensor) if tensor.dims[0] <= MOST_DIMS else None


def _known(node: NodeProto, name: str, default: Any) -> Any:
    """Return the value of an attribute, by default another one; empty for a reference."""
    attribute = attributes.find(node, name)
    if attribute is None:
        return default
    return () if attribute.ref_attr_name else attributes.value(attribute)
