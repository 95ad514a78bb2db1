"""Type constraints: a node with types that an opset lacks is computed in a wider dtype, or blocks.

Every formal input and output of an operator allows the types of its type constraint. Where an older
definition allows fewer, the operator is computed in a wider dtype if that changes no result
(`widening`); else the node blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from onnx import NodeProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.values import dtype_name
from onnxreduce_cli.steps import widening

_BFLOAT16 = "tensor(bfloat16)"


@cache
def types_left_out(op_type: str, before: int, after: int) -> frozenset[str]:
    """Return the types that an operator takes or gives at opset `before`, and not at `after`."""
    old, new = schemas.allowed_types(op_type, before), schemas.allowed_types(op_type, after)
    return frozenset().union(*(old[formal] - new[formal] for formal in old.keys() & new.keys()))


def fit_types(context: Context, node: NodeProto, before: int, after: int) -> None:
    """Compute a node in a wider dtype where opset `after` lacks one and that changes no result.

    Args:
        context: whose node it is, or where it was emitted.
        node: the node.
        before: the opset at which it is valid; `after` for a node that a step emitted for there,
            where values of unknown type pass.
        after: the opset at which its types must be allowed.

    Raises:
        Blocked: a type is not allowed there, or may not be, and no wider one does.
    """
    if not is_default(node.domain):
        return
    op_type = node.op_type
    wide: dict[str, int] = {}
    for formal, variable, name in _not_allowed(context, node, before, after):
        allowed = schemas.allowed_types(op_type, after)[formal]
        elem_type = context.elem_type(name)
        wider_type = None
        if elem_type is not None:
            wider_type = widening.wider_dtype(op_type, elem_type, allowed, after)
        if wider_type is None:
            raise _type_not_allowed(context, node, formal, name, after)
        wide[variable] = wider_type
    if wide:
        widening.compute_wider(context.at(after), node, wide)
        context.description = (
            f"computed in {', '.join(sorted(map(dtype_name, set(wide.values()))))}"
        )


def _not_allowed(
    context: Context, node: NodeProto, before: int, after: int
) -> Iterator[tuple[str, str, str]]:
    """Yield the inputs and outputs whose type opset `after` does not allow; see `fit_types`.

    Yields:
        the formal parameter (``in0``, ``out1``, ...), its type variable, and the value's name.

    Raises:
        Blocked: a type is not known, and `before` allows some that `after` does not.
    """
    constraints = _constraints(node.op_type, before, after)
    for names, formals in zip((node.input[:], node.output[:]), constraints, strict=True):
        for index, name in enumerate(names):
            formal = formals[min(index, len(formals) - 1)] if name and formals else None
            if formal is None:
                continue
            value_type = context.kind(name)
            if value_type is not None and value_type not in formal.allowed:
                yield formal.name, formal.variable, name
            elif value_type is None and before != after:
                missing = (context.allowed_kinds(name) or formal.before) - formal.allowed
                if missing:
                    raise _unknown_type(name, missing, node.op_type, after)


class _FormalParameter(NamedTuple):
    """A formal input or output some of whose types may not be allowed.

    Attributes:
        name: the parameter: ``in0``, ``out1``.
        variable: its type as the schema spells it, such as ``T``.
        allowed: the types that it accepts.
        before: the types that the definition at the node's own opset accepts.
    """

    name: str
    variable: str
    allowed: frozenset[str]
    before: frozenset[str]


@cache
def _constraints(
    op_type: str, before: int, after: int
) -> tuple[tuple[_FormalParameter | None, ...], tuple[_FormalParameter | None, ...]]:
    """Return the formal inputs and outputs to check, with None for each that allows all old types.

    Where `before` is `after` all are checked.
    """
    old, new = schemas.allowed_types(op_type, before), schemas.allowed_types(op_type, after)
    schema = schemas.schema(op_type, after)

    def formal(name: str, variable: str) -> _FormalParameter | None:
        allowed_before = old.get(name, frozenset())
        if name not in new or (before != after and allowed_before <= new[name]):
            return None
        return _FormalParameter(name, variable, new[name], allowed_before)

    return (
        tuple(formal(f"in{index}", item.type_str) for index, item in enumerate(schema.inputs)),
        tuple(formal(f"out{index}", item.type_str) for index, item in enumerate(schema.outputs)),
    )


def _unknown_type(name: str, missing: frozenset[str], op_type: str, opset: int) -> Blocked:
    """Return the blocker for a value of unknown type that may be one that an opset lacks."""
    return Blocked(
        f"the type of {name!r} is not known, and may be {min(missing)}, which "
        f"{op_type} does not take at opset {opset}",
        "state its type in the model's value_info",
        dtype_of=name,
    )


def _type_not_allowed(
    context: Context, node: NodeProto, formal: str, name: str, opset: int
) -> Blocked:
    """Return the blocker for a value of a type that an operator does not take, nor a wider one.

    Args:
        context: where the node is, or is emitted.
        node: the node.
        formal: which of its inputs or outputs the value is.
        name: the value, of known type.
        opset: the opset at which it is not taken.
    """
    op_type, value_type = node.op_type, context.kind(name) or ""
    producer = context.producer(node.output[0])
    is_own = producer is not None and producer.op_type == op_type
    later = (version for version in schemas.versions(op_type) if version > opset)
    taking = (
        version
        for version in later
        if value_type in schemas.allowed_types(op_type, version).get(formal, ())
    )
    since = next(taking, None)
    advice = "choose an opset that does" if since is None else f"choose opset {since} or later"
    if value_type == _BFLOAT16:
        advice += ", or change it throughout the model: --dtype bfloat16=float"
    if not is_own and since is not None:
        return Blocked(
            f"what takes its place needs {op_type} of {value_type}, which came with opset {since}",
            advice,
        )
    if value_type.startswith("tensor") and value_type != _BFLOAT16:
        advice += f", or cast {name!r}"
    first = schemas.first_opset_with_type(value_type)
    if first > opset:
        reason = (
            f"it has a {value_type}, which came with opset {first}: no operator before knows it"
        )
    else:
        reason = (
            f"{op_type} does not take {value_type} at opset {opset}, nor a dtype in which the "
            "results are the same"
        )
    return Blocked(reason, advice)
