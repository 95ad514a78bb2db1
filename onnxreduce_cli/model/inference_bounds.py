"""What onnx's shape inference may compute for a model: lists and ranks without end, or an abort.

It computes lists of sizes and ranks as the model says, and either may double from node to node: 41
nodes that join a list with itself take terabytes. What is found here is a bound, not the truth.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from google.protobuf.message import Message
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    numpy_helper,
)

from onnxreduce_cli.model.domains import DEFAULT_DOMAINS
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, called_key, function_key

#: Lists of more sizes, and larger ranks, are left to a process apart.
_MOST = 1 << 20

#: How protobuf writes a dimension of 1 << 21 or more: a message that begins with its value.
_LARGE_DIM = re.compile(rb"\n[\x05-\x0b]\x08[\x80-\xff]{3,9}[\x00-\x7f]")

#: Operators by which lists (Concat) and ranks (the others) double.
_DOUBLING = frozenset({"Concat", "Gather", "GatherND"})

#: Operators whose outputs onnx knows no elements of, whatever it knows of their inputs.
_WITHOUT_ELEMENTS = frozenset({"ConstantOfShape", "Expand", "Range", "Tile"})

#: Operators whose outputs are as large as integers say that they read.
_SIZED = _WITHOUT_ELEMENTS | {
    "BlackmanWindow", "CenterCropPad", "HammingWindow", "HannWindow", "Pad", "RandomNormal",
    "RandomUniform", "Reshape", "Resize", "Upsample",
}  # fmt: skip

#: Lists of more integers are no sizes.
_FEW = 1024

#: Operators whose graphs inference goes into.
_WITH_GRAPHS = frozenset({"If", "Loop", "Scan"})

#: Operators whose inference ends the process where the type of their input is not known.
_ENDING = frozenset({"DictVectorizer", "RegexFullMatch"})

#: Nodes of functions that are followed, as often as they are called, and calls in calls.
_MOST_NODES, _DEEPEST = 200_000, 100


def may_end(model: ModelProto, content: bytes) -> bool:
    """Return whether inference may end the process; most models need one look.

    Args:
        model: the model.
        content: its bytes.
    """
    imports = [(entry.domain, entry.version) for entry in model.opset_import]
    if _has_large_dims(model, content) or _has_long_lists(model.graph):
        return True
    for function in model.functions:
        imports += [(entry.domain, entry.version) for entry in function.opset_import]
    # That of LabelEncoder-1 ends it; its later ones do not.
    ending = _ENDING | {"LabelEncoder"} if ("ai.onnx.ml", 1) in imports else _ENDING
    own = _doublings(model.graph.node, ending)
    # A body may be gone through any number of times.
    called = sum(_doublings(function.node, ending) for function in model.functions)
    if math.isinf(own + called) or (own < math.log2(_MOST) and not called):
        return math.isinf(own + called)
    bounds = _Bounds(model.functions)
    bounds.enter(model.graph)
    return bounds.largest > _MOST


def _has_large_dims(model: ModelProto, content: bytes) -> bool:
    """Return whether some type states a large dimension, which lists that are read may have.

    Args:
        model: the model.
        content: its bytes: other bytes that look like such a dimension are rare.
    """
    if not _LARGE_DIM.search(content):
        return False
    waiting: list[Message] = [model]
    while waiting:
        message = waiting.pop()
        if isinstance(message, TensorShapeProto):
            if any(dim.dim_value > _MOST for dim in message.dim):
                return True
            continue
        for field, value in message.ListFields():
            if field.message_type is not None:
                waiting += [value] if isinstance(value, Message) else value
    return False


def _has_long_lists(graph: GraphProto) -> bool:
    """Return whether a node computes a list that is as long as constants say, and they are large.

    Inference may take it for a list of sizes.
    """
    large = {tensor.name for tensor in graph.initializer if _has_large_size(tensor)}
    made = [node for node in graph.node if node.op_type in _SIZED]
    for node in graph.node if made else ():
        if node.op_type == "Constant" and any(map(_states_large_size, node.attribute)):
            large.update(node.output)
    return any(
        not large.isdisjoint(node.input) or any(map(_states_large_size, node.attribute))
        for node in made
    )


def _states_large_size(attribute: AttributeProto) -> bool:
    """Return whether an attribute holds a large integer."""
    if attribute.HasField("t"):
        return _has_large_size(attribute.t)
    return max(attribute.ints, default=attribute.i) > _MOST


def _has_large_size(tensor: TensorProto) -> bool:
    """Return whether a list of a few integers holds a large one."""
    if tensor.data_type != TensorProto.INT64 or math.prod(tensor.dims) > _FEW:
        return False
    if tensor.data_location == TensorProto.EXTERNAL or not (tensor.raw_data or tensor.int64_data):
        return False
    return bool((numpy_helper.to_array(tensor) > _MOST).any())


def _doublings(nodes: Iterable[NodeProto], ending: frozenset[str]) -> float:
    """Return how often a list or a rank may double in some nodes, subgraphs included.

    Infinitely often where inference of a node may end the process.
    """
    found = 0.0
    looked_at = _DOUBLING | ending | _WITH_GRAPHS
    for node in [node for node in nodes if node.op_type in looked_at]:
        op_type = node.op_type
        if op_type in _DOUBLING:
            found += math.log2(max(len(node.input), 1))
        elif op_type in ending:
            return math.inf
        for attribute in node.attribute if op_type in _WITH_GRAPHS else ():
            found += _doublings(attribute.g.node, ending)
    return found


class _Bounds:
    """Bounds of what inference computes for values, by name.

    Attributes:
        largest: the largest of them; infinite where there is no end of calls to follow.
    """

    def __init__(self, functions: Iterable[FunctionProto], depth: int = 0) -> None:
        self.largest = 0.0
        self._functions = {function_key(item): item for item in functions}
        self._depth, self._left = depth, _MOST_NODES
        self._elements: dict[str, int] = {}
        self._ranks: dict[str, int] = {}

    def enter(self, graph: GraphProto) -> None:
        """Follow a graph from its inputs and initializers on."""
        for value in graph.input:
            self._ranks[value.name] = len(value.type.tensor_type.shape.dim)
        for tensor in graph.initializer:
            self._ranks[tensor.name] = len(tensor.dims)
            if len(tensor.dims) <= 1:
                self._elements[tensor.name] = max(0, *tensor.dims, 1)
        self.follow(graph.node)

    def follow(self, nodes: Iterable[NodeProto]) -> None:
        """Follow nodes in their order."""
        for node in nodes:
            op_type, inputs = node.op_type, node.input[:]
            if op_type in GRAPH_OPERATORS or node.domain not in DEFAULT_DOMAINS:
                for attribute in node.attribute:
                    if attribute.type == AttributeProto.GRAPH:
                        self.enter(attribute.g)
            self._left -= bool(self._depth)
            if self._functions and self._call(node):
                continue
            rank = self._rank(node, op_type, inputs)
            elements = self._count(node, op_type, inputs)
            for name in node.output[:]:
                self._ranks[name] = rank
                if elements is not None:
                    self._elements[name] = elements
            self.largest = max(self.largest, rank, elements or 0)
            if self.largest > _MOST:
                return

    def _call(self, node: NodeProto) -> bool:
        """Follow the function that a node calls; return whether it calls one."""
        function = self._functions.get(called_key(node))
        if function is None:
            return False
        inner = _Bounds((), self._depth + 1)
        inner._functions, inner._left = self._functions, self._left
        for formal, name in zip(function.input, node.input, strict=False):
            inner._ranks[formal] = self._ranks.get(name, 0)
            if name in self._elements:
                inner._elements[formal] = self._elements[name]
        if inner._depth > _DEEPEST or inner._left < 0:
            self.largest = math.inf
            return True
        inner.follow(function.node)
        self._left, self.largest = inner._left, max(self.largest, inner.largest)
        for formal, name in zip(function.output, node.output, strict=False):
            self._ranks[name] = inner._ranks.get(formal, 0)
            if formal in inner._elements:
                self._elements[name] = inner._elements[formal]
        return True

    def _rank(self, node: NodeProto, op_type: str, inputs: Sequence[str]) -> int:
        ranks = [self._ranks.get(name, 0) for name in inputs]
        if op_type in ("Gather", "GatherND"):
            return sum(ranks)
        if op_type in ("Expand", "Reshape", "Unsqueeze"):
            lists = [self._elements.get(name, 0) for name in inputs[1:]]
            if op_type == "Unsqueeze":
                return sum(ranks[:1]) + sum(lists) + sum(len(item.ints) for item in node.attribute)
            ranks += lists
        elif op_type == "ConstantOfShape":
            ranks += [self._elements.get(name, 0) for name in inputs]
        return max(ranks, default=0) + (op_type == "OneHot")

    def _count(self, node: NodeProto, op_type: str, inputs: Sequence[str]) -> int | None:
        """The elements that onnx may know of an output; None if it does not compute any."""
        if op_type == "Constant":
            return max((_constant(item) for item in node.attribute), default=0)
        if op_type in ("Shape", "Size"):
            return max((self._ranks.get(name, 0) for name in inputs), default=0)
        if op_type in _WITHOUT_ELEMENTS:
            return None
        known = []
        for name in inputs:
            count = self._elements.get(name) if name else 0
            if count is None:
                return None
            if name:
                known.append(count)
        if not known:
            return None
        return sum(known) if op_type == "Concat" else max(known)


def _constant(attribute: AttributeProto) -> int:
    return math.prod(attribute.t.dims) if attribute.HasField("t") else len(attribute.ints) or 1
