"""Bounds on the memory of onnx's shape inference, and models on which it may end the process.

Inference keeps a list of numbers for each value of rank 1 from which sizes may be computed, as long
as its shape states, and such lists and ranks may double from node to node: 41 nodes that join a
list with itself take terabytes. Where the bounds are not certain, a model may take much.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
)

from onnxreduce_cli.model.gate.attribute_ranges import range_problem
from onnxreduce_cli.model.graph.attributes import find
from onnxreduce_cli.model.graph.domains import DEFAULT_DOMAINS
from onnxreduce_cli.model.graph.scope import (
    GRAPH_OPERATORS,
    called_key,
    function_key,
    subgraphs,
    with_inner,
)

#: The longest list, and the largest rank, that do not count as much.
_MOST = 1 << 20

#: Operators whose inference ends the process if the type of their input is unknown.
_ENDING = frozenset({"DictVectorizer", "RegexFullMatch"})

#: The same at version 1 of ai.onnx.ml.
_ENDING_ML_1 = _ENDING | {"LabelEncoder"}

#: Attributes on some of whose values inference ends the process, by operator. Where a function sets
#: one, each call of it may give another.
_ENDING_ATTRIBUTES = {"GatherND": "batch_dims", "Split": "num_outputs"}

#: Operators for whose outputs onnx keeps no list.
_WITHOUT_LIST = frozenset({"ConstantOfShape", "Expand", "Range", "Tile"})

#: Operators whose inputs or attributes state the size of their outputs.
_SIZED = _WITHOUT_LIST | {
    "BlackmanWindow", "CenterCropPad", "HammingWindow", "HannWindow", "Optional", "Pad",
    "RandomNormal", "RandomUniform", "Reshape", "Resize", "Upsample",
}  # fmt: skip

#: Operators whose nodes are looked at one by one, whatever their inputs.
_LOOKED_AT = _ENDING_ML_1 | _ENDING_ATTRIBUTES.keys() | _SIZED | GRAPH_OPERATORS | {
    "Concat", "Constant"
}  # fmt: skip

#: Operators whose outputs have one dimension more than what they are made of.
_STACKING = frozenset({"ConcatFromSequence", "OneHot", "StringSplit"})

#: Operators whose inputs or attributes state the rank of their outputs.
_RANKED = _STACKING | {
    "Col2Im", "ConstantOfShape", "Einsum", "Expand", "RandomNormal", "RandomUniform", "Reshape",
    "Unsqueeze",
}  # fmt: skip

#: Operators whose outputs may have a larger rank, or another list, than any of their inputs.
_CHANGING = _RANKED | _WITHOUT_LIST | {"Concat", "Gather", "GatherND", "Shape", "Size"}

#: The most integers of a list of sizes.
_FEW = 1024

#: The most nodes of functions that are followed, counted at each call, and the most nested calls.
_MOST_NODES, _DEEPEST = 200_000, 100


def may_take_much(model: ModelProto) -> bool:
    """Return whether inference may take much more memory than the model has, or end the process."""
    by_type: dict[str, list[NodeProto]] = {}
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        for node in with_inner(nodes):
            op_type = node.op_type
            if op_type in _LOOKED_AT:
                by_type.setdefault(op_type, []).append(node)
    imports = [*model.opset_import, *(i for item in model.functions for i in item.opset_import)]
    first_ml = any(entry.domain == "ai.onnx.ml" and entry.version == 1 for entry in imports)
    if not by_type.keys().isdisjoint(_ENDING_ML_1 if first_ml else _ENDING):
        return True
    if any(_may_end(node) for name in _ENDING_ATTRIBUTES for node in by_type.get(name, ())):
        return True
    holders = [node for name in GRAPH_OPERATORS for node in by_type.get(name, ())]
    graphs = [model.graph, *(graph for node in holders for _, graph in subgraphs(node))]
    sized = [node for name in _SIZED for node in by_type.get(name, ())]
    read = {name for node in sized for name in node.input[:]}
    constants = _constants(graphs, by_type.get("Constant", ()), read)
    # A value may become a list of as many elements as the product of its dimensions.
    size = math.prod if _flattens(by_type, constants) else max
    if any(size(dims) > _MOST for dims in _declared(model, graphs)):
        return True
    if any(size(sizes) > _MOST for sizes in _stated(sized, constants)):
        return True
    bounds = _Bounds(model.functions)
    bounds.enter(model.graph)
    return bounds.are_exceeded


def _may_end(node: NodeProto) -> bool:
    """Return whether inference may end the process on the value of a node's attribute."""
    attribute = find(node, _ENDING_ATTRIBUTES[node.op_type])
    return attribute is not None and (
        bool(attribute.ref_attr_name) or range_problem(node) is not None
    )


