"""One memo of conversions: a node that is asked what another was asked, and answers the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from onnx import AttributeProto, NodeProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.node_facts import Workspace
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.questions import Question, Questions

#: The largest node that is kept, in bytes: a larger one holds weights, and hardly ever has equals.
_LARGEST = 4096

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


class _Kept(NamedTuple):
    """What became of a node.

    Attributes:
        site: the site of that node, with the nodes that were written.
        blocked: why it cannot be converted; None if it can.
        fresh: the names that were generated, each behind what it was derived from.
        swept: how many further nodes were removed again.
    """

    site: Site
    blocked: Blocked | None
    fresh: Sequence[tuple[str, str]]
    swept: int


@dataclass(slots=True)
class _Branch:
    """A question, and by its answer what follows: another question, or what was kept."""

    question: Question
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
        ignored, so these are apart.
        """
        if node.op_type in GRAPH_OPERATORS or node.ByteSize() > _LARGEST:
            return None
        names = _names(node)
        return (
            id(scope),
            (node.domain, node.op_type, node.overload, opset, len(node.input)),
            tuple([item.SerializeToString(deterministic=True) for item in node.attribute]),
            tuple([names.index(name) if name else -1 for name in names]),
            tuple([name in scope.outputs for name in node.output]),
            (node.HasField("name"), bool(node.name)),
            (node.HasField("doc_string"), bool(node.metadata_props)),
            tuple([item.SerializeToString() for item in node.device_configurations]),
        )

    def find(self, key: Hashable, node: NodeProto, questions: Questions) -> _Kept | None:
        """Ask what equal nodes were asked; return what was kept of one that answered the same."""
        found = self._first.get(key)
        names = _names(node)
        while isinstance(found, _Branch):
            question, places = found.question
            asked = tuple([names[int(place)] for place in places])
            getattr(self._facts, question)(questions.scope, *asked)
            found = found.following.get(questions.answers.get((question, asked)))
        return found if questions.complete else None

    def keep(
        self,
        key: Hashable,
        site: Site,
        workspace: Workspace,
        questions: Questions,
        swept: int,
    ) -> None:
        """Keep what became of a site's node, unless that depends on more than was asked."""
        if not questions.complete or not _is_whole(site, workspace, questions):
            return
        names = _names(site.node)
        where, step = self._first, key
        for (question, asked), answer in questions.answers.items():
            if not {*asked} <= {*names}:
                return
            places = tuple([str(names.index(name)) for name in asked])
            branch = where.setdefault(step, _Branch((question, places)))
            if not isinstance(branch, _Branch) or branch.question != (question, places):
                return
            where, step = branch.following, answer
        where.setdefault(step, _Kept(site, site.blocked, tuple(questions.fresh), swept))

    def write(self, kept: _Kept, site: Site, workspace: Workspace) -> None:
        """Write for a site what was kept of another.

        Raises:
            Blocked: the other is blocked.
        """
        other, node = kept.site, site.node
        fresh = {name: workspace.names.fresh(f"{site.base}_{hint}") for hint, name in kept.fresh}
        names = dict(zip(_names(other.node), _names(node), strict=True)) | fresh
        made = {id(item): _repeated(item, other, site, names, workspace) for item in other.result}
        self._facts.generated.repeat(site.scope, fresh, made)
        site.result = [*made.values()]
        site.description, site.warnings, site.avoided = (
            other.description,
            other.warnings,
            other.avoided,
        )
        site.is_of_finite, site.is_sound, site.equal = other.is_of_finite, True, other
        known = other.lookups
        site.lookups.note(
            *(names.get(name, name) for name in known.constants), types=known.types, more=known.more
        )
        if kept.blocked is not None:
            raise kept.blocked.of_equal(names)


def _repeated(
    made: NodeProto, other: Site, site: Site, names: Mapping[str, str], workspace: Workspace
) -> NodeProto:
    """Return for a site what equals a node that was written for another."""
    node, first = site.node, other.node
    if made is first:
        return node
    new = workspace.drafts.node.add()
    new.CopyFrom(made)
    if made.name:
        new.name = node.name if made.name == first.name else names[made.name]
    new.input[:] = [names.get(name, name) for name in made.input]
    new.output[:] = [names[name] if name else "" for name in made.output]
    if made.HasField("doc_string") and made.doc_string == first.doc_string:
        new.doc_string = node.doc_string
    if made.metadata_props and made.metadata_props == first.metadata_props:
        del new.metadata_props[:]
        new.metadata_props.extend(node.metadata_props)
    return new


def _is_whole(site: Site, workspace: Workspace, questions: Questions) -> bool:
    """Return whether what became of a node can be written for others, with their names."""
    if site.initializers or site.taken_over or site.successors or site.lookups.non_negative:
        return False
    node, fresh = site.node, {name for _, name in questions.fresh}
    own = {*_names(node), *fresh}
    texts = [*(site.description or ()), *site.warnings, *(item.what for item in site.avoided)]
    if site.blocked is not None:
        texts += site.blocked.texts_beside_name
    if any(repr(name) in text for text in texts for name in (*own, node.name)):
        return False
    own.add("")
    known = own.union(workspace.constants.names)
    return all(
        (made.name in fresh or made.name in ("", node.name))
        and known.issuperset(made.input)
        and own.issuperset(made.output)
        and not any(item.type in _GRAPHS for item in made.attribute)
        for made in site.result
        if made is not node
    )


def _names(node: NodeProto) -> list[str]:
    return [*node.input, *node.output]
