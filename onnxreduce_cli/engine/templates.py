"""Templates: one node's replacement, reused for the nodes that differ from it in names alone.

Large models repeat a few nodes many times. A step that reads no facts of a node's values (see
`Lookups`) emits the same for all nodes of equal operator and attributes; one that reads only the
types of what a node reads and makes, or elements of constants, emits the same for those where these
are equal as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import Array, Lookups
from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.node_names import UNTOLD
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, Scope

#: Constants of more elements are hardly ever equal.
_SMALL = 64

#: Nodes of which it is asked at once whether they are known to stay as they are.
_BLOCK = 1024


class Template(NamedTuple):
    """The node that replaced another, in which the names of a third can be put.

    Attributes:
        description: what is said of what was done to the node; None where nothing was.
        op_type: the operator of what replaced it.
        kept: how many of the node's inputs, from the first on, are its inputs too.
        inputs: for each further one the node's input at that place, or a constant's name.
        of_shapes: whether it holds for the shapes of the values around the node.
        dropped: the places of the node's inputs that are none of its own.
        constants: `inputs` where all are names; None where some are places.
        given: the number of the node's inputs.
        added: what a node gets that is the same for all, serialised: to read that into a node
            takes a quarter of what adding messages takes.
    """

    description: tuple[str, ...] | None
    op_type: str
    kept: int
    inputs: tuple[int | str, ...]
    dropped: tuple[int, ...]
    of_shapes: bool = False
    constants: tuple[str, ...] | None = None
    given: int = 0
    added: bytes = b""

    @property
    def leaves_alone(self) -> bool:
        """True if there is nothing to be done about a node."""
        return self.description is None and not self.of_shapes

    @property
    def keeps_data_alone(self) -> bool:
        """True if what it is filled with of another node is the first input and names alone."""
        return self.kept <= 1 and self.constants is not None

    @staticmethod
    def of(
        node: NodeProto,
        made: Sequence[NodeProto],
        description: tuple[str, ...] | None,
        of_shapes: bool,
    ) -> Template | None:
        """Return a template of what replaces `node`; None unless that is one node like it."""
        if len(made) != 1 or made[0].output != node.output or node.op_type in GRAPH_OPERATORS:
            return None
        places: dict[str, int | str] = {name: place for place, name in enumerate(node.input)}
        inputs = tuple(places.get(name, name) if name else "" for name in made[0].input)
        kept = sum(1 for _ in takewhile(lambda item: item[0] == item[1], enumerate(inputs)))
        further = inputs[kept:]
        read = {*range(kept), *further}
        dropped = tuple(i for i, name in enumerate(node.input) if name and i not in read)
        op_type = made[0].op_type
        names = tuple(item for item in further if isinstance(item, str))
        constants = names if len(names) == len(further) else None
        added = NodeProto(op_type=op_type, attribute=made[0].attribute, input=constants or ())
        return Template(
            description,
            op_type,
            kept,
            further,
            dropped,
            of_shapes,
            constants,
            len(node.input),
            added.SerializeToString(),
        )

    def reads(self, inputs: Sequence[str]) -> Sequence[str]:
        """What a node reads after it replaced one of some inputs."""
        return (*inputs[: self.kept], *self._further(inputs))

    def _further(self, inputs: Sequence[str]) -> Iterable[str]:
        if self.constants is not None:
            return self.constants
        return [inputs[item] if isinstance(item, int) else item for item in self.inputs]

    def fill(self, nodes: Iterable[NodeProto]) -> None:
        """Turn nodes into those that replace them."""
        kept, added, constants = self.kept, self.added, self.constants
        # An absent input at the end stays where nothing takes its place.
        cut = kept < self.given and bool(self.inputs or self.dropped)
        for node in nodes:
            node.ClearField("attribute")
            further = self._further(node.input[:]) if constants is None else ()
            if cut:
                del node.input[kept:]
            node.MergeFromString(added)
            if further:
                node.input.extend(further)

    def filled(self, node: NodeProto) -> NodeProto:
        """Return the node that replaces another."""
        found = NodeProto()
        found.CopyFrom(node)
        self.fill([found])
        return found


class _Needed(NamedTuple):
    """What the steps of an operator's nodes looked up of the values around them.

    Attributes:
        kinds: whether that were the kinds of what they read and make.
        constants: the places of the inputs of which it was the elements.
        shapes: whether that were the shapes of what they read and make, too.
    """

    kinds: bool = False
    constants: frozenset[int] = frozenset()
    shapes: bool = False


_NOTHING = _Needed()


class _Kinds(dict[str, str | None]):
    """The kinds of values by the names that a scope reads them by, each looked up once."""

    def __init__(self, facts: Facts, scope: Scope) -> None:
        super().__init__()
        self._facts, self._scope = facts, scope

    def __missing__(self, name: str) -> str | None:
        found = self[name] = self._facts.kind(self._scope, name)
        return found


class Contents(dict[str, Hashable]):
    """The elements of constants by the same names: equal keys, equal elements; None for others."""

    def __init__(self, facts: Facts, scope: Scope) -> None:
        super().__init__()
        self._facts, self._scope = facts, scope

    def __missing__(self, name: str) -> Hashable:
        """Look up a value for the first time."""
        array = self._facts.constant(self._scope, name)
        found: Hashable = None
        if array is not None:
            found = name if array.size > _SMALL else _content(array)
        self[name] = found
        return found


class Templates:
    """The templates of one scope's nodes."""

    def __init__(self, facts: Facts, scope: Scope) -> None:
        self._facts, self._scope = facts, scope
        self._kinds = _Kinds(facts, scope)
        self._contents = Contents(facts, scope)
        #: By operator, of nodes that became templates.
        self._needed: dict[str, _Needed] = {}
        self._templates: dict[Hashable, Template] = {}
        #: The same by keys that are sooner made, and tell more.
        self._found: dict[Hashable, Template] = {}
        #: The groups of nodes of which the template says that nothing is to be done.
        self._left: set[Hashable] = set()

    @cached_property
    def _inputs(self) -> Sequence[Sequence[int]]:
        """The numbers of what nodes read, by its place."""
        return self._scope.node_names.input_numbers

    @cached_property
    def _groups(self) -> Sequence[Hashable]:
        """For each node those that read and make values of the same types, where known."""
        return self._facts.groups(self._scope) or [None] * len(self._scope.nodes)

    def to_ask(self, places: Sequence[int]) -> Iterator[int]:
        """Those of some places whose nodes are not known to stay as they are, as ones alike do."""
        left = self._left
        for begin in range(0, len(places), _BLOCK):
            block = places[begin : begin + _BLOCK]
            if left:
                groups = self._groups
                block = [place for place in block if groups[place] not in left]
            yield from block

    def find(
        self, node: NodeProto, op_type: str, signature: Hashable, place: int
    ) -> Template | None:
        """Return the template that a node fits, if there is one.

        Args:
            node: the node.
            op_type: its operator.
            signature: its `Scope.signatures`.
            place: its place among the nodes of the scope.
        """
        needed = self._needed.get(op_type, _NOTHING)
        kin = self._groups[place] if needed.kinds or needed.shapes else signature
        key: Hashable = None
        # Nodes that read the same values after the first input read the same constants.
        if kin is not None and 0 not in needed.constants:
            first, second, third = self._inputs
            data, one, two = first[place], second[place], third[place]
            # One that reads a value twice has no template.
            if data != UNTOLD and data != one and data != two and (not one or one != two):
                found = self._found.get(key := (id(kin), one, two))
                if found is not None:
                    return found
        found = self._templates.get(self._key(node, op_type, signature, place))
        if found is not None and key is not None:
            self._found[key] = found
            if needed.kinds and not needed.constants and found.leaves_alone:
                self._left.add(kin)
        return found

    def add(
        self,
        node: NodeProto,
        op_type: str,
        signature: Hashable,
        place: int,
        lookups: Lookups,
        made: Sequence[NodeProto],
        description: tuple[str, ...] | None,
    ) -> Template | None:
        """Make a template of the nodes that replace a node, where that is possible.

        Args:
            node: the node.
            op_type: its operator.
            signature: its `Scope.signatures`.
            place: its place among the nodes of the scope.
            lookups: what its steps looked up.
            made: the nodes that replace it; none where there is more to it.
            description: what is said of what was done; None where nothing was.
        """
        # Nodes of which keys tell as much ask the same, and so have no template either.
        if not lookups.are_own(node.input[:], node.output[:]):
            return None
        self._need(node, op_type, lookups)
        key = self._key(node, op_type, signature, place)
        of_shapes = bool(lookups.shapes)
        template = None if key is None else Template.of(node, made, description, of_shapes)
        if template is not None:
            self._templates[key] = template
        return template

    def _need(self, node: NodeProto, op_type: str, lookups: Lookups) -> None:
        """Have the keys of an operator's nodes tell what the steps of one of them looked up."""
        needed = self._needed.get(op_type, _NOTHING)
        inputs = node.input[:]
        if lookups.types or lookups.constants:
            places = {inputs.index(name) for name in lookups.constants}
            self._needed[op_type] = _Needed(
                needed.kinds or lookups.types,
                needed.constants | places,
                needed.shapes or bool(lookups.shapes),
            )

    def _key(self, node: NodeProto, op_type: str, signature: Hashable, place: int) -> Hashable:
        """Return a key that is equal for nodes of one template; None where none is possible."""
        needed = self._needed.get(op_type, _NOTHING)
        if signature is None:
            return None
        inputs = node.input[:]
        if len(inputs) > 1 and len(set(inputs)) < len(inputs):
            return None  # A value is read twice: it is ambiguous which of the two a step meant.
        if needed is _NOTHING:
            return signature
        types: Iterable[Hashable] = ()
        if needed.shapes:
            if self._groups[place] is None:
                return None
            types = [self._groups[place]]
        elif needed.kinds:
            types = map(self._kinds.__getitem__, inputs + node.output[:])
        contents = (
            [
                self._contents[name] if place in needed.constants else ""
                for place, name in enumerate(inputs)
            ]
            if needed.constants
            else ()
        )
        return signature, *types, *contents


def _content(array: Array) -> Hashable:
    return array.dtype, array.shape, (*array.flat,) if array.dtype == object else array.tobytes()
