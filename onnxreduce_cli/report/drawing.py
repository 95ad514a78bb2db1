"""What pages show of models: all nodes as rows, and each distinct change as two small graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from onnx import AttributeProto, ModelProto, NodeProto

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.inspection import Inspection
from onnxreduce_cli.engine.runtime_reach import runtimes_taking
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.scope import Scope, scopes
from onnxreduce_cli.text import as_text, count, shortened
from onnxreduce_cli.verification.sites.report import SiteReport

#: More changes than these are not drawn, nor more nodes of one.
DRAWN, NODES = 200, 60

#: How many nodes around a change are drawn, and how far from it.
_AROUND, _HOPS = 16, 2

#: Constants of more elements are not shown.
_ELEMENTS = 8

#: The numbers of an attribute that are listed at most.
_LISTED = 20

Part = Literal["old", "new", "around"]


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node of a drawing.

    Attributes:
        name: its name, or a description by its first output.
        op_type: its operator.
        part: whether it goes, is new, or stands around what changes.
        inputs: the values that it reads; empty for what is left out.
        outputs: the values that it gives.
        attributes: its attributes as text.
    """

    name: str
    op_type: str
    part: Part
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A change as two graphs.

    Attributes:
        node: the first such node's name, or a description by its first output.
        op_type: its operator.
        scope: where it is; empty for the main graph.
        before: the nodes as they were.
        after: what took their place.
        constants: small constants that they read, by name, as text.
        left_out: how many nodes are too many to draw.
        titles: what stands above either side.
    """

    node: str
    op_type: str
    scope: str
    before: tuple[DrawnNode, ...]
    after: tuple[DrawnNode, ...]
    constants: dict[str, str]
    left_out: int = 0
    titles: tuple[str, str] = ("before", "after")


@dataclass(frozen=True, slots=True)
class Picture:
    """A model as a page shows it.

    Attributes:
        nodes: a row for each: the scope, the name space that its exporter noted, the name, the
            operator, the inputs, the outputs, and what became of it; empty for nothing.
        drawings: each distinct change.
        runtimes: the versions of runtimes that take the model as it will be, and get nothing wrong,
            by their names; empty for all versions of one.
    """

    nodes: tuple[tuple[str, str, str, str, str, str, str], ...]
    drawings: tuple[Drawing, ...] = ()
    runtimes: dict[str, str] = field(default_factory=dict)


def inspection_picture(found: Inspection, model: ModelProto) -> Picture:
    """A model, with what some node is in the way of."""
    marks: dict[tuple[str, str], str] = {}
    for opset, blockers in found.reach.items():
        for item in blockers:
            marks[item.scope, item.node] = f"blocks at opset {opset}: {item.reason}"
    return Picture(tuple(rows(scopes(model), marks)))


def rows(
    found: Iterable[Scope], marks: Mapping[tuple[str, str], str]
) -> Iterator[tuple[str, str, str, str, str, str, str]]:
    """The rows of all nodes of some scopes, as a `Picture` has them, marked by scope and name."""
    for scope in found:
        for node in scope.nodes:
            name = scope.describe(node)
            mark = marks.get((scope.label, name), "")
            inputs, outputs = ", ".join(node.input), ", ".join(node.output)
            yield scope.label, _namespace(node), name, node.op_type, inputs, outputs, mark


#: Where exporters note the module that a node is of: PyTorch's own, and tools that follow it.
_NAMESPACES = ("namespace", "pkg.torch.onnx.namespace")


def _namespace(node: NodeProto) -> str:
    """``model/layers.0/attention``: the place of a node in its source; empty if not noted."""
    for entry in node.metadata_props:
        if entry.key in _NAMESPACES:
            parts = [part.split(":")[0].strip() for part in as_text(entry.value).split("/")]
            return "/".join(filter(None, parts))
    return ""


def conversion_picture(conversion: Conversion, checked: SiteReport | None) -> Picture:
    """A model that is to be converted, before it is: its nodes, and what becomes of them."""
    plan = conversion.plan()
    marks = {(item.scope, item.node): item.summary for item in plan.changes}
    marks |= {(item.scope, item.node): f"blocks: {item.reason}" for item in plan.blockers}
    nodes = tuple(rows(conversion.source_scopes, marks))
    places = Places()
    chosen = list(_distinct(conversion, checked))[:DRAWN]
    drawings = tuple(_drawn(conversion, site, places) for site in chosen)
    return Picture(nodes, drawings, runtimes_taking(conversion))


def _distinct(conversion: Conversion, checked: SiteReport | None) -> Iterator[Site]:
    """One site of each kind: those that were checked, else those that differ in what is said."""
    found = [site for site in conversion.sites if site.blocked is None]
    sites = [site for site in found if site.description is not None]
    if checked is not None:
        own = {
            (site.scope.label, site.scope.describe(site.node)): site for site in conversion.sites
        }
        places = ((item.scope, item.node) for item in checked.each)
        yield from (own[place] for place in places if place in own)
        return
    seen = set()
    for site in sites:
        key = site.node.op_type, site.operators, site.description
        if key not in seen:
            seen.add(key)
            yield site


class Places:
    """Who makes and who reads the values of scopes, each looked up once."""

    def __init__(self) -> None:
        self._readers: dict[int, dict[str, list[NodeProto]]] = {}

    def around(self, scope: Scope, nodes: Sequence[NodeProto]) -> list[NodeProto]:
        """The nodes at most two hops from some, in the graph's order."""
        if id(scope) not in self._readers:
            readers: dict[str, list[NodeProto]] = {}
            for node in scope.nodes:
                for name in node.input:
                    readers.setdefault(name, []).append(node)
            self._readers[id(scope)] = readers
        readers, producers = self._readers[id(scope)], scope.producers
        found = {id(node): node for node in nodes}
        edge = list(nodes)
        for _ in range(_HOPS):
            beside = [producers.get(name) for node in edge for name in node.input]
            beside += [
                item for node in edge for name in node.output for item in readers.get(name, ())
            ]
            edge = [node for node in beside if node is not None and id(node) not in found]
            edge = list({id(node): node for node in edge}.values())[: _AROUND // _HOPS]
            found |= {id(node): node for node in edge}
        for node in nodes:
            del found[id(node)]
        return list(found.values())


def _drawn(conversion: Conversion, site: Site, places: Places) -> Drawing:
    old = [*site.absorbed, site.node]
    beside = places.around(site.scope, old)
    made = conversion.constants(site.scope).arrays
    constants: dict[str, str] = {}
    for node in (*beside, *old, *site.result):
        for name in node.input:
            array = made[name][0] if name in made else conversion.facts.constant(site.scope, name)
            if array is not None:
                constants[name] = array_text(array)
    return Drawing(
        site.scope.describe(site.node),
        site.node.op_type,
        site.scope.label,
        *sides(beside, old, site.result),
        constants,
        max(0, len(site.result) - NODES),
    )


def sides(
    beside: Sequence[NodeProto], old: Sequence[NodeProto], new: Sequence[NodeProto]
) -> tuple[tuple[DrawnNode, ...], tuple[DrawnNode, ...]]:
    """The nodes of both sides of a `Drawing`, of which those in `beside` are on either."""
    stays = tuple(drawn_node(node, "around") for node in beside)
    before = (*stays, *(drawn_node(node, "old") for node in old[:NODES]))
    return before, (*stays, *(drawn_node(node, "new") for node in new[:NODES]))


def drawn_node(node: NodeProto, part: Part) -> DrawnNode:
    """A node as drawings have it."""
    name = node.name or next((f"making {name!r}" for name in node.output if name), "")
    texts = {item.name: _attribute_text(item) for item in node.attribute}
    return DrawnNode(name, node.op_type, part, tuple(node.input), tuple(node.output), texts)


def _attribute_text(item: AttributeProto) -> str:
    """An attribute's value in a few words."""
    if item.ref_attr_name:
        return f"@{item.ref_attr_name}"
    match item.type:
        case AttributeProto.FLOAT:
            return f"{item.f:.6g}"
        case AttributeProto.INT:
            return str(item.i)
        case AttributeProto.STRING:
            return shortened(repr(item.s.decode(errors="replace")), 40)
        case AttributeProto.INTS:
            return _list_text(item.ints)
        case AttributeProto.FLOATS:
            return _list_text([float(f"{value:.6g}") for value in item.floats])
        case AttributeProto.GRAPH:
            return count(len(item.g.node), "node")
        case AttributeProto.TENSOR:
            return f"tensor{list(item.t.dims)}"
    return AttributeProto.AttributeType.Name(item.type).lower()


def _list_text(values: Sequence[float]) -> str:
    return shortened(str([*values]), 40) if len(values) <= _LISTED else f"{len(values)} numbers"


def array_text(array: Any) -> str:
    """A constant in a few words: its values, or its dtype and shape where they are many."""
    if array.size > _ELEMENTS:
        return f"{array.dtype.name}{list(array.shape)}"
    return shortened(str(array.tolist()), 40)
