"""Replacements of SplitToSequence."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from onnxreduce_cli.containers.rewrite_state import Environment, RewriteState
from onnxreduce_cli.containers.values import (
    ListedSequence,
    PackedSequence,
    StackedSequence,
    UnwritableError,
)

#: Up to how many parts of known sizes become a tensor each.
_MOST_PARTS = 64


def split_to_sequence(state: RewriteState, node: NodeProto, environment: Environment) -> bool:
    """Replace SplitToSequence by a node for each part, a stack of the parts, or a Loop."""
    data, output = node.input[0], node.output[0]
    sizes = node.input[1] if len(node.input) > 1 else ""
    found = {item.name: item.i for item in node.attribute}
    elem_type, dims = state.elem_type(data), state.tensor(data)[1]
    if dims is None:
        raise UnwritableError(
            f"the rank of {data!r} is not known", "state its shape in the model's value_info"
        )
    axis = found.get("axis", 0) % max(len(dims), 1)
    keepdims = bool(sizes) or bool(found.get("keepdims", 1))
    known = state.facts.constant(state.scope, sizes) if sizes else np.array(1)
    ends = _ends(known, dims[axis])
    if ends is not None and len(ends) <= _MOST_PARTS and (keepdims or len(ends) <= 8):
        names = [
            _part(state, data, axis, start, end, keepdims)
            for start, end in zip([0, *ends], ends, strict=False)
        ]
        known_dims = tuple(state.tensor(name)[1] for name in names)
        environment[output] = ListedSequence(tuple(names), elem_type, known_dims)
    elif known is not None and not known.ndim and int(known) == 1:
        environment[output] = _stack(state, data, elem_type, axis, keepdims)
    else:
        environment[output] = _split_at_run_time(state, data, elem_type, axis, sizes)
    return True


def _part(state: RewriteState, data: str, axis: int, start: int, end: int, keepdims: bool) -> str:
    op = state.op
    elem_type, dims = state.tensor(data)
    assert dims is not None
    others = (dims[:axis], dims[axis + 1 :])
    if not keepdims:
        place = op.constant(np.array(start), "place")
        name = op.Gather(data, place, axis=axis)
        op.types[name] = (elem_type, (*others[0], *others[1]))
        return name
    name = op.part(data, op.ints(start), op.ints(end), axis)
    op.types[name] = (elem_type, (*others[0], end - start, *others[1]))
    return name


def _stack(
    state: RewriteState, data: str, elem_type: int, axis: int, keepdims: bool
) -> StackedSequence:
    dims = state.tensor(data)[1]
    assert dims is not None
    perm = [axis, *(index for index in range(len(dims)) if index != axis)]
    stack = state.op.Transpose(data, perm=perm) if axis else data
    rest: list[int | str | None] = [dims[index] for index in perm[1:]]
    if keepdims:
        stack = state.op.unsqueezed(stack, axis + 1)
        rest.insert(axis, 1)
    return StackedSequence(stack, elem_type, tuple(rest))


def _split_at_run_time(
    state: RewriteState, data: str, elem_type: int, axis: int, sizes: str
) -> PackedSequence:
    op = state.op
    dims = state.tensor(sizes)[1]
    if dims is None:
        raise UnwritableError(
            f"the rank of {sizes!r} is not known", "state its shape in the model's value_info"
        )
    length = op.Cast(sizes, to=TensorProto.INT64)
    count = ""
    if not dims:
        length = op.Reshape(length, op.ints(1))
        whole = op.Gather(op.Shape(data), op.ints(axis), axis=0)
        less = op.Sub(length, op.ints(1))
        count = op.Div(op.Add(whole, less), length)
    rank = len(state.tensor(data)[1] or ())
    kind = PackedSequence("", "", "", elem_type, rank)
    return state.sequences.split(data, kind, axis, length, count)


def _ends(known: np.ndarray | None, dim: int | str | None) -> list[int] | None:
    """Return the index at which each part of a split ends.

    None where it is not known, or where one size for all gives more than `_MOST_PARTS` parts.
    """
    if known is None or (not known.ndim and (not isinstance(dim, int) or int(known) < 1)):
        return None
    if known.ndim:
        return [int(end) for end in np.cumsum(known.astype(np.int64))]
    assert isinstance(dim, int)
    if dim > int(known) * _MOST_PARTS:
        return None
    return [min(end, dim) for end in range(int(known), dim + int(known), int(known))]
