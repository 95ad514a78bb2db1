"""Nodes that keep a dtype which is changed around them, by Casts.

They are those that the user names, and by rule those whose operator does not take the new dtype. A
value that such a node makes is read by others of them as it is: a Cast between them would lose what
they are kept for. The model's own Casts read it as it is, too, and stay where they make the kept
dtype for such nodes alone.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from onnx import NodeProto, TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.engine.changes import Change
from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.differences import differences
from onnxreduce_cli.engine.passes.interface import cast_node, copy_of
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import ConversionError, UsageError
from onnxreduce_cli.model.graph.domains import LEARNING, MICROSOFT, imported_version, is_default
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import Scope, subgraphs
from onnxreduce_cli.model.graph.values import dtype_name
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.text import did_you_mean, shortened

#: A value: the identity of the scope that defines it, and its name.
_Value = tuple[int, str]


class KeptNode(NamedTuple):
    """A node that keeps the old dtype.

    Attributes:
        scope: its scope.
        node: the node.
        inputs: the places of the inputs that stay of that dtype.
        outputs: the places of the outputs that do.
        why: ``asked``, or the formal inputs and outputs that are of no other dtype.
    """

    scope: Scope
    node: NodeProto
    inputs: frozenset[int]
    outputs: frozenset[int]
    why: str

    @property
    def entirely(self) -> bool:
        """True if its attributes keep the dtype, too."""
        return self.why == _ASKED or bool(self.outputs)


_ASKED, _CAST = "asked", "a Cast to or from what is kept"


#: Operators of com.microsoft that take float alone, as their definitions in ONNX Runtime say. Those
#: of the others that take double have no kernel of it on a CPU.
_IN_FLOAT = re.compile("QLinear|DynamicQuantize|QGemm$")

#: Inputs of which onnx's inference, or the function that defines the operator, takes int64 alone.
_IN_INT64 = {"CenterCropPad": 1, "Pad": 3}


class Reader(NamedTuple):
    """A node that reads a value, its scope, and which of its inputs that is."""

    scope: Scope
    node: NodeProto
    place: int


class Casts(NamedTuple):
    """The Casts around nodes that keep a dtype.

    Attributes:
        changes: the nodes whose inputs or outputs changed.
        raised: what each Cast to the kept dtype makes, by which value it reads.
        lowered: the kept value that each Cast to the new dtype reads, by what it makes.
    """

    changes: tuple[Change, ...]
    raised: Mapping[str, str]
    lowered: Mapping[str, str]


class KeptDtype:
    """Finds the nodes that keep a dtype, and puts Casts around them once the others changed.

    Attributes:
        scopes: the model's scopes.
        nodes: those that keep it, by their identity.
    """

    def __init__(
        self,
        model_input: ConversionInput,
        before: int,
        after: int,
        asked: Collection[str],
        outer: Collection[str] = (),
    ) -> None:
        """Find the nodes, in a model that is not changed yet.

        Args:
            model_input: the model.
            before: the dtype that is replaced.
            after: the one that replaces it.
            asked: operators, and names of nodes.
            outer: inputs and outputs of the model that keep the dtype.

        Raises:
            UsageError: a name is of no operator and of no node of the model.
            ConversionError: a node that is named cannot keep its dtype.
        """
        self.scopes, self._model = model_input.scopes, model_input.model
        self._before, self._after, self._outer = before, after, frozenset(outer)
        self._facts: Facts = model_input.facts
        known = {name for scope in self.scopes for n in scope.nodes for name in (n.op_type, n.name)}
        for name in asked:
            if name not in known:
                raise UsageError(
                    f"--keep-dtype: the model has no operator and no node {shortened(name)}"
                    f"{did_you_mean(name, known)}"
                )
        found = [
            kept
            for scope in self.scopes
            for node in scope.nodes
            if (kept := self._kept(scope, node, _why(node, asked)))
        ]
        self.nodes = {id(kept.node): kept for kept in found}

    def _inferred_in_int64(self, scope: Scope, node: NodeProto) -> Iterator[tuple[str, int, str]]:
        """Yield what onnx infers or computes right in int64 alone, whatever its definition says.

        It knows sizes that are computed from shapes as int64, and wants all that Range reads to be
        of one dtype.
        """
        place = _IN_INT64.get(node.op_type)
        if place is not None and place < len(node.input):
            yield "in", place, "int64 alone is inferred"
        if node.op_type == "Range":
            producers = [scope.producer(name) for name in node.input]
            computed = [item for item in producers if item and item.op_type != "Constant"]
            if any(self._facts.constant(scope, item.output[0]) is not None for item in computed):
                yield from (("in", place, "of sizes") for place in range(len(node.input)))
                yield "out", 0, "of sizes"

    def keep(
        self, scope: Scope, node: NodeProto, why: str, inputs: Collection[int] | None = None
    ) -> None:
        """Let one more node keep the dtype.

        Args:
            scope: its scope.
            node: the node.
            why: why it does, in a few words.
            inputs: the places of the inputs that stay of that dtype; None for all, and all outputs.
        """
        kept = self._kept(scope, node, why)
        assert kept is not None
        if inputs is not None:
            kept = kept._replace(inputs=kept.inputs.intersection(inputs), outputs=frozenset())
        self.nodes[id(node)] = kept

    @cached_property
    def readers(self) -> Mapping[_Value, list[Reader]]:
        """The nodes that read each value; those of no scope are under the identity of None."""
        found = defaultdict[_Value, list[Reader]](list)
        for scope in self.scopes:
            for node in scope.nodes:
                for place, name in enumerate(node.input):
                    if name:
                        reader = Reader(scope, node, place)
                        found[id(scope.resolve(name)), name].append(reader)
        return found

    def is_read(self, scope: Scope, name: str) -> bool:
        """Return whether a value of a scope is read in the new dtype, as most outputs of it are."""
        if name in scope.outputs and not (scope is self.scopes[0] and name in self._outer):
            return True
        return any(map(self.reads_new, self.readers.get((id(scope), name), ())))

    def reads_new(self, reader: Reader) -> bool:
        """Return whether a node reads a value in the new dtype."""
        kept = self.nodes.get(id(reader.node))
        return kept is None or reader.place not in kept.inputs

    def keep_casts(self) -> None:
        """Let Casts stay that lead from the nodes to another dtype, or to them alone."""
        old = f"tensor({dtype_name(self._before)})"
        casts = [
            (scope, node)
            for scope in self.scopes
            for node in scope.nodes
            if node.op_type == "Cast" and is_default(node.domain) and id(node) not in self.nodes
        ]
        for scope, node in reversed(casts):
            made = node.output[0]
            if self._facts.kind(scope, made) == old and not self.is_read(scope, made):
                self.keep(scope, node, _CAST)
        values = set(self._own_values())
        for scope, node in casts:
            name = node.input[0]
            if id(node) not in self.nodes and (id(scope.resolve(name)), name) in values:
                self.keep(scope, node, _CAST, [0])

    def inside(self) -> dict[int, frozenset[str]]:
        """Return by scope the values that the nodes make, or callers give, and they alone read."""
        found = {id(scope): set[str]() for scope in self.scopes}
        for kept in self.nodes.values():
            made = {kept.node.output[place] for place in kept.outputs}
            if kept.scope is self.scopes[0]:
                read = {kept.node.input[place] for place in kept.inputs}
                made |= read & self._outer & kept.scope.inputs
            found[id(kept.scope)] |= {n for n in made if not self.is_read(kept.scope, n)}
        return {owner: frozenset(names) for owner, names in found.items()}

    def _kept(self, scope: Scope, node: NodeProto, why: str) -> KeptNode | None:
        """Return a node that keeps the dtype: for a reason, or if empty by rule; None if none."""
        if why == _ASKED:
            problem = self._problem(scope, node)
            if problem:
                blocked = Blocked(problem, "leave it out of --keep-dtype")
                site = Site(scope, node, blocked=blocked)
                raise ConversionError("dtypes cannot be changed", (site.blocker,))
        fixed = list(self._fixed(scope, node))
        old = f"tensor({dtype_name(self._before)})"
        formal = {(side, place) for side, place, _ in fixed}
        inputs, outputs = (
            frozenset(
                place
                for place, name in enumerate(names)
                if name
                and (why or (side, place) in formal)
                and self._facts.kind(scope, name) == old
            )
            for side, names in (("in", node.input), ("out", node.output))
        )
        if not inputs and not outputs and not why:
            return None
        stay = {"in": inputs, "out": outputs}
        formals = dict.fromkeys(name for side, place, name in fixed if place in stay[side])
        return KeptNode(scope, node, inputs, outputs, why or ", ".join(formals))

    def _fixed(self, scope: Scope, node: NodeProto) -> Iterator[tuple[str, int, str]]:
        """Yield the inputs and outputs of a node that its operator takes in the old dtype only.

        Of integers they are all of those in other domains, whose definitions are not read; of
        quantized operators of com.microsoft all numbers, and of all of them where double is new.
        """
        if is_default(node.domain):
            yield from _fixed(node, scope.opset or 0, self._before, self._after)
            if self._before == TensorProto.INT64:
                yield from self._inferred_in_int64(scope, node)
        elif node.domain == LEARNING and self._before != TensorProto.INT64:
            learned = imported_version(scope.function or self._model, LEARNING)
            yield from _fixed(node, learned or 0, self._before, self._after)
        elif (
            self._before == TensorProto.INT64
            or (
                node.domain == MICROSOFT
                and (self._after == TensorProto.DOUBLE or _IN_FLOAT.match(node.op_type))
            )
        ) and self._facts.calls.function_of(node) is None:
            for side, names in (("in", node.input), ("out", node.output)):
                yield from ((side, place, node.domain) for place in range(len(names)))

    def _problem(self, scope: Scope, node: NodeProto) -> str:
        """Return why a node that is named cannot keep its dtype; empty if it can."""
        if any(subgraphs(node)):
            return "its subgraphs change; name the nodes in them"
        if self._facts.calls.function_of(node) is not None:
            return "it calls a function; name the nodes in it"
        old = f"tensor({dtype_name(self._before)})"
        for name in (*node.input, *node.output):
            kind = self._facts.kind(scope, name) if name else ""
            if kind is None:
                return f"the type of {name!r} is not known; state it in the model's value_info"
            if old in kind and kind != old:
                return f"{name!r} is {kind}, which no Cast takes"
        return ""

    @property
    def line(self) -> str:
        """What is kept, such as ``kept in float: 2 Resize (scales)``; empty if nothing is."""
        nodes = [kept for kept in self.nodes.values() if kept.why != _CAST]
        kinds = Counter((kept.node.op_type, kept.why) for kept in nodes)
        said = [f"{number:,} {op_type} ({why})" for (op_type, why), number in kinds.items()]
        return f"kept in {dtype_name(self._before)}: {', '.join(said)}" if said else ""

    def cast(self, old: Mapping[int, Collection[str]]) -> Casts:
        """Put Casts around the nodes, after the others changed, in place.

        Args:
            old: the values that still are of the old dtype, by the identity of their scope.
        """
        values = self._own_values()
        own = {id(scope): scope for scope in self.scopes}
        read = {(owner, name) for owner, name in values if self.is_read(own[owner], name)}
        assert all(scope.producers is not None for scope in self.scopes)  # Of names as they were.
        names = Names(self.scopes)
        kind = dtype_name(self._before)
        raised: dict[_Value, str] = {
            value: names.fresh(f"{value[1]}_{kind}")
            for value in values
            if value[1] not in old.get(value[0], ())
        }
        upward: dict[str, str] = {}
        downward: dict[str, str] = {}
        changes: list[Change] = []
        # Inner graphs first, as the nodes that hold them are copied.
        for scope in reversed(self.scopes):
            found: list[NodeProto] = []
            made: dict[str, str] = {}
            for node in scope.container.node:
                kept = self.nodes.get(id(node))
                if kept is None:
                    found.append(node)
                    continue
                before = copy_of(node)
                first = list(self._raise(kept, raised, made, old, names))
                last = list(self._lower(kept, raised, read, names))
                if scope is self.scopes[0]:
                    upward.update({item.input[0]: item.output[0] for item in first})
                    downward.update({item.output[0]: item.input[0] for item in last})
                found += [*first, node, *last]
                if first or last:  # Else it only reads a value by another name.
                    changes.append(_change(scope, before, [*first, node, *last]))
            if len(found) > len(scope.container.node):
                copies = [copy_of(node) for node in found]
                del scope.container.node[:]
                scope.container.node.extend(copies)
        return Casts(tuple(changes), upward, downward)

    def _own_values(self) -> list[_Value]:
        """Return the values that the nodes make in the old dtype."""
        return [
            (id(kept.scope), kept.node.output[place])
            for kept in self.nodes.values()
            for place in sorted(kept.outputs)
        ]

    def _raise(
        self,
        kept: KeptNode,
        raised: Mapping[_Value, str],
        made: dict[str, str],
        old: Mapping[int, Collection[str]],
        names: Names,
    ) -> Iterator[NodeProto]:
        """Let a node read values of the old dtype, and yield the Casts that make them."""
        for place in sorted(kept.inputs):
            name = kept.node.input[place]
            owner = id(kept.scope.resolve(name))
            if name in old.get(owner, ()):
                continue
            own = raised.get((owner, name)) or made.get(name)
            if own is None:
                own = made[name] = names.fresh(f"{name}_{dtype_name(self._before)}")
                yield _cast(name, own, self._before, kept.scope, names)
            kept.node.input[place] = own

    def _lower(
        self,
        kept: KeptNode,
        raised: Mapping[_Value, str],
        read: Collection[_Value],
        names: Names,
    ) -> Iterator[NodeProto]:
        """Let a node make values of the old dtype, and yield the Casts to the new one."""
        for place in sorted(kept.outputs):
            name = kept.node.output[place]
            own = raised.get((id(kept.scope), name))
            if own is None:
                continue
            kept.node.output[place] = own
            if (id(kept.scope), name) in read:
                yield _cast(own, name, self._after, kept.scope, names)


def _why(node: NodeProto, asked: Collection[str]) -> str:
    return "" if {node.op_type, node.name}.isdisjoint(asked) else _ASKED


def _cast(before: str, after: str, dtype: int, scope: Scope, names: Names) -> NodeProto:
    """Return a Cast whose name no node has."""
    node = cast_node(before, after, dtype, scope.opset or 0)
    node.name = names.fresh(f"{before}_to_{dtype_name(dtype)}")
    return node


def _fixed(node: NodeProto, opset: int, before: int, after: int) -> Iterator[tuple[str, int, str]]:
    """Yield the inputs and outputs of a node that its operator takes in the old dtype only.

    Args:
        node: the node.
        opset: the opset of its domain that is imported.
        before: the old dtype.
        after: the new one.
    """
    since = schemas.versions(node.op_type, node.domain)
    if not since or since[0] > opset:
        return
    old, new = (f"tensor({dtype_name(item)})" for item in (before, after))
    schema = schemas.schema(node.op_type, opset, node.domain)
    for side, names, formals in (
        ("in", node.input, schema.inputs),
        ("out", node.output, schema.outputs),
    ):
        for place in range(len(names)):
            formal = formals[min(place, len(formals) - 1)]
            if old in formal.types and new not in formal.types:
                yield side, place, formal.name


def _change(scope: Scope, before: NodeProto, result: Sequence[NodeProto]) -> Change:
    opset = scope.opset or 0
    return Change(
        scope.describe(before),
        before.op_type,
        scope.label,
        tuple(differences(before, result, (opset, opset), {})),
        tuple(item.op_type for item in result),
        nodes=len(result),
    )