def _declared(model: ModelProto, graphs: Iterable[GraphProto]) -> Iterator[list[int]]:
    """Yield the dimensions of each declared shape, and the length of each list that is stored."""
    values = [item for graph in graphs for item in (*graph.input, *graph.output, *graph.value_info)]
    values += [value for function in model.functions for value in function.value_info]
    for value in values:
        yield _dims(value.type)
    for graph in graphs:
        for tensor in graph.initializer:
            if len(tensor.dims) == 1:
                yield [tensor.dims[0]]


def _dims(declared: TypeProto) -> list[int]:
    """Return the dimensions of a type, or of its elements' type, with 1 for unknown ones."""
    kind = declared.WhichOneof("value")
    while kind in ("sequence_type", "optional_type"):
        declared = getattr(declared, kind).elem_type
        kind = declared.WhichOneof("value")
    holder = declared.sparse_tensor_type if kind == "sparse_tensor_type" else declared.tensor_type
    return [max(dim.dim_value, 1) for dim in holder.shape.dim] or [1]


def _constants(
    graphs: Iterable[GraphProto], nodes: Iterable[NodeProto], read: Container[str]
) -> Mapping[str, Sequence[int]]:
    """Return the lists of few integers that a model stores, by name.

    Args:
        graphs: its graphs.
        nodes: its Constants.
        read: the names to look for.
    """
    found = {}
    for graph in graphs:
        for tensor in graph.initializer:
            if tensor.data_type == TensorProto.INT64 and tensor.name in read:
                found[tensor.name] = _integers(tensor)
    for node in nodes:
        for name in node.output[:]:
            if name in read:
                found.update((name, _numbers(attribute)) for attribute in node.attribute)
    return found


def _numbers(attribute: AttributeProto) -> Sequence[int]:
    """Return the integers of an attribute, or of its tensor or type."""
    if attribute.type == AttributeProto.TENSOR:
        return _integers(attribute.t)
    if attribute.type == AttributeProto.TYPE_PROTO:
        return _dims(attribute.tp)
    return list(attribute.ints) or [attribute.i]


def _integers(tensor: TensorProto) -> Sequence[int]:
    """Return the integers of a tensor; empty if they are many, or not stored in the model."""
    if tensor.data_type != TensorProto.INT64 or math.prod(tensor.dims) > _FEW:
        return ()
    if tensor.data_location == TensorProto.EXTERNAL:
        return ()
    numbers: list[int] = np.frombuffer(tensor.raw_data, "<i8").tolist()
    return numbers or tensor.int64_data[:]


def _stated(
    nodes: Iterable[NodeProto], constants: Mapping[str, Sequence[int]]
) -> Iterator[list[int]]:
    """Yield the sizes that constants and attributes state for outputs of `_SIZED` nodes."""
    for node in nodes:
        lists = [constants.get(name, ()) for name in node.input[:]]
        lists += map(_numbers, node.attribute[:])
        for numbers in lists:
            yield [max(number, 1) for number in numbers] or [1]


def _flattens(
    by_type: Mapping[str, Sequence[NodeProto]], constants: Mapping[str, Sequence[int]]
) -> bool:
    """Return whether a node may reshape a tensor to a list."""
    joined = {
        name for node in by_type.get("Concat", ()) if len(node.input) > 1 for name in node.output
    }
    for node in by_type.get("Reshape", ()):
        sizes = node.input[1] if len(node.input) > 1 else ""
        if sizes not in joined and len(constants.get(sizes) or _shape_attribute(node)) < 2:
            return True
    return False


def _shape_attribute(node: NodeProto) -> Sequence[int]:
    """Return the shape that a Reshape has as an attribute, below opset 5."""
    return next((item.ints for item in node.attribute if item.name == "shape"), ())


