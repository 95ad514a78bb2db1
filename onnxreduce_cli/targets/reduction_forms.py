"""Forms of nodes that reduce or normalise, and of others that have axes."""

from __future__ import annotations

import math

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.model.graph.values import Dims

#: From how many results on OpenCV 4.8 computes them in several threads, each counted as often as
#: its last axis is gone through, and by the distance of two elements of that axis.
THREADED = 1536

#: The index of the input with the axes, where that is not 1.
_AXES_INPUT = {"Pad": 3}


def _axes_input(node: NodeFacts) -> str:
    return node.input(_AXES_INPUT.get(node.node.op_type, 1))


def has_axes_input(node: NodeFacts) -> bool:
    """Return whether the axes are an input that may not be empty."""
    name = _axes_input(node)
    if not name:
        return False
    axes = node.constant(name)
    return axes is None or axes.size > 0


def has_axes_attribute(node: NodeFacts) -> bool:
    """Return whether the axes are an attribute."""
    return bool(node.value("axes"))


def is_noop(node: NodeFacts) -> bool:
    """Return whether nothing may be reduced: noop_with_empty_axes=1, and no or unknown axes."""
    if not node.value("noop_with_empty_axes", 0):
        return False
    name = _axes_input(node)
    return _names_no_axes(node) or (bool(name) and node.constant(name) is None)


def _names_no_axes(node: NodeFacts) -> bool:
    name = _axes_input(node)
    if name:
        axes = node.constant(name)
        return axes is not None and not axes.size
    return not has_axes_attribute(node)


def is_flattening(node: NodeFacts) -> bool:
    """Return whether a Softmax, LogSoftmax or Hardmax flattens: below 13, over several dimensions.

    Runtimes that treat it as the newer operator normalise over one dimension alone.
    """
    if node.source_opset >= 13:
        return False
    axis, dims = node.value("axis", 1), _data_dims(node)
    if dims is None:
        return bool(axis != -1)
    return any(dim != 1 for dim in dims[axis + 1 if axis != -1 else len(dims) :])


def is_flattening_from_the_end(node: NodeFacts) -> bool:
    """Return whether a flattening Softmax, LogSoftmax or Hardmax has a negative axis."""
    return is_flattening(node) and bool(node.value("axis", 1) < 0)


def reduces_single_elements(node: NodeFacts) -> bool:
    """Return whether all dimensions that are reduced over are known to be 1.

    A dimension that is not known counts as larger: models seldom reduce over a 1.
    """
    dims, axes = _data_dims(node), reduction_axes(node)
    if dims is None or axes is None:
        return False
    return all(dims[axis] == 1 for axis in axes or range(len(dims)))


def has_rank_but_3_to_5(node: NodeFacts) -> bool:
    """Return whether it reduces over some dimensions of data whose rank is not 3, 4 or 5."""
    dims = _data_dims(node)
    return reduction_axes(node) != () and (dims is None or not 3 <= len(dims) <= 5)


def has_outer_axes(node: NodeFacts) -> bool:
    """Return whether it reduces over several axes, with batch or channels or not ascending."""
    axes = reduction_axes(node)
    if axes is None:
        return True
    return len(axes) > 1 and any(axis < 2 + place for place, axis in enumerate(axes))


def names_all_axes(node: NodeFacts) -> bool:
    """Return whether it reduces over all dimensions and names each of them."""
    dims, axes = _data_dims(node), reduction_axes(node)
    return dims is not None and bool(axes) and len(set(axes or ())) == len(dims)


def keeps_three(node: NodeFacts) -> bool:
    """Return whether it keeps over three dimensions, or three with the first greater than 2."""
    dims, axes = _data_dims(node), reduction_axes(node)
    if dims is None or axes is None:
        return axes != ()
    kept = [dim for axis, dim in enumerate(dims) if axis not in axes]
    return _are_three(kept) and any(dims[axis] != 1 for axis in axes)


def keeps_the_last(node: NodeFacts) -> bool:
    """Return whether it keeps the last two dimensions or more, the first greater than 2."""
    dims, axes = _data_dims(node), reduction_axes(node)
    if dims is None or axes is None:
        return axes != ()
    kept = [dim for axis, dim in enumerate(dims) if axis not in axes]
    leads = set(axes) == set(range(len(dims) - len(kept)))
    return leads and bool(axes) and len(kept) >= 2 and kept[0] not in (1, 2)


