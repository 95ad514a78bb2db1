"""One memo of conversions: a node that is asked what another was asked, and answers the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from onnx import AttributeProto, NodeProto

from onnxreduce_cli.emit.node_facts import Workspace
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.generated import GeneratedOutput
from onnxreduce_cli.model.types.questions import Question, Questions

#: The largest node that is kept, in bytes: a larger one holds weights, and hardly ever has equals.
_LARGEST = 4096


class _KeptNode(NamedTuple):
    """A node that was written, or the node that it was written for.

    Attributes:
        node: the node; None for the node of the site itself.
        inputs: the names of its inputs.
        outputs: the names of its outputs.
        described: whether it has the documentation of the node that it was written for.
        annotated: whether it has that node's metadata.
    """

    node: NodeProto | None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    described: bool = False
    annotated: bool = False


class _Kept(NamedTuple):
    """What took the place of a node.

    Attributes:
        site: the site of that node.
        fresh: the names that were generated, each behind what it was derived from.
        nodes: the nodes that were written.
        origins: by generated name, the index of the node that makes it, and its origin.
        swept: how many further nodes were removed again.
    """

    site: Site
    fresh: Sequence[tuple[str, str]]
    nodes: Sequence[_KeptNode]
    origins: Mapping[str, tuple[int, GeneratedOutput]]
    swept: int


@dataclass(slots=True)
class _Branch:
    """A question, and by its answer what follows: another question, or what was kept."""

    question: Question
    following: dict[Hashable, _Branch | _Kept] = field(default_factory=dict)


class Memo:
    """What took the place of nodes, by operator, attributes, and the answers to what was asked.

    Questions name values by their index among a node's inputs and outputs.
    """

    def __init__(self, facts: Facts) -> None:
        """Begin with nothing; `facts` answer the questions."""
        self._facts = facts
        self._first: dict[Hashable, _Branch | _Kept] = {}

    @staticmethod
    def key(scope: Scope, node: NodeProto, opset: int) -> Hashable:
        """Return the key of a node's operator, attributes and opset; None if it is planned singly.

        The graphs of a node also read values by name.
        """
        if node.op_type in GRAPH_OPERATORS or node.ByteSize() > _LARGEST:
            return None
        names = _names(node)
        return (
            id(scope),
            (node.domain, node.op_type, node.overload, opset, len(node.input)),
            tuple([item.SerializeToString(deterministic=True) for item in node.attribute]),
            tuple([names.index(name) if name else -1 for name in names]),
            (node.HasField("name"), bool(node.name)),
            (node.HasField("doc_string"), bool(node.metadata_props)),
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

    def keep(self, key: Hashable, site: Site, questions: Questions, kept: _Kept) -> None:
        """Keep what took the place of a site's node."""
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
        where.setdefault(step, kept)

    def kept(
        self, site: Site, workspace: Workspace, questions: Questions, swept: int
    ) -> _Kept | None:
        """Return what is to be kept of a converted site; None if it depends on more."""
        node, generated = site.node, self._facts.generated
        more = site.initializers or site.avoided or site.taken_over or site.successors
        if more or site.lookups.non_negative or not questions.complete:
            return None
        own, fresh = _names(node), {name for _, name in questions.fresh}
        values = {"", *own, *fresh}
        texts = (*(site.description or ()), *site.warnings)
        if any(repr(name) in text for text in texts for name in (*values, node.name)):
            return None
        known = values.union(workspace.constants.names)
        nodes: list[_KeptNode] = []
        for made in site.result:
            if made is node:
                nodes.append(_KeptNode(None))
                continue
            inputs, outputs = tuple(made.input), tuple(made.output)
            named = made.name in fresh or made.name in ("", node.name)
            graphs = any(
                item.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS)
                for item in made.attribute
            )
            if (
                graphs
                or not named
                or not known.issuperset(inputs)
                or not values.issuperset(outputs)
            ):
                return None
            copy = NodeProto()
            copy.CopyFrom(made)
            described = made.HasField("doc_string") and made.doc_string == node.doc_string
            annotated = bool(made.metadata_props) and made.metadata_props == node.metadata_props
            nodes.append(_KeptNode(copy, inputs, outputs, described, annotated))
        indices = {id(made): index for index, made in enumerate(site.result)}
        origins = {}
        for name in fresh:
            origin = generated.nodes.get((id(site.scope.root), name))
            index = None if origin is None else indices.get(id(origin.node))
            if origin is not None and index is not None:
                origins[name] = (index, origin)
        return _Kept(site, tuple(questions.fresh), tuple(nodes), origins, swept)

    def write(self, kept: _Kept, site: Site, workspace: Workspace) -> None:
        """Write for a site what was kept of another."""
        node, generated, root = site.node, self._facts.generated, id(site.scope.root)
        names = dict(zip(_names(kept.site.node), _names(node), strict=True))
        fresh = {name: workspace.names.fresh(f"{site.base}_{hint}") for hint, name in kept.fresh}
        names |= fresh
        node_names = {**fresh, kept.site.node.name: node.name}
        result = []
        for item in kept.nodes:
            if item.node is None:
                result.append(node)
                continue
            made = workspace.drafts.node.add()
            made.CopyFrom(item.node)
            if made.name:
                made.name = node_names[made.name]
            made.input[:] = [names.get(name, name) for name in item.inputs]
            made.output[:] = [names.get(name, name) for name in item.outputs]
            if item.described:
                made.doc_string = node.doc_string
            if item.annotated:
                del made.metadata_props[:]
                made.metadata_props.extend(node.metadata_props)
            result.append(made)
        for name, (index, origin) in kept.origins.items():
            key = (root, fresh[name])
            generated.nodes[key] = origin._replace(node=result[index])
        for name, new in fresh.items():
            if (root, name) in generated.types:
                generated.types[root, new] = generated.types[root, name]
        other = kept.site
        site.result, site.description, site.warnings = result, other.description, other.warnings
        known = other.lookups
        site.lookups.note(
            *(names.get(name, name) for name in known.constants), types=known.types, more=known.more
        )


def _names(node: NodeProto) -> list[str]:
    return [*node.input, *node.output]
