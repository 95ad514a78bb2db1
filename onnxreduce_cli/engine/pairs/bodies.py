"""The pair of a site whose node has subgraphs: the node with its subgraphs, before and after.

The nodes in the subgraphs are sites of their own. The replacement of the node around them, such as
Loops for an If, can be run only with its subgraphs as planned.

Subgraphs are cut at a depth: inputs replace the outputs of nodes that nest deeper, which are sites
of their own or stay as they are. So the work of checking all sites does not grow with the size of
the model times the depth of its subgraphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from typing import Any

import numpy.typing as npt
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    helper,
    numpy_helper,
)

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pairs.attribute_values import AttributeValues
from onnxreduce_cli.engine.pairs.names import Renaming, made_values
from onnxreduce_cli.engine.pairs.nodes import RANDOM, refuse_external
from onnxreduce_cli.engine.pairs.pair import UncheckableError
from onnxreduce_cli.engine.pairs.types import type_proto
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph import attributes, ir_version
from onnxreduce_cli.model.graph.dead_values import without_unread
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.edit import Edits, apply_edits
from onnxreduce_cli.model.graph.random_operators import is_random
from onnxreduce_cli.model.graph.scope import Scope, subgraphs, with_inner
from onnxreduce_cli.model.graph.used_values import used_values
from onnxreduce_cli.model.types.facts import Facts

#: How many subgraphs there are at most around a node of a pair.
DEEPEST = 2

#: The opset at which Scan lost its batches.
_UNBATCHED = 9

Array = npt.NDArray[Any]
Initializers = MutableSequence[TensorProto]


def models_with_bodies(
    conversion: Conversion, site: Site, sites: Mapping[int, Site], values: AttributeValues
) -> tuple[ModelProto, ModelProto]:
    """Return two models: of the node with its subgraphs, and of its replacement.

    Values of outer scopes that the subgraphs read become inputs, or constants.

    Args:
        conversion: the conversion that the site is from.
        site: the site.
        sites: all sites of the conversion that are not blocked, by the identity of their nodes.
        values: the values of the function's attributes.

    Raises:
        UncheckableError: it cannot be run on its own.
    """
    facts, scope = conversion.facts, site.scope
    nesting = TruncatedNode(facts, site.node)
    node = values.bound(nesting.node)
    _check_runnable(node, scope)
    replacement, initializers = (
        _Replacement(conversion, sites, nesting, values),
        list[TensorProto](),
    )
    made = replacement.of(site.node, scope, initializers)
    after = [values.bound(item) for item in made]
    own = replacement.constants(after, scope, initializers)
    constants, types = _used_constants_and_types(node, scope, values, nesting)
    for name, dims in _dims_in_body(node, scope.opset or 0).items():
        if name in types and name not in nesting.types:
            _state_dims(types[name], dims)
    unknown = set(used_values(after)).difference(types, constants, own, made_values(after))
    if unknown:
        raise UncheckableError(
            f"its replacement reads {min(unknown)!r}, which the node itself does not read"
        )
    names = Renaming()
    for prefix, found in (
        ("i", [*types, *constants]),
        ("o", node.output),
        ("t", made_values([node])),
        ("c", own),
        ("r", made_values(after)),
    ):
        for name in found:
            names.add(name, prefix)
    outputs = [name for name in node.output if name]
    before = _model([node], names, types, constants, outputs, scope.opset or 0)
    return before, _model(after, names, types, constants | own, outputs, conversion.target)


def _used_constants_and_types(
    node: NodeProto, scope: Scope, values: AttributeValues, nesting: TruncatedNode
) -> tuple[dict[str, Array], dict[str, TypeProto]]:
    """Return the constants that a node reads, and the types of its other inputs, by name.

    Raises:
        UncheckableError: the type of a value is not known.
    """
    constants, types = dict[str, Array](), dict(nesting.types)
    for name in used_values([node]):
        if name in nesting.types:
            continue
        array, known = values.constant(scope, name), values.facts.type(scope, name)
        if array is not None:
            constants[name] = array
        elif known is None:
            raise UncheckableError(f"the type of {name!r} is not known")
        else:
            types[name] = type_proto(known, known.dims)
    return constants, types


def _dims_in_body(node: NodeProto, opset: int) -> dict[str, list[int | None]]:
    """Return the dimensions of a Scan's inputs that its body states, by name.

    The steps of the nodes in the body rely on them.
    """
    body = next((graph for _, graph in subgraphs(node)), None)
    count, axes = (attributes.find(node, name) for name in ("num_scan_inputs", "scan_input_axes"))
    if node.op_type != "Scan" or body is None or count is None:
        return {}
    batched = opset < _UNBATCHED
    given = node.input[1:] if batched else node.input
    states = len(given) - count.i
    found = {}
    for index, (name, formal) in enumerate(zip(given, body.input, strict=False)):
        kind = formal.type.tensor_type
        if not kind.HasField("shape"):
            continue
        dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
        if index >= states:
            axis = 0 if axes is None or batched else axes.ints[index - states]
            dims.insert(axis % (len(dims) + 1), None)
        found[name] = [None, *dims] if batched else dims
    return found


def _state_dims(proto: TypeProto, dims: Sequence[int | None]) -> None:
    """State dimensions of a tensor that are not known, in place."""
    kind = proto.tensor_type
    if not kind.HasField("shape"):
        proto.CopyFrom(helper.make_tensor_type_proto(kind.elem_type, dims))
    elif len(kind.shape.dim) == len(dims):
        for dim, size in zip(kind.shape.dim, dims, strict=True):
            if size is not None and not dim.HasField("dim_value"):
                dim.dim_value = size


def _check_runnable(node: NodeProto, scope: Scope) -> None:
    """Refuse a node that cannot be run on its own, as its subgraphs show."""
    refuse_external(node)
    inner = list(with_inner([node]))
    if any(not is_default(item.domain) for item in inner):
        raise UncheckableError("its subgraphs have nodes of other domains")
    if any(is_random(item, scope.opset, ()) for item in inner):
        raise UncheckableError(RANDOM)


def _model(
    nodes: Sequence[NodeProto],
    names: Renaming,
    types: Mapping[str, TypeProto],
    constants: Mapping[str, Array],
    outputs: Iterable[str],
    opset: int,
) -> ModelProto:
    """Return one model of a pair, with the constants that it reads."""
    read = set(used_values(nodes))
    graph = helper.make_graph(
        [names.node(node, index) for index, node in enumerate(nodes)],
        "site",
        [helper.make_value_info(names[name], proto) for name, proto in types.items()],
        [],
        [
            numpy_helper.from_array(array, names[name])
            for name, array in constants.items()
            if name in read
        ],
    )
    for name in outputs:
        graph.output.add().name = names[name]
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=max(4, ir_version.least_for_opset(opset)),
    )


class _Replacement:
    """The replacement of a node, with the planned replacements in its subgraphs."""

    def __init__(
        self,
        conversion: Conversion,
        sites: Mapping[int, Site],
        nesting: TruncatedNode,
        values: AttributeValues,
    ) -> None:
        self._conversion = conversion
        self._values = values
        self._sites = sites
        self._stand_ins = nesting.stand_ins
        #: The scopes of the new nodes, whose constants they may read.
        self._scopes: list[Scope] = []

    def of(self, node: NodeProto, scope: Scope, initializers: Initializers) -> list[NodeProto]:
        """Return the nodes that replace one; a copy of it if it is not replaced.

        Args:
            node: the node.
            scope: its scope.
            initializers: the initializers that replace it are appended.
        """
        if id(node) in self._stand_ins:
            return self._stand_ins[id(node)]
        holder = GraphProto(node=[node])
        for (_, graph), (_, copy) in zip(subgraphs(node), subgraphs(holder.node[0]), strict=True):
            inner = self._conversion.facts.inner(graph)
            assert inner is not None
            new = [made for item in inner.nodes for made in self.of(item, inner, copy.initializer)]
            kept = without_unread(new, [output.name for output in graph.output])
            del copy.node[:]
            copy.node.extend(kept)
        site = self._sites.get(id(node))
        if site is not None:
            self._scopes.append(scope)
            around, edits = Scope(holder, None, scope.opset, ""), Edits()
            made = (site.result, site.successors, site.taken_over, site.initializers)
            edits.replace(around.nodes[0], *made)
            apply_edits(around, edits)
            initializers.extend(holder.initializer)
        return list(holder.node)

    def constants(
        self, nodes: Sequence[NodeProto], outer: Scope, initializers: Iterable[TensorProto]
    ) -> dict[str, Array]:
        """Return the constants, by name, that the new nodes of a scope read.

        Args:
            nodes: the nodes.
            outer: the scope.
            initializers: the initializers that replace nodes.

        Raises:
            UncheckableError: one is not to be read.
        """
        known = {tensor.name: numpy_helper.to_array(tensor) for tensor in initializers}
        made = set(made_values(nodes))
        read = [name for name in used_values(nodes) if name not in made]
        for scope in self._scopes:
            own = self._conversion.constants(scope)
            known.update((name, own.arrays[name][0]) for name in read if name in own.arrays)
            for name in own.references.keys() & read:
                known[name] = self._values.array(own.references[name])
        for name in read:
            array = self._values.constant(outer, name)
            if name not in known and array is not None:
                known[name] = array
        # In the order of their use, which does not depend on their names.
        return {name: known[name] for name in read if name in known}


class TruncatedNode:
    """A node of a model, cut where more than `DEEPEST` subgraphs nest in it.

    Attributes:
        node: the model's own node if nothing nests deeper, else a cut copy.
        types: the types, by name, of the inputs that replace outputs of nodes that nest deeper.
        stand_ins: the nodes that pass on these inputs, by the identity of the node they replace.
    """

    def __init__(self, facts: Facts, node: NodeProto) -> None:
        """Cut the node.

        Args:
            facts: the types and constants of the model's values.
            node: the node.

        Raises:
            UncheckableError: an output of a node that nests deeper is no tensor, or of unknown
                type.
        """
        self.node = node
        self.types: dict[str, TypeProto] = {}
        self.stand_ins: dict[int, list[NodeProto]] = {}
        self._facts = facts
        levels = _levels(node)
        if any(True for inner in levels[-1] for _ in subgraphs(inner)):
            nodes = [inner for level in levels for inner in level]
            self._taken = {name for inner in nodes for name in (*inner.input, *inner.output)}
            self.node = self._cut(node, 0)

    def _cut(self, node: NodeProto, depth: int) -> NodeProto:
        """Return a cut copy of a node that is nested in `depth` subgraphs."""
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
                self.stand_ins[id(node)] = [*self._values(graph, node)]
                copy.node.extend(self.stand_ins[id(node)])

    def _values(self, graph: GraphProto, node: NodeProto) -> Iterator[NodeProto]:
        """Yield a node for each output of a node, which passes on a new input by its name."""
        scope = self._facts.inner(graph)
        assert scope is not None
        for name in filter(None, node.output):
            known = self._facts.type(scope, name)
            if known is None or not known.elem_type:
                raise UncheckableError(
                    f"more than {DEEPEST} subgraphs nest in it, and the type of {name!r} in the "
                    "innermost is not known"
                )
            given = f"outside{len(self.types)}"
            while given in self._taken:
                given += "_"
            self.types[given] = type_proto(known, known.dims)
            yield NodeProto(op_type="Identity", name=given, input=[given], output=[name])


def _levels(node: NodeProto) -> list[list[NodeProto]]:
    """Return the node, the nodes of its subgraphs, of their subgraphs, and so on to `DEEPEST`."""
    levels = [[node]]
    for _ in range(DEEPEST):
        inner = [
            item for outer in levels[-1] for _, graph in subgraphs(outer) for item in graph.node
        ]
        levels.append(inner)
    return levels
