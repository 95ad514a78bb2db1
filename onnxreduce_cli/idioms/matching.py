"""Looking for a pattern among a model's nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

from onnxreduce_cli import schemas
from onnxreduce_cli.idioms.tracing import Pattern
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import is_default

Array = npt.NDArray[Any]

_COMMUTATIVE = frozenset({"Add", "Max", "Min", "Mul"})

#: The opset from which on a Softmax is over one axis: before, over all from that one on.
_SOFTMAX_OF_ONE_AXIS = 13

#: What tf2onnx writes for a ReduceMean over all but the first two dimensions.
_SAME_AS = {"ReduceMean": "GlobalAveragePool"}

#: How far a constant may be from the number it stands for, in units of its dtype's precision.
_UNITS = 2


class NoMatchError(Exception):
    """Nodes look like an idiom, and are not: the message says why not."""


class Surroundings(Protocol):
    """Where a pattern is looked for: one scope of a model."""

    opset: int

    def producer(self, name: str) -> NodeProto | None:
        """The node of the scope that makes a value."""

    def constant(self, name: str) -> Array | None:
        """The value, if it is the same for every run."""

    def reads(self, name: str) -> int:
        """How often nodes read a value, in the scope and around it; graph outputs count too."""

    def behind(self, match: Match) -> Sequence[NodeProto]:
        """The nodes of a match but the last, and those that make what is read aside."""


@dataclass(frozen=True, slots=True)
class Match:
    """Nodes that are wired as a pattern says.

    Attributes:
        pattern: the pattern.
        names: the model's name for each value of the pattern.
        nodes: the model's node for each output of a node of the pattern, the last one first.
        constants: each constant of the pattern with the name of one of the model's for it.
    """

    pattern: Pattern
    names: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, NodeProto] = field(default_factory=dict)
    constants: frozenset[tuple[str, str]] = frozenset()

    def __getitem__(self, name: str) -> str:
        """The model's name for a value of the pattern."""
        return self.names[name]


@dataclass(frozen=True, slots=True)
class Found:
    """A match that means what the idiom means.

    Attributes:
        match: the nodes.
        numbers: by name the attributes that constants hold, and those that may be anything.
        axes: the axes of its reductions, None where it has none.
        keepdims: whether the last reduction keeps its dimensions.
    """

    match: Match
    numbers: dict[str, Any]
    axes: tuple[int, ...] | None
    keepdims: int

    def __getitem__(self, name: str) -> str:
        """The model's name for a value of the pattern."""
        return self.match[name]


def matches(pattern: Pattern, node: NodeProto, around: Surroundings) -> Iterator[Match]:
    """The ways in which a node may be the last of what a pattern describes, by wiring alone."""
    return _node(pattern, pattern.result, node, Match(pattern), around)


def _node(
    pattern: Pattern, output: str, node: NodeProto, match: Match, around: Surroundings
) -> Iterator[Match]:
    wanted = pattern.producers[output]
    if not is_default(node.domain) or not _may_be(node, wanted):
        return
    given = [name for name in node.input if name]
    if output in pattern.reductions:
        given = given[:1]  # The axes are looked at afterwards.
    if len(given) != len(wanted.input) or len(node.output) != 1:
        return
    names = {**match.names, output: node.output[0]}
    begun = replace(match, names=names, nodes={**match.nodes, output: node})
    orders = permutations(given) if wanted.op_type in _COMMUTATIVE else [tuple(given)]
    for order in dict.fromkeys(orders):
        yield from _values(pattern, list(zip(wanted.input, order, strict=True)), begun, around)


def _may_be(node: NodeProto, wanted: NodeProto) -> bool:
    """Return whether a node's operator is what is wanted, or does the same."""
    return node.op_type in (wanted.op_type, _SAME_AS.get(wanted.op_type))


def _values(
    pattern: Pattern, pairs: list[tuple[str, str]], match: Match, around: Surroundings
) -> Iterator[Match]:
    if not pairs:
        yield match
        return
    (wanted, name), *others = pairs
    for found in _value(pattern, wanted, name, match, around):
        yield from _values(pattern, others, found, around)


def _value(
    pattern: Pattern, wanted: str, name: str, match: Match, around: Surroundings
) -> Iterator[Match]:
    known = match.names.get(wanted)
    if wanted in pattern.numbers:
        constant = around.constant(name)
        if constant is not None and constant.size == 1:
            # Exporters write one constant several times: each must be right by itself.
            yield replace(match, constants=match.constants | {(wanted, name)})
    elif known is not None:
        if known == name:
            yield match
    elif wanted in pattern.inputs or wanted in pattern.asides:
        yield replace(match, names={**match.names, wanted: name})
    else:
        producer = around.producer(name)
        if producer is not None:
            yield from _node(pattern, wanted, producer, match, around)


