"""A site whose node has graphs within it, as two small models: the node with what these read.

The nodes in the graphs are sites of their own, which are checked each. What becomes of the node
around them, such as an If that becomes Loops, shows only with them: so it is converted again.

A node in graphs in graphs is cut at a depth: what nests deeper gives values from outside instead.
It is a site of its own, or stays as it is. So the work of checking all sites of a model does not
grow with its size times the depth of its graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TypeProto,
    helper,
    numpy_helper,
)

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pairs.names import Renaming, made_values
from onnxreduce_cli.engine.pairs.nodes import RANDOM, bound, refuse_external
from onnxreduce_cli.engine.pairs.pair import UncheckableError
from onnxreduce_cli.engine.pairs.types import type_proto
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import OnnxreduceError
from onnxreduce_cli.model import ir_version
from onnxreduce_cli.model.conversion_facts import ConversionFacts
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.random_operators import is_random
from onnxreduce_cli.model.scope import subgraphs, with_inner
from onnxreduce_cli.model.used_values import used_values

#: How many graphs there are at most around a node within one that is checked.
DEEPEST = 2

#: By models of a node, and the operators that replace it, what conversions made of them.
Converted = dict[tuple[bytes, tuple[str, ...]], ModelProto]


def models_with_bodies(
    conversion: Conversion, site: Site, converted: Converted
) -> tuple[ModelProto, ModelProto]:
    """The node on its own, and what a conversion makes of that.

    What its graphs read of the graph around it are inputs, or constants.

    Args:
        conversion: the conversion that the site is from.
        site: the site.
        converted: the models that were converted before; this one is added.

    Raises:
        UncheckableError: it cannot be run on its own, or something else replaces it there.
    """
    facts, scope = conversion.facts, site.scope
    nesting = Nesting(facts, site.node)
    node = bound(facts.calls, scope, nesting.node)
    refuse_external(node)
    inner = list(with_inner([node]))
    if any(not is_default(item.domain) for item in inner):
        raise UncheckableError("its subgraphs have nodes of other domains")
    if any(is_random(item, scope.opset, ()) for item in inner):
        raise UncheckableError(RANDOM)
    constants, types = dict[str, npt.NDArray[Any]](), dict(nesting.types)
    for name in used_values([node]):
        if name in nesting.types:
            continue
        array, known = facts.constant(scope, name), facts.type(scope, name)
        if array is not None:
            constants[name] = array
        elif known is None:
            raise UncheckableError(f"the type of {name!r} is not known")
        else:
            types[name] = type_proto(known, known.dims)
    before = _model(node, types, constants, scope.opset or 0)
    key = before.SerializeToString(deterministic=True), site.operators
    if key not in converted:
        converted[key] = _converted(before, conversion, site)
    return before, converted[key]


def _model(
    node: NodeProto,
    types: Mapping[str, TypeProto],
    constants: Mapping[str, npt.NDArray[Any]],
    opset: int,
) -> ModelProto:
    """A model of one node, by names that do not depend on the model that it is from."""
    names = Renaming()
    for prefix, found in (
        ("i", [*types, *constants]),
        ("o", node.output),
        ("t", made_values([node])),
    ):
        for name in found:
            names.add(name, prefix)
    graph = helper.make_graph(
        [names.node(node, 0)],
        "site",
        [helper.make_value_info(names[name], proto) for name, proto in types.items()],
        [],
        [numpy_helper.from_array(array, names[name]) for name, array in constants.items()],
    )
    for name in node.output:
        if name:
            graph.output.add().name = names[name]
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=max(4, ir_version.least_for_opset(opset)),
    )


def _converted(before: ModelProto, conversion: Conversion, site: Site) -> ModelProto:
    """The model of the node at the target, if its node becomes there what the site becomes."""
    after = ModelProto()
    after.CopyFrom(before)
    try:
        converted = Conversion(after, conversion.target, target_ir_version=conversion.ir_version)
        if _replacement(converted.sites, before) != site.operators:
            raise UncheckableError("on its own something else replaces it")
        converted.apply()
    except OnnxreduceError as error:
        raise UncheckableError(f"on its own it cannot be converted: {error}") from error
    return after


def _replacement(sites: Sequence[Site], before: ModelProto) -> tuple[str, ...]:
    """The operators that replace the only node of a model's graph; empty if it stays."""
    outputs = list(before.graph.node[0].output)
    return next((site.operators for site in sites if list(site.node.output) == outputs), ())


class Nesting:
    """A node of a model, cut where more than `DEEPEST` graphs nest in it.

    Attributes:
        node: the model's own where nothing nests deeper, else a copy.
        types: by name those of the values in place of what nodes that nest deeper give.
    """

    def __init__(self, facts: ConversionFacts, node: NodeProto) -> None:
        """Cut it.

        Args:
            facts: what is known of the values of the model.
            node: the node.

        Raises:
            UncheckableError: what a node gives that nests deeper is no tensor, or of unknown type.
        """
        self.node = node
        self.types: dict[str, TypeProto] = {}
        self._facts = facts
        levels = _levels(node)
        if any(True for inner in levels[-1] for _ in subgraphs(inner)):
            nodes = [inner for level in levels for inner in level]
            self._taken = {name for inner in nodes for name in (*inner.input, *inner.output)}
            self.node = self._cut(node, 0)

    def _cut(self, node: NodeProto, depth: int) -> NodeProto:
        """A copy of a node that has `depth` graphs around it."""
        copy = NodeProto(op_type=node.op_type, name=node.name, domain=node.domain)
        copy.input.extend(node.input)
        copy.output.extend(node.output)
        for attribute in node.attribute:
            if attribute.type != AttributeProto.GRAPH:
                copy.attribute.append(attribute)
            else:
                new = copy.attribute.add(name=attribute.name, type=attribute.type)
                self._cut_graph(attribute.g, new.g, depth + 1)
        return copy

    def _cut_graph(self, graph: GraphProto, copy: GraphProto, depth: int) -> None:
        copy.name = graph.name
        copy.input.extend(graph.input)
        copy.output.extend(graph.output)
        copy.initializer.extend(graph.initializer)
        copy.sparse_initializer.extend(graph.sparse_initializer)
        copy.value_info.extend(graph.value_info)
        for node in graph.node:
            if not any(True for _ in subgraphs(node)):
                copy.node.append(node)
            elif depth < DEEPEST:
                copy.node.append(self._cut(node, depth))
            else:
                copy.node.extend(self._instead(graph, node))

    def _instead(self, graph: GraphProto, node: NodeProto) -> Iterator[NodeProto]:
        """Nodes that give values from outside under the names of what a node in a graph gives."""
        scope = self._facts.model.inner(graph)
        assert scope is not None
        for name in filter(None, node.output):
            known = self._facts.type(scope, name)
            if known is None or not known.elem_type:
                raise UncheckableError(
                    f"more than {DEEPEST} graphs nest in it, and of what type {name!r} is in the "
                    "innermost is not known"
                )
            given = f"outside{len(self.types)}"
            while given in self._taken:
                given += "_"
            self.types[given] = type_proto(known, known.dims)
            yield NodeProto(op_type="Identity", name=given, input=[given], output=[name])


def _levels(node: NodeProto) -> list[list[NodeProto]]:
    """The node, the nodes of its graphs, those of theirs, and so on to `DEEPEST`."""
    levels = [[node]]
    for _ in range(DEEPEST):
        inner = [
            item for outer in levels[-1] for _, graph in subgraphs(outer) for item in graph.node
        ]
        levels.append(inner)
    return levels
