"""Sequences and optionals: a sequence is a list of arrays, an empty optional is None.

Source: the Sequence operators of 11, SplitToSequence 11 and 24, Optional 15 and 28,
OptionalGetElement and OptionalHasElement 15, 18 and 28.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxreduce_cli.executor.axes import one_axis
from onnxreduce_cli.executor.dtypes import BOOL, INT64, Array, RuntimeValue
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.registry import Call, kernel


@kernel("SequenceConstruct", 11)
def sequence_construct(call: Call, *items: Array) -> list[Any]:
    """Make a sequence of the inputs."""
    return list(items)


@kernel("SequenceEmpty", 11)
def sequence_empty(call: Call) -> list[Any]:
    """Make an empty sequence."""
    return []


def _position(value: Array, size: int, *, end: bool = False) -> int:
    if value.size != 1:
        raise Invalid(f"position has shape {value.shape}, it must hold one value")
    return one_axis(int(value.reshape(())), size, end=end)


@kernel("SequenceAt", 11)
def sequence_at(call: Call, items: list[Any], position: Array) -> Any:
    """Return the element at a position, which may be negative."""
    return items[_position(position, len(items))]


@kernel("SequenceInsert", 11)
def sequence_insert(
    call: Call, items: list[Any], item: Array, position: Array | None = None
) -> list[Any]:
    """Return the sequence with one more element, at a position or at the end."""
    at = len(items) if position is None else _position(position, len(items), end=True)
    return [*items[:at], item, *items[at:]]


@kernel("SequenceErase", 11)
def sequence_erase(call: Call, items: list[Any], position: Array | None = None) -> list[Any]:
    """Return the sequence without the element at a position, or without the last."""
    at = one_axis(-1, len(items)) if position is None else _position(position, len(items))
    return [*items[:at], *items[at + 1 :]]


@kernel("SequenceLength", 11)
def sequence_length(call: Call, items: list[Any]) -> Array:
    """Return the number of elements as an int64 scalar."""
    return np.array(len(items), dtype=INT64)


@kernel("ConcatFromSequence", 11)
def concat_from_sequence(call: Call, items: list[Array]) -> Array:
    """Join the elements along `axis`, a new one with `new_axis`."""
    axis = call.attrs["axis"]
    if call.attrs["new_axis"]:
        return np.stack(items, axis=axis)
    return np.concatenate(items, axis=axis)


@kernel("SplitToSequence", 11, 24)
def split_to_sequence(call: Call, data: Array, split: Array | None = None) -> list[Array]:
    """Split into a sequence: by lengths, by one length (the last may be less), or one by one.

    `keepdims` = 0 drops the axis, and only counts without a split.
    """
    axis = one_axis(call.attrs["axis"], data.ndim)
    total = data.shape[axis]
    if split is None:
        ones = np.split(data, total, axis=axis) if total else []
        return ones if call.attrs["keepdims"] else [np.squeeze(part, axis) for part in ones]
    if split.ndim:
        lengths = [int(n) for n in split]
        if sum(lengths) != total or min(lengths, default=0) < 0:
            raise Invalid(f"split {lengths} does not add up to {total}")
        return list(np.split(data, np.cumsum(lengths)[:-1], axis=axis))
    if split <= 0:
        raise Invalid(f"split is {int(split)}, it must be positive")
    return list(np.split(data, range(int(split), total, int(split)), axis=axis))


@kernel("Optional", 15, 28)
def optional(call: Call, value: RuntimeValue = None) -> RuntimeValue:
    """Make an optional of the input, or an empty one."""
    return value


@kernel("OptionalGetElement", 15, 18, 28)
def optional_get_element(call: Call, value: RuntimeValue) -> RuntimeValue:
    """Return the element of an optional that is not empty."""
    if value is None:
        raise Invalid("the optional is empty")
    return value


@kernel("OptionalHasElement", 15, 18, 28)
def optional_has_element(call: Call, value: RuntimeValue = None) -> Array:
    """Return whether an optional value has an element."""
    return np.array(value is not None, dtype=BOOL)
