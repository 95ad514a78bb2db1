"""What an operator asks of its inputs: shapes, values, dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.matching import Found, NoMatchError
from onnxreduce_cli.model.graph.values import Dims


def known_dims(facts: NodeFacts, name: str) -> Dims:
    """The dimensions of a tensor.

    Raises:
        NoMatchError: not even their number is known.
    """
    found = facts.type(name)
    if found is None or found.dims is None:
        raise NoMatchError(f"the rank of {name!r} is not known")
    return found.dims


def require_shape(facts: NodeFacts, what: str, name: str, dims: Dims) -> None:
    """Refuse a parameter that has another shape than `dims`, but for dimensions of 1 before it.

    Raises:
        NoMatchError: it has, or may have.
    """
    given = known_dims(facts, name)
    before, own = given[: -len(dims)], given[-len(dims) :]
    if None in own or own != dims or any(dim != 1 for dim in before):
        raise NoMatchError(f"its {what} {name!r} may not have the shape of what it is for")


def reshaped(context: Context, name: str, shape: Sequence[int]) -> str:
    """A parameter in another shape of as many elements: a constant, where it is one."""
    if known_dims(context, name) == tuple(shape):
        return name
    array = context.constant(name)
    if array is not None:
        return context.array(array.reshape(shape), "parameter")
    return context.op.Reshape(name, context.array(list(shape), "shape"))


def is_filled(facts: NodeFacts, name: str, value: float) -> bool:
    """Return whether a tensor holds one value alone: a constant, or an Expand of one."""
    node = facts.producer(name)
    if node is not None and node.op_type == "Expand":
        name = node.input[0]
    array = facts.constant(name)
    return array is not None and bool((array == value).all())


def is_shape_of(facts: NodeFacts, sizes: str, data: str) -> bool:
    """Return whether a list of sizes is the shape of a tensor, Casts to and fro disregarded."""
    node: NodeProto | None = facts.producer(sizes)
    while node is not None and node.op_type == "Cast":
        sizes, node = node.input[0], facts.producer(node.input[0])
    if node is not None and node.op_type == "Shape":
        return bool(node.input[0] == data and not node.attribute)
    dims, known = facts.type(data), facts.elements(sizes)
    kept = facts.kept_dims(sizes, data)
    return (
        dims is not None
        and dims.dims is not None
        and known is not None
        and len(known) == len(dims.dims)
        and all(
            same or (dim is not None and dim == size)
            for dim, size, same in zip(dims.dims, known, kept, strict=True)
        )
    )


def not_of_double(facts: NodeFacts, found: Found) -> Mapping[str, Any]:
    """No attributes: runtimes compute it with constants of float, as its definition has them.

    Raises:
        NoMatchError: the data is double.
    """
    if facts.elem_type(found["data"]) == TensorProto.DOUBLE:
        raise NoMatchError("in double it has constants that the operator has in float only")
    return {}
