"""One memo of conversions: a node that is asked what another was asked, and answers the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from onnx import AttributeProto, GraphProto, NodeProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.node_facts import Workspace
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.questions import Fresh, Questions

#: The largest node that is kept, in bytes: a larger one holds weights, and hardly ever has equals.
_LARGEST = 4096

_FIELDS = frozenset(NodeProto.DESCRIPTOR.fields_by_name)

#: Questions whose answer the type of a value tells.
_OF_TYPE = frozenset({"kind", "rank"})

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


class _Written(NamedTuple):
    """A node that was written for another, in the form in which it is repeated.

    Attributes:
        rest: the node without its names, and without `of_node`.
        name: its name, which may be empty; None for that of the other.
        inputs: its inputs.
        outputs: its outputs.
        of_node: the fields that it has of the other, beside its name.
    """

    rest: NodeProto
    name: str | None
    inputs: Sequence[str]
    outputs: Sequence[str]
    of_node: Sequence[str]


class _Kept(NamedTuple):
    """What became of a node.

    Attributes:
        site: the site of that node.
        names: the names of that node's inputs and outputs.
        written: the nodes that were written; None where that node stays.
        blocked: why it cannot be converted; None if it can.
        fresh: the names that were generated, and those of constants; see `Questions.fresh`.
        swept: how many further nodes were removed again.
    """

    site: Site
    names: Sequence[str]
    written: Sequence[_Written | None]
    blocked: Blocked | None
    fresh: Mapping[str, Fresh]
    swept: int


@dataclass(slots=True)
class _Branch:
    """A question, and by its answer what follows: another question, or what was kept.

    Attributes:
        question: a method of `Facts`.
        indices: the indices of names of the node, which it asks about.
        following: what follows.
    """

    question: str
    indices: Sequence[int]
    following: dict[Hashable, _Branch | _Kept] = field(default_factory=dict)


class Memo:
    """What became of nodes, by operator, attributes, and the answers to what was asked.

    Questions name values by their index among a node's inputs and outputs.
    """

    def __init__(self, facts: Facts) -> None:
        """Begin with nothing; `facts` answer the questions."""
        self._facts = facts
        self._first: dict[Hashable, _Branch | _Kept] = {}

    @staticmethod
    def key(scope: Scope, node: NodeProto, opset: int) -> Hashable:
        """Return the key of a node's operator, attributes and opset; None if it is planned singly.

        The graphs of a node also read values by name. Of a graph's outputs a wrong shape is
        ignored, so these are apart. What attributes refer to is known of one function.
        """
        op_type = node.op_type
        texts = [item.SerializeToString() for item in node.attribute[:]]
        if op_type in GRAPH_OPERATORS or sum(map(len, texts)) > _LARGEST:
            return None
        inputs, outputs = node.input[:], node.output[:]
        names = inputs + outputs
        indices = _indices(names)
        function = scope.function
        refers = function is not None and any(item.ref_attr_name for item in node.attribute[:])
        return (
            # What nodes of a function are written as, of main graphs, and of graphs within.
            (scope.opset, function is None, scope.parent is None, id(function) if refers else None),
            (node.domain, op_type, node.overload, opset, len(inputs)),
            tuple(texts),
            tuple([indices[name] if name else -1 for name in names]),
            tuple([name in scope.outputs for name in outputs]),
            (node.HasField("name"), bool(node.name)),
            (node.HasField("doc_string"), bool(node.metadata_props)),
            tuple([item.SerializeToString() for item in node.device_configurations[:]]),
        )

    def find(self, key: Hashable, scope: Scope, node: NodeProto) -> _Kept | None:
        """Ask what equal nodes were asked; return what was kept of one that answered the same."""
        found = self._first.get(key)
        names, facts = _names(node), self._facts
        while isinstance(found, _Branch):
            asked = [names[index] for index in found.indices]
            found = found.following.get(facts.answer_key(scope, found.question, asked))
        return found

    def keep(
        self,
        key: Hashable,
        site: Site,
        questions: Questions,
        swept: int,
    ) -> None:
        """Keep what became of a site's node, unless that depends on more than was asked."""
        if not questions.complete or not _is_whole(site, questions):
            return
        names = _names(site.node)
        indices = _indices(names)
        where, step = self._first, key
        for (question, asked), answer in questions.answers.items():
            if not indices.keys() >= {*asked}:
                return
            if question in _OF_TYPE and ("type", asked) in questions.answers:
                continue
            own = _Branch(question, [indices[name] for name in asked])
            branch = where.setdefault(step, own)
            if not isinstance(branch, _Branch):
                return
            if (branch.question, branch.indices) != (question, own.indices):
                return
            where, step = branch.following, answer
        node = site.node
        written = [None if made is node else _written(made, node) for made in site.result]
        kept = _Kept(site, names, written, site.blocked, questions.fresh, swept)
        where.setdefault(step, kept)

    def write(self, kept: _Kept, site: Site, workspace: Workspace) -> None:
        """Write for a site what was kept of another.

        Raises:
            Blocked: the other is blocked.
        """
        other, known = kept.site, kept.site.lookups
        site.is_of_finite, site.is_sound, site.equal = other.is_of_finite, True, other
        site.lookups.steps, site.lookups.reached = known.steps, known.reached
        site.lookups.initializers = known.initializers
        if other.stays and not other.is_reported:
            site.result = [site.node]
            site.lookups.note(types=known.types, more=known.more)
            return
        fresh = {
            name: workspace.names.fresh(f"{site.base}_{hint}")
            if constant is None
            else workspace.constant(site.scope, site.base, hint, *constant)
            for name, (hint, constant) in kept.fresh.items()
        }
        names = dict(zip(kept.names, _names(site.node), strict=True)) | fresh
        site.result = [*_repeated(kept, site.node, names, workspace.drafts)]
        made = {id(old): new for old, new in zip(other.result, site.result, strict=True)}
        self._facts.generated.repeat(site.scope, other.scope, fresh, made)
        site.description, site.warnings, site.avoided = (
            other.description,
            other.warnings,
            other.avoided,
        )
        site.lookups.note(
            *(names.get(name, name) for name in known.constants), types=known.types, more=known.more
        )
        if kept.blocked is not None:
            raise kept.blocked.of_equal(names)


