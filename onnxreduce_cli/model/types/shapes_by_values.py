"""Shapes that follow from values, written into a copy of a graph for a second inference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

import onnx
from onnx import GraphProto, NodeProto, ValueInfoProto, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph.calls import Calls
from onnxreduce_cli.model.graph.domains import DEFAULT_DOMAINS, is_default
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import Dims, ValueType
from onnxreduce_cli.model.types import placeholders
from onnxreduce_cli.model.types.constants import KnownConstants

#: Operators whose output's shape follows from the values of inputs.
SHAPED_BY_VALUES = frozenset(
    {
        "CenterCropPad",
        "ConstantOfShape",
        "Expand",
        "OneHot",
        "Pad",
        *schemas.REDUCE,
        "Reshape",
        "Resize",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "TopK",
        "Unsqueeze",
        "Upsample",
    }
)


def candidate_indices(scope: Scope) -> list[int]:
    """Return the indices of nodes whose shapes may follow from values or be known by rank."""
    shaped = _shaped_at(scope.opset or 0)
    return [
        index
        for index, (op_type, node) in enumerate(zip(scope.op_types, scope.nodes, strict=True))
        if op_type in shaped or node.domain not in DEFAULT_DOMAINS
    ]


@cache
def _shaped_at(opset: int) -> frozenset[str]:
    # The gate has checked no node whose operator its opset lacks.
    return frozenset(name for name in SHAPED_BY_VALUES if schemas.exists(name, opset))


def infos_by_name(graph: GraphProto) -> defaultdict[str, list[ValueInfoProto]]:
    """Return the outputs and value_info of a graph by name."""
    found: defaultdict[str, list[ValueInfoProto]] = defaultdict(list)
    for info in (*graph.value_info, *graph.output):
        found[info.name].append(info)
    return found


class StatedShapes:
    """Writes certain shapes of a graph into a copy of it.

    Args:
        known: types and constants of the model's values.
        calls: the calls of the model's functions.
        scope: the graph.
        inferred: the types inferred so far, by name.
        twin: the copy of the graph.
    """

    def __init__(
        self,
        known: KnownConstants,
        calls: Calls,
        scope: Scope,
        inferred: Mapping[str, ValueType],
        twin: Scope,
    ) -> None:
        assert isinstance(twin.container, GraphProto)
        self._known = known
        self._calls = calls
        self._scope = scope
        self._inferred = inferred
        self._twin = twin
        self._graph = twin.container
        self._infos = infos_by_name(twin.container)

    def state(self, index: int) -> bool:
        """Write certain shapes of the outputs of a node into the copy; return whether any was."""
        node, copied = self._scope.nodes[index], self._twin.nodes[index]
        joined_before = copied.op_type != node.op_type
        if joined_before or self._calls.function_of(node) is not None:
            return False
        if not is_default(node.domain):
            return self._state_shapes(node)
        if self._shape_is_known(node):
            return False
        if self._join_groups(node, copied):
            return True
        return self._state_shapes(node) | self._state_inputs(index, before=False)

    def state_before(self, index: int) -> bool:
        """Do that before any inference, for what inference would not compute by itself."""
        node = self._scope.nodes[index]
        if not is_default(node.domain) or self._calls.function_of(node) is not None:
            return False
        return self._state_inputs(index, before=True)

    def _join_groups(self, node: NodeProto, copied: NodeProto) -> bool:
        """Replace the copy of the last node of a group normalization by a Cast of the data.

        Exporters write GroupNormalization as an InstanceNormalization between two Reshapes, the
        second to the Shape of the data. Several of them may follow each other.
        """
        normal, shape = ([*map(self._scope.producers.get, node.input), None, None])[:2]
        if node.op_type != "Reshape" or normal is None or shape is None:
            return False
        if shape.op_type != "Shape" or not shape.input or shape.attribute:
            return False
        groups = self._scope.producers.get(normal.input[0]) if normal.input else None
        known = self._known.type(self._scope, node.output[0])
        if (
            normal.op_type != "InstanceNormalization"
            or groups is None
            or groups.op_type != "Reshape"
            or groups.input[:1] != shape.input[:1]
            or known is None
            or known.dims is not None
        ):
            return False
        cast = onnx.helper.make_node("Cast", shape.input[:1], node.output, to=known.elem_type)
        copied.CopyFrom(cast)
        return True

    def _state_inputs(self, index: int, *, before: bool) -> bool:
        """Let the copy of a node read initializers in place of computed constants."""
        node, copied = self._scope.nodes[index], self._twin.nodes[index]
        if node.op_type not in SHAPED_BY_VALUES:
            return False
        found = False
        opset = self._scope.opset or 0
        # Of the data of a Reshape, for example, inference reads no elements.
        first = node.op_type == "ConstantOfShape" or schemas.propagates_sizes(node.op_type, opset)
        for place, name in enumerate(node.input):
            if place == 0 and not first:
                continue
            maker = self._scope.producers.get(name)
            # Inference by onnx reads initializers and Constants by itself.
            if maker is None or maker.op_type == "Constant" or copied.input[place] != name:
                continue
            if before and schemas.propagates_sizes(maker.op_type, opset):
                continue
            array = self._known.constant(self._scope, name)
            if array is not None:
                tensor = numpy_helper.from_array(array, f"{name}/constant")
                self._graph.initializer.append(tensor)
                copied.input[place] = tensor.name
                found = True
        return found

    def _state_shapes(self, node: NodeProto) -> bool:
        """Write certain dimensions of a node's outputs into the copy; return whether any was."""
        found = False
        for name, dims in zip(node.output, self._certain_dims(node), strict=False):
            known = self._known.type(self._scope, name)
            if known is None or not known.elem_type or dims is None:
                continue
            if known.dims is not None:
                if len(known.dims) != len(dims) or not _tell_more(dims, known.dims):
                    continue
                stated_dims: Dims = tuple(
                    own or dim for own, dim in zip(dims, known.dims, strict=True)
                )
            else:
                stated_dims = tuple(dims)
            info = onnx.helper.make_tensor_value_info(name, known.elem_type, stated_dims)
            for entry in self._infos[name]:
                entry.CopyFrom(info)
            if not self._infos[name]:
                self._graph.value_info.append(info)
                self._infos[name].append(self._graph.value_info[-1])
            found = True
        return found

    def _certain_dims(self, node: NodeProto) -> list[list[int | None] | None]:
        """Return for outputs of a node the dimensions that are certain, beyond shape inference."""
        if not is_default(node.domain):
            first = self._known.type(self._scope, node.input[0]) if node.input else None
            found = placeholders.ranks(node, None if first is None else first.rank)
            return [[None] * rank for rank in found]
        if node.op_type == "ConstantOfShape":
            sizes = self._known.elements(self._scope, node.input[0])
        elif node.op_type == "Reshape" and len(node.input) > 1:
            sizes = self._known.elements(self._scope, node.input[1])
        else:
            return []
        # Zero may mean a size of the data, and -1 the rest.
        return [None if sizes is None else [size if size and size > 0 else None for size in sizes]]

    def _shape_is_known(self, node: NodeProto) -> bool:
        known = self._inferred.get(node.output[0])
        if known is None or known.dims is None:
            return False
        return all(isinstance(dim, int) for dim in known.dims)


def _tell_more(dims: Sequence[int | None], known: Dims) -> bool:
    """Return whether a size is certain that is not known as a number."""
    return any(own and not isinstance(dim, int) for own, dim in zip(dims, known, strict=True))
