"""The operators on sequences and optional values, and the nodes that replace theirs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto, TensorProto

from onnxreduce_cli.containers.splitting import split_to_sequence
from onnxreduce_cli.containers.values import Given, Listed, Maybe, Tensor, UnwritableError
from onnxreduce_cli.containers.writing import Environment, Writing
from onnxreduce_cli.model.graph import attributes

#: Writes a node's replacement, records how its outputs are represented; returns whether it did.
Writer = Callable[[Writing, NodeProto, Environment], bool]


def construct(writing: Writing, node: NodeProto, environment: Environment) -> bool:
    """SequenceConstruct: a list of its inputs."""
    elem_type = writing.elem_type(node.input[0])
    dims = tuple(writing.tensor(name)[1] for name in node.input)
    environment[node.output[0]] = Listed(tuple(node.input), elem_type, dims)
    return True


def empty(writing: Writing, node: NodeProto, environment: Environment) -> bool:
    """SequenceEmpty: a list of nothing."""
    dtype = attributes.find(node, "dtype")
    elem_type = TensorProto.FLOAT if dtype is None else dtype.i
    environment[node.output[0]] = Listed((), elem_type, ())
    return True


def change(writing: Writing, node: NodeProto, environment: Environment) -> bool:
    """SequenceInsert and SequenceErase."""
    sequence = writing.sequence(environment, node.input[0])
    insert = node.op_type == "SequenceInsert"
    at = node.input[2 if insert else 1] if len(node.input) > (2 if insert else 1) else ""
    place = writing.number(at) if at else None
    if isinstance(sequence, Listed) and not isinstance(place, str):
        count = len(sequence.items)
        if not -count <= (place or 0) < count + insert:
            raise UnwritableError(
                f"it is to change a sequence of {count} at {place or 0}", "mend the model"
            )
    if isinstance(sequence, Listed) and isinstance(place, str):
        sequence = writing.sequences.counted(sequence)
    environment[node.output[0]] = (
        writing.sequences.inserted(sequence, node.input[1], writing.tensor(node.input[1])[1], place)
        if insert
        else writing.sequences.erased(sequence, place)
    )
    return True


def length(writing: Writing, node: NodeProto, environment: Environment) -> bool:
    """SequenceLength: a constant, or what is counted at run time."""
    sequence = writing.sequence(environment, node.input[0])
    if isinstance(sequence, Given):
        return writing.of_given(node, sequence)
    if isinstance(sequence, Listed):
        length = writing.op.constant(np.array(len(sequence.items)), "length")
        writing.replace(node, "Identity", length)
    else:
        writing.sequences.length(sequence, node)
    return True


def at(writing: Writing, node: NodeProto, environment: Environment) -> bool:
    """SequenceAt: the tensor that is known to be there, or one found at run time."""
    sequence = writing.sequence(environment, node.input[0])
    if isinstance(sequence, Given):
        return writing.of_given(node, sequence)
    place = writing.number(node.input[1])
    if isinstance(sequence, Listed) and isinstance(place, int):
        if not -len(sequence.items) <= place < len(sequence.items):
            raise UnwritableError(
                f"it takes element {place} of {len(sequence.items)}", "mend the model"
            )
        writing.replace(node, "Identity", sequence.items[place])
        return True
    counted = writing.sequences.counted(sequence)
    at = writing.sequences.place(counted, place)
    writing.sequences.element(counted, at, node)
    return True


def concat(writing: Writing, node: NodeProto, environment: Environment) -> bool:
    """ConcatFromSequence."""
    sequence = writing.sequence(environment, node.input[0])
    if isinstance(sequence, Given):
        return writing.of_given(node, sequence)
    axis, new_axis = attributes.find(node, "axis"), attributes.find(node, "new_axis")
    assert axis is not None
    new = new_axis is not None and bool(new_axis.i)
    writing.sequences.put_together(sequence, axis.i, new, node)
    return True


def optional(writing: Writing, node: NodeProto, environment: Environment) -> bool:
    """Optional: its input as the element, or none."""
    name = node.input[0] if node.input else ""
    value = writing.value(environment, name) if name else None
    if isinstance(value, Maybe) or (isinstance(value, Given) and value.optional):
        raise UnwritableError("there is no optional value of an optional one", "mend the model")
    if isinstance(value, str):
        environment[node.output[0]] = Maybe(True, Tensor(value, writing.elem_type(value)))
    else:
        environment[node.output[0]] = Maybe(value is not None, value)
    return True


def has_element(writing: Writing, node: NodeProto, environment: Environment) -> bool:
    """OptionalHasElement: a constant, or the bool scalar of the value."""
    value = writing.value(environment, node.input[0]) if node.input and node.input[0] else None
    if isinstance(value, Given) and value.optional:
        return writing.of_given(node, value)
    has: bool | str = value is not None
    if isinstance(value, Maybe):
        has = value.has
    name = has if isinstance(has, str) else writing.op.constant(np.array(has), "has")
    writing.replace(node, "Identity", name)
    return True


def get_element(writing: Writing, node: NodeProto, environment: Environment) -> bool:
    """OptionalGetElement: the element."""
    value = writing.value(environment, node.input[0])
    if isinstance(value, Given) and value.optional:
        return writing.of_given(node, value)
    content = value.value if isinstance(value, Maybe) else value
    if content is None:
        raise UnwritableError("it takes the element of a value that has none", "mend the model")
    if isinstance(content, str | Tensor):
        writing.replace(node, "Identity", content if isinstance(content, str) else content.name)
    else:
        environment[node.output[0]] = content
    return True


def identity(writing: Writing, node: NodeProto, environment: Environment) -> bool:
    """Identity: of containers another name, of a tensor left as it is."""
    value = writing.value(environment, node.input[0])
    if isinstance(value, str):
        return False
    environment[node.output[0]] = value
    return True


WRITERS: dict[str, Writer] = {
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

#: Operators that only containers go into or come out of.
OPERATORS = frozenset({*WRITERS, "SequenceMap"} - {"Identity"})