def _written(made: NodeProto, first: NodeProto) -> _Written:
    """Return a node that was written for another, in the form in which it is repeated."""
    of_node = []
    # A step may write an empty text where the other has none.
    if first.HasField("doc_string") and made.HasField("doc_string"):
        of_node += ["doc_string"] if made.doc_string == first.doc_string else []
    if made.metadata_props and made.metadata_props == first.metadata_props:
        of_node.append("metadata_props")
    rest = NodeProto()
    rest.CopyFrom(made)
    for cleared in ("input", "output", *(["name"] if made.name else []), *of_node):
        rest.ClearField(cleared)
    name = None if made.name and made.name == first.name else made.name
    return _Written(rest, name, made.input[:], made.output[:], tuple(of_node))


def _texts(node: NodeProto, fields: Sequence[str]) -> NodeProto:
    """Return a node that has some fields of another alone."""
    found = NodeProto()
    found.CopyFrom(node)
    for other in _FIELDS.difference(fields):
        found.ClearField(other)
    found.DiscardUnknownFields()
    return found


def _repeated(
    kept: _Kept, node: NodeProto, names: Mapping[str, str], drafts: GraphProto
) -> Iterator[NodeProto]:
    """Yield for a node what equals the nodes that were written for another."""
    texts: dict[Sequence[str], NodeProto] = {}
    for written in kept.written:
        if written is None:
            yield node
            continue
        new = drafts.node.add()
        new.CopyFrom(written.rest)
        if written.of_node:
            if written.of_node not in texts:
                texts[written.of_node] = _texts(node, written.of_node)
            new.MergeFrom(texts[written.of_node])
        if written.name != "":
            new.name = node.name if written.name is None else names[written.name]
        new.input.extend([names.get(name, name) for name in written.inputs])
        new.output.extend([names[name] if name else "" for name in written.outputs])
        yield new


def _is_whole(site: Site, questions: Questions) -> bool:
    """Return whether what became of a node can be written for others, with their names."""
    if site.initializers or site.taken_over or site.successors or site.lookups.non_negative:
        return False
    node, fresh = site.node, questions.fresh
    own = {*_names(node), *fresh}
    texts = [*(site.description or ()), *site.warnings, *(item.what for item in site.avoided)]
    if site.blocked is not None:
        texts += site.blocked.texts_beside_name
    if any(repr(name) in text for text in texts for name in (*own, node.name)):
        return False
    own.add("")
    return all(
        (made.name in fresh or made.name in ("", node.name))
        and own.issuperset(made.input)
        and own.issuperset(made.output)
        and not any(item.type in _GRAPHS for item in made.attribute)
        for made in site.result
        if made is not node
    )


def _names(node: NodeProto) -> list[str]:
    return node.input[:] + node.output[:]


def _indices(names: Sequence[str]) -> dict[str, int]:
    """Return the first index of each name: a node may have thousands."""
    return dict(zip(reversed(names), range(len(names) - 1, -1, -1), strict=True))