def reduces_three(node: NodeFacts) -> bool:
    """Return whether it reduces over three dimensions or more, but not all; see `keeps_three`."""
    dims, axes = _data_dims(node), reduction_axes(node)
    if dims is None or axes is None:
        return _count_of_axes(node) not in (0, 1, 2)
    return _are_three([dims[axis] for axis in sorted(axes)]) and len(set(axes)) < len(dims)


def _are_three(dims: Dims | list[int | str | None]) -> bool:
    return len(dims) > 3 or (len(dims) == 3 and dims[0] not in (1, 2))


def reduces_three_not_last(node: NodeFacts) -> bool:
    """Return whether `reduces_three` is true of dimensions that are not the last ones."""
    dims, axes = _data_dims(node), reduction_axes(node)
    if dims is None or axes is None:
        return reduces_three(node)
    last = set(range(len(dims) - len(set(axes)), len(dims)))
    return reduces_three(node) and set(axes) != last


def computes_in_threads(node: NodeFacts) -> bool:
    """Return whether OpenCV 4.8 computes it in several threads, or may; see `THREADED`."""
    dims, axes = _data_dims(node), reduction_axes(node)
    if dims is None or axes is None:
        return axes != ()
    kept = [dim for axis, dim in enumerate(dims) if axis not in axes]
    if not axes or all(dim == 1 for dim in kept) or all(dims[axis] == 1 for axis in axes):
        return False
    last = max(axes)
    counted = [*kept, *(dims[axis] for axis in {*axes} - {last}), *dims[last + 1 :]]
    sizes = [dim for dim in counted if isinstance(dim, int)]
    return 0 not in sizes and (len(sizes) < len(counted) or math.prod(sizes) >= THREADED)


def gives_a_vector(node: NodeFacts) -> bool:
    """Return whether one dimension is taken away from a matrix, keepdims=0."""
    dims = _data_dims(node)
    return not node.value("keepdims", 1) and (dims is None or len(dims) == 2)


def drops_by_negative_axes(node: NodeFacts) -> bool:
    """Return whether the attribute axes drops dimensions, a later one by a negative axis."""
    later = node.value("axes", ())[1:]
    return not node.value("keepdims", 1) and any(axis < 0 for axis in later)


def keeps_dims(node: NodeFacts) -> bool:
    """Return whether reduced dimensions are kept as 1."""
    return bool(node.value("keepdims", 1))


def has_several_axes(node: NodeFacts) -> bool:
    """Return whether more than one axis is named, or may be."""
    return _count_of_axes(node) not in (0, 1)


def _count_of_axes(node: NodeFacts) -> int | None:
    """Return how many axes a reduction names; None if that is not known."""
    if _names_no_axes(node):
        return 0
    array = node.constant(_axes_input(node)) if _axes_input(node) else None
    if array is not None:
        return array.size
    axes = node.value("axes")
    return None if axes is None else len(axes)


def reduction_axes(node: NodeFacts) -> tuple[int, ...] | None:
    """Return the axes of a reduction as non-negative integers; empty for all, None if not known."""
    if _names_no_axes(node):
        return ()
    name, dims = _axes_input(node), _data_dims(node)
    array = node.constant(name) if name else None
    found = list(node.value("axes", ()))
    if array is not None and array.dtype.kind in "iu":
        found = array.reshape(-1).tolist()
    if not found or dims is None or any(not -len(dims) <= axis < len(dims) for axis in found):
        return None
    return tuple(axis % len(dims) for axis in found)


def normalizes_inner_axis(node: NodeFacts) -> bool:
    """Return whether a Softmax, LogSoftmax or Hardmax from 13 on has another axis than the last."""
    if node.source_opset < 13:
        return False
    axis, dims = node.value("axis", -1), _data_dims(node)
    return bool(axis != -1 and (dims is None or axis != len(dims) - 1))


def _data_dims(node: NodeFacts) -> Dims | None:
    found = node.type(node.input(0))
    return None if found is None else found.dims
