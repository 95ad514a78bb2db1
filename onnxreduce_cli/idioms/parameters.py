"""Conditions on the inputs of composite operators: shapes, values, dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.axes import squeezed
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.matching import IdiomMatch, NoMatchError
from onnxreduce_cli.model.graph.values import Dims


def require_dims(facts: NodeFacts, name: str) -> Dims:
    """Return the dimensions of a tensor.

    Raises:
        NoMatchError: its rank is not known.
    """
    found = facts.type(name)
    if found is None or found.dims is None:
        raise NoMatchError(f"the rank of {name!r} is not known")
    return found.dims


def require_shape(facts: NodeFacts, what: str, name: str, dims: Dims, rank: int) -> None:
    """Raise unless a parameter has the shape `dims`, with or without dimensions of 1 before it.

    Args:
        facts: what is known of the model.
        what: what the parameter is, for the message.
        name: the parameter.
        dims: the shape that it must have.
        rank: the rank of the data, which the result has: a parameter of a higher one raises it.

    Raises:
        NoMatchError: it has, or may have, another shape.
    """
    given = require_dims(facts, name)
    if len(given) > rank:
        raise NoMatchError(f"its {what} {name!r} has a higher rank than its data")
    before, own = given[: -len(dims)], given[-len(dims) :]
    if None in own or own != dims or any(dim != 1 for dim in before):
        raise NoMatchError(f"its {what} {name!r} may not have the shape of what it is for")


def parameter_of_axes(context: Context, name: str, axes: Sequence[int]) -> str:
    """Return a parameter without its other axes, which are of size 1; a constant stays one.

    Args:
        context: the context of the node.
        name: the parameter.
        axes: the axes that it keeps, counted from the back.
    """
    rank = len(require_dims(context, name))
    others = [axis for axis in range(rank) if axis - rank not in axes]
    array = context.constant(name) if others else None
    if array is not None:
        return context.array(array.squeeze(tuple(others)), "parameter")
    return squeezed(context, name, others)


def is_filled(facts: NodeFacts, name: str, value: float) -> bool:
    """Return whether all elements are one value, in a constant or an Expand of one."""
    node = facts.producer(name)
    if node is not None and node.op_type == "Expand":
        name = node.input[0]
    array = facts.constant(name)
    return array is not None and bool((array == value).all())


def is_shape_of(facts: NodeFacts, sizes: str, data: str) -> bool:
    """Return whether a list of sizes is the shape of a tensor, whatever Casts lie between."""
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


def not_of_double(facts: NodeFacts, found: IdiomMatch) -> Mapping[str, Any]:
    """Return no attributes, unless the data is double.

    The constants in the operators' definitions are of float, and runtimes compute with these.

    Raises:
        NoMatchError: the data is double.
    """
    if facts.elem_type(found["data"]) == TensorProto.DOUBLE:
        raise NoMatchError("in double it has constants that the operator has in float only")
    return {}