class _Bounds:
    """Bounds of ranks, and of the lists that inference keeps if any, by the names of values.

    Attributes:
        are_exceeded: whether one may be larger than `_MOST`, or there are too many calls to follow.
    """

    def __init__(self, functions: Iterable[FunctionProto], depth: int = 0) -> None:
        self.are_exceeded = False
        self._functions = {function_key(item): item for item in functions}
        self._depth, self._left = depth, _MOST_NODES
        self._lengths: dict[str, int] = {}
        self._ranks: dict[str, int] = {}

    def enter(self, graph: GraphProto, rank: int = 0, length: int = 0) -> None:
        """Follow a graph from its inputs and initializers on.

        Args:
            graph: the graph.
            rank: a bound of the ranks that its inputs have beside what they state.
            length: the same of their lists; 0 if they have none.
        """
        for value in graph.input:
            dims = _dims(value.type)
            self._ranks[value.name] = max(len(dims), rank)
            if len(dims) == 1:
                self._lengths[value.name] = max(dims[0], length)
            elif length:
                self._lengths[value.name] = length
        for tensor in graph.initializer:
            self._ranks[tensor.name] = len(tensor.dims)
            if len(tensor.dims) <= 1:
                self._lengths[tensor.name] = max(*tensor.dims, 1, 1)
        self.follow(graph.node)

    def follow(self, nodes: Iterable[NodeProto]) -> None:
        """Follow nodes in their order."""
        known_ranks, known_lengths = self._ranks, self._lengths
        for node in nodes:
            op_type, inputs = node.op_type, node.input[:]
            # Whatever an operator makes has a rank: that of a Range may double like any other.
            ranks = [known_ranks.get(name, 1) for name in inputs]
            lengths = [known_lengths.get(name, 0) for name in inputs if name]
            rank = max(ranks, default=1) or 1
            length = max(lengths, default=0) if all(lengths) else 0
            if op_type in GRAPH_OPERATORS or node.domain not in DEFAULT_DOMAINS:
                rank, length = self._with_graphs(node, rank, lengths)
            elif op_type == "Constant":
                rank, length = _of_constant(node)
            elif op_type in _CHANGING:
                length = self._length(op_type, rank, lengths)
                rank = self._rank(node, op_type, rank, ranks)
            self._left -= bool(self._depth)
            if self._functions and self._call(node):
                continue
            for name in node.output[:]:
                known_ranks[name] = rank
                if length:
                    known_lengths[name] = length
            if rank > _MOST or length > _MOST:
                self.are_exceeded = True
            if self.are_exceeded:
                return

    def _with_graphs(self, node: NodeProto, rank: int, lengths: Sequence[int]) -> tuple[int, int]:
        """Follow a node's graphs, and return bounds of the rank and list of what they give.

        Args:
            node: the node.
            rank: a bound of the ranks of its inputs.
            lengths: the bounds of their lists.
        """
        length = max(lengths, default=0)
        most, longest = rank, length
        for _, graph in subgraphs(node):
            self.enter(graph, rank, length)
            # A Loop or a Scan stacks what its graph gives.
            most = max([most, *(self._ranks.get(item.name, 1) + 1 for item in graph.output)])
            longest = max([longest, *(self._lengths.get(item.name, 0) for item in graph.output)])
        return most, longest

    def _call(self, node: NodeProto) -> bool:
        """Follow the function that a node calls; return whether it calls one."""
        function = self._functions.get(called_key(node))
        if function is None:
            return False
        inner = _Bounds((), self._depth + 1)
        inner._functions, inner._left = self._functions, self._left
        for formal, name in zip(function.input, node.input, strict=False):
            inner._ranks[formal] = self._ranks.get(name, 1)
            if name in self._lengths:
                inner._lengths[formal] = self._lengths[name]
        if inner._depth > _DEEPEST or inner._left < 0:
            self.are_exceeded = True
            return True
        inner.follow(function.node)
        self._left, self.are_exceeded = inner._left, inner.are_exceeded
        for formal, name in zip(function.output, node.output, strict=False):
            self._ranks[name] = inner._ranks.get(formal, 1)
            if formal in inner._lengths:
                self._lengths[name] = inner._lengths[formal]
        return True

    def _rank(self, node: NodeProto, op_type: str, rank: int, ranks: Sequence[int]) -> int:
        """Return a bound of the rank of an output.

        Args:
            node: the node.
            op_type: its operator, one of the `_CHANGING`.
            rank: the largest rank of an input.
            ranks: the ranks of all inputs.
        """
        if op_type in ("Gather", "GatherND"):
            return sum(ranks)
        if op_type not in _RANKED:
            return rank
        sizes = node.input[0 if op_type == "ConstantOfShape" else 1 :]
        stated = sum([self._lengths.get(name, 0) for name in sizes])
        # A shape, axes, or an equation.
        stated += sum([len(item.ints) or len(item.s) for item in node.attribute[:]])
        if op_type == "Unsqueeze":
            return sum(ranks[:1]) + stated
        return max(rank, stated) + (op_type in _STACKING)

    def _length(self, op_type: str, rank: int, lengths: Sequence[int]) -> int:
        """Return a bound of the list that onnx keeps for an output; 0 if it keeps none.

        Args:
            op_type: the operator, one of the `_CHANGING`.
            rank: a bound of the ranks of the inputs.
            lengths: the bounds of their lists.
        """
        if op_type in ("Shape", "Size"):
            return rank
        if op_type in _WITHOUT_LIST or not all(lengths):
            return 0
        return sum(lengths) if op_type == "Concat" else max(lengths, default=0)


def _of_constant(node: NodeProto) -> tuple[int, int]:
    """Return bounds of the rank and list of the value of a Constant."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            dims = attribute.t.dims[:]
        elif attribute.type == AttributeProto.SPARSE_TENSOR:
            dims = attribute.sparse_tensor.dims[:]
        else:
            dims = [max(len(attribute.ints), len(attribute.floats), len(attribute.strings))]
        return max(len(dims), 1), max(*dims, 1, 1) if len(dims) <= 1 else 0
    return 1, 0
