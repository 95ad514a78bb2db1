"""Replacements of the nodes whose operators work on sequences and optional values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto, TensorProto

from onnxreduce_cli.containers.rewrite_state import Environment, RewriteState
from onnxreduce_cli.containers.splitting import split_to_sequence
from onnxreduce_cli.containers.values import (
    ListedSequence,
    OptionalValue,
    TensorValue,
    UnchangedContainer,
    UnwritableError,
)
from onnxreduce_cli.model.graph import attributes

#: Emits a node's replacement and records how its outputs are represented; returns whether the node
#: is replaced.
NodeWriter = Callable[[RewriteState, NodeProto, Environment], bool]


def construct(state: RewriteState, node: NodeProto, environment: Environment) -> bool:
    """Represent the output of SequenceConstruct by its inputs."""
    elem_type = state.elem_type(node.input[0])
    dims = tuple(state.tensor(name)[1] for name in node.input)
    environment[node.output[0]] = ListedSequence(tuple(node.input), elem_type, dims)
    return True


def empty(state: RewriteState, node: NodeProto, environment: Environment) -> bool:
    """Represent the output of SequenceEmpty by no tensors."""
    dtype = attributes.find(node, "dtype")
    elem_type = TensorProto.FLOAT if dtype is None else dtype.i
    environment[node.output[0]] = ListedSequence((), elem_type, ())
    return True


def change(state: RewriteState, node: NodeProto, environment: Environment) -> bool:
    """Insert or erase an element, for SequenceInsert and SequenceErase."""
    sequence = state.sequence(environment, node.input[0])
    insert = node.op_type == "SequenceInsert"
    at = node.input[2 if insert else 1] if len(node.input) > (2 if insert else 1) else ""
    place = state.number(at) if at else None
    if isinstance(sequence, ListedSequence) and not isinstance(place, str):
        count = len(sequence.items)
        if not -count <= (place or 0) < count + insert:
            raise UnwritableError(
                f"it is to change a sequence of {count} at {place or 0}",
                f"mend the model: give it a position from {-count} to {count - 1 + insert}",
            )
    if isinstance(sequence, ListedSequence) and isinstance(place, str):
        sequence = state.sequences.counted(sequence)
    environment[node.output[0]] = (
        state.sequences.inserted(sequence, node.input[1], state.tensor(node.input[1])[1], place)
        if insert
        else state.sequences.erased(sequence, place)
    )
    return True


def length(state: RewriteState, node: NodeProto, environment: Environment) -> bool:
    """Replace SequenceLength by a constant, or by nodes that count at run time."""
    sequence = state.sequence(environment, node.input[0])
    if isinstance(sequence, UnchangedContainer):
        return state.emit_reader(node, sequence)
    if isinstance(sequence, ListedSequence):
        length = state.op.constant(np.array(len(sequence.items)), "length")
        state.replace(node, "Identity", length)
    else:
        state.sequences.length(sequence, node)
    return True


def at(state: RewriteState, node: NodeProto, environment: Environment) -> bool:
    """Replace SequenceAt by the tensor at a known position, or by nodes that find it."""
    sequence = state.sequence(environment, node.input[0])
    if isinstance(sequence, UnchangedContainer):
        return state.emit_reader(node, sequence)
    place = state.number(node.input[1])
    if isinstance(sequence, ListedSequence) and isinstance(place, int):
        if not -len(sequence.items) <= place < len(sequence.items):
            raise UnwritableError(
                f"it takes element {place} of {len(sequence.items)}",
                "mend the model: give it the position of an element",
            )
        state.replace(node, "Identity", sequence.items[place])
        return True
    counted = state.sequences.counted(sequence)
    at = state.sequences.position_from_front(counted, place)
    state.sequences.element(counted, at, node)
    return True


def concat(state: RewriteState, node: NodeProto, environment: Environment) -> bool:
    """Replace ConcatFromSequence."""
    sequence = state.sequence(environment, node.input[0])
    if isinstance(sequence, UnchangedContainer):
        return state.emit_reader(node, sequence)
    axis, new_axis = attributes.find(node, "axis"), attributes.find(node, "new_axis")
    assert axis is not None
    new = new_axis is not None and bool(new_axis.i)
    state.sequences.concatenate(sequence, axis.i, new, node)
    return True


def optional(state: RewriteState, node: NodeProto, environment: Environment) -> bool:
    """Represent the output of Optional by its input, or as empty."""
    name = node.input[0] if node.input else ""
    value = state.value(environment, name) if name else None
    if isinstance(value, OptionalValue) or (
        isinstance(value, UnchangedContainer) and value.optional
    ):
        raise UnwritableError(
            "there is no optional value of an optional one",
            "mend the model: leave the inner Optional out",
        )
    if isinstance(value, str):
        environment[node.output[0]] = OptionalValue(
            True, TensorValue(value, state.elem_type(value))
        )
    else:
        environment[node.output[0]] = OptionalValue(value is not None, value)
    return True


def has_element(state: RewriteState, node: NodeProto, environment: Environment) -> bool:
    """Replace OptionalHasElement by a constant, or by the bool scalar of the value."""
    value = state.value(environment, node.input[0]) if node.input and node.input[0] else None
    if isinstance(value, UnchangedContainer) and value.optional:
        return state.emit_reader(node, value)
    has: bool | str = value is not None
    if isinstance(value, OptionalValue):
        has = value.has
    name = has if isinstance(has, str) else state.op.constant(np.array(has), "has")
    state.replace(node, "Identity", name)
    return True


def get_element(state: RewriteState, node: NodeProto, environment: Environment) -> bool:
    """Replace OptionalGetElement by the element."""
    value = state.value(environment, node.input[0])
    if isinstance(value, UnchangedContainer) and value.optional:
        return state.emit_reader(node, value)
    content = value.value if isinstance(value, OptionalValue) else value
    if content is None:
        raise UnwritableError(
            "it takes the element of a value that has none",
            "mend the model: ask by OptionalHasElement first, in an If",
        )
    if isinstance(content, str | TensorValue):
        state.replace(node, "Identity", content if isinstance(content, str) else content.name)
    else:
        environment[node.output[0]] = content
    return True


def identity(state: RewriteState, node: NodeProto, environment: Environment) -> bool:
    """Represent the output of an Identity like its input; leave that of a tensor."""
    value = state.value(environment, node.input[0])
    if isinstance(value, str):
        return False
    environment[node.output[0]] = value
    return True


WRITERS: dict[str, NodeWriter] = {
    "ConcatFromSequence": concat,
    "Identity": identity,
    "Optional": optional,
    "OptionalGetElement": get_element,
    "OptionalHasElement": has_element,
    "SequenceAt": at,
    "SequenceConstruct": construct,
    "SequenceEmpty": empty,
    "SequenceErase": change,
    "SequenceInsert": change,
    "SequenceLength": length,
    "SplitToSequence": split_to_sequence,
}

#: Operators that always read or compute a container.
OPERATORS = frozenset({*WRITERS, "SequenceMap"} - {"Identity"})
