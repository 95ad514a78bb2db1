"""Values of int64 as int32, where the intervals of all of them are proven."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, helper

from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import Scope, by_root
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.intervals import INT32, Interval, Intervals

_OLD, _NEW = "tensor(int64)", "tensor(int32)"


class Unproven(NamedTuple):
    """A value of which it is not proven that an int32 holds it.

    Attributes:
        scope: the scope that it belongs to.
        node: the node that makes it; None of an input.
        name: its name.
        interval: what is known of it, if anything.
    """

    scope: Scope
    node: NodeProto | None
    name: str
    interval: Interval | None


@dataclass(slots=True)
class Places:
    """Where values of int64 stay, as an operator takes or makes no int32 there.

    Attributes:
        inputs: the numbers of such inputs, by the identity of the node.
        outputs: the numbers of such outputs, by the identity of the node.
    """

    inputs: dict[int, list[int]] = field(default_factory=dict)
    outputs: dict[int, list[int]] = field(default_factory=dict)


def int64_places(facts: Facts) -> Places:
    """Return where values must stay int64, before the dtype changes."""
    found = Places()
    for scope in facts.scopes:
        for node in scope.nodes:
            if not is_default(node.domain) or not schemas.exists(node.op_type, scope.opset or 0):
                continue
            schema = schemas.schema(node.op_type, scope.opset or 0)
            sides = (
                (found.inputs, node.input, schema.inputs),
                (found.outputs, node.output, schema.outputs),
            )
            for places, names, formals in sides:
                wide = [
                    place
                    for place, name in enumerate(names)
                    if name
                    and facts.kind(scope, name) == _OLD
                    and _NEW not in formals[min(place, len(formals) - 1)].types
                ]
                if wide:
                    places[id(node)] = wide
    return found


def unproven(facts: Facts, places: Places, assumed: Mapping[str, Interval]) -> Iterator[Unproven]:
    """Yield the values of int64 of which it is not proven that an int32 holds them.

    A value that is only made and read where int64 stays need not be held.
    """
    intervals = Intervals(facts, assumed)
    read = _narrow_reads(facts, places)
    for scope in facts.scopes:
        made = {
            (name, id(node)): place in places.outputs.get(id(node), ())
            for node in scope.nodes
            for place, name in enumerate(node.output)
        }
        for name in [*scope.inputs, *scope.initializers, *scope.producers]:
            if facts.kind(scope, name) != _OLD:
                continue
            node = scope.producer(name)
            stays = node is None or node.op_type == "Constant" or made[name, id(node)]
            given = name in scope.inputs
            if stays and not given and (id(scope), name) not in read:
                continue
            interval = intervals.of(scope, name)
            if interval is None or not interval.within(INT32):
                yield Unproven(scope, node, name, interval)


def _narrow_reads(facts: Facts, places: Places) -> set[tuple[int, str]]:
    """Return the values that are read where int32 takes the place of int64, and outputs."""
    read = {(id(scope.resolve(name)), name) for scope in facts.scopes for name in scope.outputs}
    for scope in facts.scopes:
        for node in scope.nodes:
            wide = places.inputs.get(id(node), ())
            for place, name in enumerate(node.input):
                if name and place not in wide:
                    read.add((id(scope.resolve(name)), name))
    return read


def cast_places(scopes: list[Scope], places: Places, kept: set[str]) -> None:
    """Add Casts where int64 stays, in place, once all other values are int32.

    Args:
        scopes: its scopes, as they were when `places` was asked for.
        places: where int64 stays.
        kept: the constants of int64, which are read without a Cast.
    """
    for scope in scopes:
        fresh = Names(by_root(scopes)[id(scope)])
        wide: dict[str, str] = {}
        nodes: list[NodeProto] = []
        for node in scope.container.node:
            for place in places.inputs.get(id(node), ()):
                name = node.input[place]
                if name in kept:
                    continue
                if name not in wide:
                    wide[name] = fresh.fresh(f"{name}_int64")
                    nodes.append(_cast(name, wide[name], TensorProto.INT64))
                node.input[place] = wide[name]
            nodes.append(node)
            for place in places.outputs.get(id(node), ()):
                name = node.output[place]
                wide[name] = fresh.fresh(f"{name}_int64")
                node.output[place] = wide[name]
                nodes.append(_cast(wide[name], name, TensorProto.INT32))
        _replace_nodes(scope.container, nodes)


def _replace_nodes(container: GraphProto | FunctionProto, nodes: list[NodeProto]) -> None:
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del container.node[:]
    container.node.extend(copies)


def _cast(before: str, after: str, dtype: int) -> NodeProto:
    return helper.make_node("Cast", [before], [after], name=f"{after}_cast", to=dtype)
