"""Nodes that are alike, found once for all that is asked of a model.

What becomes of a node follows from its operator and attributes, and from what was looked up for it.
Nodes of which all that is equal need to be asked about once, whatever the opset and the runtime.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import Lookups
from onnxreduce_cli.engine.templates import Contents
from onnxreduce_cli.model.constants import maybe_known
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.scope import Scope
from onnxreduce_cli.model.signatures import LARGE, of_fields

_T = TypeVar("_T")


class _Equal(NamedTuple):
    """What is equal of alike nodes, beside their operators and attributes.

    Attributes:
        types: whether the types of what they read and make are.
        constants: the places of the inputs that hold the same, where they are constant.
    """

    types: bool = False
    constants: frozenset[int] = frozenset()


_NOTHING = _Equal()


class AlikeNodes:
    """Nodes of one scope, at least one, that are alike as far as was asked about so far.

    Attributes:
        scope: their scope.
        op_type: their operator.
        places: the places of the nodes in the scope, in order.
        sound: of `root`, whether it is known that all can be there with the types around them, and
            that what is stated of what they read is true.
    """

    def __init__(
        self,
        around: _Surroundings,
        op_type: str,
        places: Sequence[int],
        equal: _Equal = _NOTHING,
        root: AlikeNodes | None = None,
    ) -> None:
        self.scope = around.scope
        self.op_type = op_type
        self.places = places
        # Not held on to: objects that refer to themselves are not freed at once.
        self._root = None if root is None else weakref.ref(root)
        self.sound = False
        self._around, self._equal = around, equal
        self._parts: dict[_Equal, Sequence[AlikeNodes]] = {}

    @property
    def root(self) -> AlikeNodes:
        """All nodes that have their operator and attributes."""
        return (self._root and self._root()) or self

    @property
    def first(self) -> NodeProto:
        """The first of the nodes."""
        return self.scope.nodes[self.places[0]]

    @property
    def nodes(self) -> Iterator[NodeProto]:
        """The nodes, in order."""
        nodes = self.scope.nodes
        return (nodes[place] for place in self.places)

    def parts(self, lookups: Lookups) -> Sequence[AlikeNodes] | None:
        """Those that are alike in what was looked up for the first of them, too.

        Args:
            lookups: what was; what was found of values that were emitted for a node follows from
                what that reads.

        Returns:
            those that are like the first one, then the others; None where the first one was asked
            about more than its own values.
        """
        inputs, outputs = self.first.input[:], self.first.output[:]
        own = {*inputs, *lookups.made, ""}
        if lookups.more or not (lookups.constants <= own and lookups.shapes <= {*own, *outputs}):
            return None
        if lookups.made:
            return self.in_full()
        places = {inputs.index(name) for name in lookups.constants if name}
        types = self._equal.types or lookups.types
        return self._apart(_Equal(types, self._equal.constants | places))

    def answers(self, ask: Callable[[NodeProto], tuple[_T, Lookups]]) -> Iterator[_T]:
        """What is answered of the nodes: once of those that are alike in what was looked up.

        Args:
            ask: gives what is answered of one of them, and what was looked up for that.
        """
        waiting = [self]
        while waiting:
            nodes = waiting.pop()
            found, lookups = ask(nodes.first)
            yield found
            parts = nodes.parts(lookups)
            if parts is not None:
                waiting += parts[1:]
            else:
                yield from (ask(self.scope.nodes[place])[0] for place in nodes.places[1:])

    def in_full(self) -> Sequence[AlikeNodes]:
        """Those that are alike in all that is known of what they read and make."""
        equal = _Equal(True, frozenset(range(len(self.first.input))))
        root = self.root
        if root is not self and equal != self._equal and equal not in self._parts:
            own = {*self.places}
            self._parts[equal] = [item for item in root.in_full() if item.places[0] in own]
        return self._apart(equal)

    def _apart(self, equal: _Equal) -> Sequence[AlikeNodes]:
        found = [self] if equal == self._equal else self._parts.get(equal)
        if found is None:
            groups: dict[Hashable, list[int]] = {}
            if len(self.places) == 1:
                groups[None] = [*self.places]
            else:
                for place in self.places:
                    groups.setdefault(self._around.key(place, *equal), []).append(place)
            found = self._parts[equal] = [
                AlikeNodes(self._around, self.op_type, places, equal, self.root)
                for places in groups.values()
            ]
        return found


class _Surroundings:
    """What is known of the nodes of one scope, and the values around them."""

    def __init__(self, facts: Facts, scope: Scope) -> None:
        self.scope = scope
        self._facts = facts
        self._contents = Contents(facts, scope)

    @cached_property
    def _types(self) -> Sequence[Hashable]:
        """For each node those that read and make values of the same types, where known."""
        return self._facts.groups(self.scope) or [None] * len(self.scope.nodes)

    @cached_property
    def _known(self) -> set[str]:
        """The values that may be known before the run."""
        return maybe_known(self.scope)

    def key(self, place: int, types: bool, constants: Iterable[int]) -> Hashable:
        """Return a key that is equal for nodes of which the same is equal; see `_Equal`."""
        of_types = self._types[place] if types else None
        if types and of_types is None:
            node = self.scope.nodes[place]
            names = node.input[:] + node.output[:]
            of_types = tuple([self._facts.type(self.scope, name) for name in names])
        if not constants:
            return of_types
        inputs = self.scope.node_names.inputs[place] or self.scope.nodes[place].input[:]
        if self._known.isdisjoint(inputs):
            return of_types
        return of_types, *[
            (index, self._contents[inputs[index]])
            for index in constants
            if inputs[index] in self._known
        ]


def alike_nodes(facts: Facts, scope: Scope) -> list[AlikeNodes]:
    """The nodes of the default domain of a scope, those with the same attributes together.

    Args:
        facts: what is known of the model.
        scope: one of its scopes.
    """
    found: dict[Hashable, list[int]] = {}
    given = scope.outputs
    signatures = _signatures(scope)
    rows = zip(
        scope.nodes, signatures, scope.node_names.inputs, scope.node_names.outputs, strict=True
    )
    for place, (node, signature, inputs, output) in enumerate(rows):
        key: Hashable = place
        if signature is not None:
            # Of what the graph gives less is known.
            gives: Hashable = output in given
            if output is None:
                gives = tuple([name in given for name in node.output[:]])
            key = _key(signature, node.input[:] if inputs is None else inputs, gives)
        found.setdefault(key, []).append(place)
    around, calls = _Surroundings(facts, scope), facts.calls
    groups = []
    for places in found.values():
        node = scope.nodes[places[0]]
        if is_default(node.domain) and (not calls.functions or calls.function_of(node) is None):
            groups.append(AlikeNodes(around, scope.op_types[places[0]], places))
    return groups


def _signatures(scope: Scope) -> list[Hashable]:
    """The signatures of a scope's nodes, equal ones the same object; those of constants too."""
    found = [*scope.signatures]
    constants: dict[Hashable, Hashable] = {}
    for place, op_type in enumerate(scope.op_types):
        node = scope.nodes[place]
        if op_type == "Constant" and found[place] is None and node.ByteSize() <= LARGE:
            signature = of_fields(node)
            found[place] = constants.setdefault(signature, signature)
    return found


def _key(signature: Hashable, inputs: Sequence[str], gives: Hashable) -> Hashable:
    """Return what is equal for nodes of equal signatures that read some values twice alike.

    Args:
        signature: what is equal for nodes of equal operators and attributes.
        inputs: the names of what a node reads; those of absent inputs are empty.
        gives: which of what it makes the graph gives.
    """
    given = [name for name in inputs if name]
    if len(given) < 2 or len(given) == len({*given}):
        return id(signature), gives
    return id(signature), gives, *map(given.index, given)
