"""onnx's shape inference, such that no model makes it take all memory.

It computes lists of sizes and ranks as the model says, and either may double from node to node: 41
nodes that join a list with itself take terabytes. Such a model is inferred in a process apart.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable, Sequence

import onnx
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    numpy_helper,
)

from onnxreduce_cli.model.attributes import find
from onnxreduce_cli.model.domains import DEFAULT_DOMAINS
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, called_key, function_key

#: Lists of more sizes, and larger ranks, are left to a process apart.
_MOST = 1 << 20

#: Operators by which lists (Concat) and ranks (the others) double.
_DOUBLING = frozenset({"Concat", "Gather", "GatherND"})

#: Operators whose outputs onnx knows no elements of, whatever it knows of their inputs.
_WITHOUT_ELEMENTS = frozenset({"ConstantOfShape", "Expand", "Range", "Tile"})

#: Operators whose outputs are as large as integers say that they read.
_SIZED = _WITHOUT_ELEMENTS | {"Pad", "Reshape", "Resize", "Upsample"}

#: Lists of more integers are no sizes.
_FEW = 1024

#: Operators whose graphs inference goes into.
_WITH_GRAPHS = frozenset({"If", "Loop", "Scan"})

#: Operators whose inference ends the process where the type of their input is not known.
_ENDING = frozenset({"DictVectorizer", "RegexFullMatch"})

#: Nodes of functions that are followed, as often as they are called, and calls in calls.
_MOST_NODES, _DEEPEST = 200_000, 100

#: What inference apart may take, in seconds and bytes.
_SECONDS = 10
_MEMORY = 450_000_000

_START = (
    "import sys; sys.path[:] = {!r}; from onnxreduce_cli.model.safe_inference import main; main()"
)


def infer_shapes(model: ModelProto, *, data_prop: bool) -> ModelProto | None:
    """Return the model with the types that onnx infers; None if it cannot.

    Args:
        model: the model; its large tensors are not needed.
        data_prop: whether lists of sizes are computed too.
    """
    if _may_end(model):
        return _apart(model, data_prop)
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=data_prop)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError):
        return None


def fewer_parts(split: NodeProto) -> AttributeProto | None:
    """Return the 'num_outputs' of a Split where it is, or may be, less than the node's outputs.

    onnx's shape inference ends the process on such a node. What a reference to an attribute of a
    function stands for is not known here, so it counts as less.
    """
    parts = find(split, "num_outputs")
    if parts is None or (parts.i >= len(split.output) and not parts.ref_attr_name):
        return None
    return parts


def split_problem(split: NodeProto) -> str | None:
    """Return why onnx's shape inference ends the process on a Split, in words for users.

    None where it does not, or where that is not known: see `fewer_parts`.
    """
    parts = fewer_parts(split)
    if parts is None or parts.ref_attr_name:
        return None
    return f"its attribute 'num_outputs' is {parts.i}, and it has {len(split.output)} outputs"


def _apart(model: ModelProto, data_prop: bool) -> ModelProto | None:
    command = [sys.executable, "-c", _START.format(sys.path), str(int(data_prop))]
    try:
        done = subprocess.run(
            command,
            input=model.SerializeToString(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else ModelProto.FromString(done.stdout)


def main() -> None:
    """Infer the model on standard input, in a process that may take so much memory and no more."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    model = ModelProto.FromString(sys.stdin.buffer.read())
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=sys.argv[1] == "1")
    sys.stdout.buffer.write(inferred.SerializeToString())


def _may_end(model: ModelProto) -> bool:
    """Return whether inference may end the process; most models need one look."""
    imports = [(entry.domain, entry.version) for entry in model.opset_import]
    if _has_long_lists(model.graph):
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


def _has_long_lists(graph: GraphProto) -> bool:
    """Return whether some value of rank 1 may be long: inference may take it for a list of sizes.

    That is an input, what is computed of one with a dimension as large, or what has such a size
    by a constant.
    """
    inputs = (value.type.tensor_type.shape.dim for value in graph.input)
    if max((dim.dim_value for dims in inputs for dim in dims), default=0) > _MOST:
        return True
    large = {tensor.name for tensor in graph.initializer if _has_large_size(tensor)}
    return bool(large) and any(
        not large.isdisjoint(node.input) for node in graph.node if node.op_type in _SIZED
    )


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