def confirm(match: Match, around: Surroundings, rank: int | None) -> Found:
    """Look closer at nodes that are wired as a pattern says.

    Args:
        match: the nodes.
        around: their scope.
        rank: that of the idiom's data, if known.

    Raises:
        NoMatchError: a constant or attribute is another, or an inner value is read elsewhere.
    """
    _inner_values(match, around)
    numbers = _numbers(match, around, rank)
    axes: set[tuple[int, ...]] = set()
    keepdims = 1
    for output, node in match.nodes.items():
        own = _attributes(node, around.opset)
        described = match.pattern.producers[output]
        free = [item.name for item in described.attribute if item.ref_attr_name]
        numbers.update({name: own.pop(name) for name in free})
        wanted = _attributes(described, 18, free)
        if output in match.pattern.reductions:
            axes.add(_axes(node, own, around, rank))
            looked_at = {"axes", "axis", "noop_with_empty_axes"}
            if not match.pattern.reductions[output] and "keepdims" in own:
                keepdims = own["keepdims"]
                looked_at.add("keepdims")
            own = {name: value for name, value in own.items() if name not in looked_at}
            wanted = {name: value for name, value in wanted.items() if name not in looked_at}
        known = schemas.schema(node.op_type, around.opset).attributes
        _same(node, own, {name: value for name, value in wanted.items() if name in known})
    if len(axes) > 1:
        raise NoMatchError("its reductions are over different axes")
    return Found(match, numbers, axes.pop() if axes else None, keepdims)


def _inner_values(match: Match, around: Surroundings) -> None:
    """Refuse nodes of which an inner value is read elsewhere, or is an output."""
    nodes = [*around.behind(match), match.nodes[match.pattern.result]]
    own = [name for node in nodes for name in node.input]
    for output, node in match.nodes.items():
        if output == match.pattern.result:
            continue
        name = node.output[0]
        if around.reads(name) != own.count(name):
            raise NoMatchError(f"{name!r}, which {node.op_type} gives, is read elsewhere, too")


def _numbers(match: Match, around: Surroundings, rank: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for wanted, name in sorted(match.constants):
        constant = around.constant(name)
        assert constant is not None
        if constant.ndim > (rank or 0):
            raise NoMatchError(f"its constant {name!r} may add dimensions")
        value, expected = float(constant.reshape(())), match.pattern.numbers[wanted]
        if isinstance(expected, str):
            if found.setdefault(expected, value) != value:
                raise NoMatchError(f"two constants stand for {expected}, and differ")
        elif not _is(constant, expected):
            raise NoMatchError(f"its constant {name!r} is {value:g}, not {expected:g}")
    return found


def _is(constant: Array, expected: float) -> bool:
    """Return whether a constant of one element is a number, as its dtype can hold it."""
    value = float(constant.reshape(()))
    if constant.dtype.kind in "iu":
        return value == expected
    # The dtypes of ml_dtypes, such as bfloat16, are no floats to NumPy.
    precision = float(np.finfo(constant.dtype).eps) if constant.dtype.kind == "f" else 2.0**-7
    return abs(value - expected) <= _UNITS * precision * abs(expected)


def _attributes(node: NodeProto, opset: int, but: Collection[str] = ()) -> dict[str, Any]:
    """The attributes of a node of the default domain, those that have a default filled in.

    Raises:
        NoMatchError: one but those in `but` refers to an attribute of the function around it.
    """
    own = [item for item in node.attribute if item.name not in but]
    if any(item.ref_attr_name for item in own):
        raise NoMatchError(f"an attribute of {node.op_type} is set by the function's callers")
    found = {
        name: attributes.value(item.default_value)
        for name, item in schemas.schema(node.op_type, opset).attributes.items()
        if item.default_value.type and name not in but
    }
    return {**found, **{item.name: attributes.value(item) for item in own}}


def _same(node: NodeProto, own: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name in sorted({*own, *wanted}):
        given, expected = own.get(name), wanted.get(name)
        if isinstance(given, float) and isinstance(expected, float):
            same = _is(np.array(given, np.float32), expected)
        else:
            same = given == expected
        if not same:
            raise NoMatchError(f"{node.op_type} has {name}={given}, not {expected}")


def _axes(
    node: NodeProto, own: dict[str, Any], around: Surroundings, rank: int | None
) -> tuple[int, ...]:
    """The axes of a reduction, or of a Softmax: none for all.

    Raises:
        NoMatchError: they are only known at run time, or nothing is reduced.
    """
    if node.op_type == "GlobalAveragePool":
        if rank is None:
            raise NoMatchError(f"the rank of what {node.op_type} reads is not known")
        return tuple(range(2, rank))
    if "axis" in own:
        axis = own["axis"]
        if around.opset >= _SOFTMAX_OF_ONE_AXIS or axis == -1:
            return (axis,)
        if rank is None:
            raise NoMatchError(f"the rank of what {node.op_type} reads is not known")
        return tuple(range(axis % max(rank, 1), rank))
    axes: tuple[int, ...] = tuple(own.get("axes", ()))
    if len(node.input) > 1 and node.input[1]:
        known = around.constant(node.input[1])
        if known is None:
            raise NoMatchError(f"the axes of {node.op_type} are only known at run time")
        axes = tuple(int(axis) for axis in known.ravel())
    if not axes and own.get("noop_with_empty_axes"):
        raise NoMatchError(f"{node.op_type} reduces nothing")
    return axes
