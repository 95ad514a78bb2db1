"""Estimating the work of a site's model before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    helper,
    numpy_helper,
)

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.scope import subgraphs
from onnxreduce_cli.model.types.safe_inference import infer_shapes

#: The size that stands for dimensions that are not known, and for numbers of iterations.
_UNFIXED = 8

#: The most dimensions of that size: more come from lists whose length is not known.
_FEW = 4

#: The cost of a node in a body, even for one element, in elements of a large tensor.
_OF_A_NODE = 64

#: Each output element takes a window of the weight.
_PRODUCTS = frozenset({"Conv", "ConvInteger", "ConvTranspose", "DeformConv", "QLinearConv"})
#: Each output element takes a row, of which 16 elements count as one.
_CONTRACTIONS = frozenset(
    {"Attention", "Einsum", "Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"}
)

Shapes = Mapping[str, tuple[int, ...]]


def estimated_work(model: ModelProto) -> int:
    """Estimate how many elements a run computes or reads, in windows and products too.

    Args:
        model: the model; its unfixed dimensions count as small.
    """
    graph = _inferred(model)
    shapes = _shapes(graph)
    given = sum(math.prod(shapes[value.name]) for value in model.graph.input)
    stored = sum(math.prod(tensor.dims) for tensor in model.graph.initializer)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    return given + stored + _Costs(shapes, constants, _casts_of_bool(graph)).of(graph.node)


def _inferred(model: ModelProto) -> GraphProto:
    """Return the main graph with the types that inference finds."""
    sized = ModelProto()
    sized.CopyFrom(model)
    for value in sized.graph.input:
        kind = value.type.tensor_type
        if value.type.HasField("tensor_type") and kind.HasField("shape"):
            sized_type = helper.make_tensor_type_proto(kind.elem_type, _with_sizes(kind.shape))
            value.type.CopyFrom(sized_type)
    inferred = infer_shapes(sized, data_prop=True)
    # Where inference fails, the executors report what is wrong.
    return sized.graph if inferred is None else inferred.graph


def _casts_of_bool(graph: GraphProto) -> frozenset[str]:
    """Return the values that are Casts of bool: 0 or 1."""
    values = (*graph.input, *graph.output, *graph.value_info)
    bools = {v.name for v in values if v.type.tensor_type.elem_type == TensorProto.BOOL}
    casts = [node for node in graph.node if node.op_type == "Cast"]
    return frozenset(node.output[0] for node in casts if node.input[0] in bools)


def _shapes(graph: GraphProto) -> Shapes:
    """Return the shapes of the values of the main graph, as far as they are known."""
    found = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.output, *graph.value_info):
        found[value.name] = _with_sizes(value.type.tensor_type.shape)
    return found


def _with_sizes(shape: TensorShapeProto) -> tuple[int, ...]:
    """Return a shape with a small size for each unfixed dimension, smaller if there are many."""
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in shape.dim]
    size = _UNFIXED if sizes.count(None) <= _FEW else 2
    return tuple(size if dim is None else dim for dim in sizes)


class _Costs:
    """The cost of the nodes of one model."""

    def __init__(
        self, shapes: Shapes, constants: Mapping[str, TensorProto], casts_of_bool: frozenset[str]
    ) -> None:
        self._shapes = shapes
        self._constants = constants
        self._casts_of_bool = casts_of_bool
        #: Iterations of a Loop whose number is not known: one for each element, at most.
        self._iterations = max((math.prod(shape) for shape in shapes.values()), default=1)

    def of(self, nodes: Iterable[NodeProto]) -> int:
        """Return how many elements nodes of the main graph compute or read."""
        return sum(self._of_node(node) for node in nodes)

    def _of_node(self, node: NodeProto) -> int:
        made = sum(math.prod(self._shapes.get(name, ())) for name in node.output)
        total = made * self._factor(node)
        if node.op_type == "OneHot":  # Inference does not read its depth.
            total += self._number(node, 1) * math.prod(self._shapes.get(node.input[0], ()))
        if node.op_type == "NonMaxSuppression":  # Each box may be compared with all chosen ones.
            chosen = self._number(node, 2, 16)
            total += max(16, chosen) * math.prod(self._shapes.get(node.input[1], ()))
        bodies = sum(_of_body(graph) for _, graph in subgraphs(node))
        return total + bodies * (self._rounds(node) if bodies else 0)

    def _rounds(self, node: NodeProto) -> int:
        """Return how often a node runs its bodies."""
        if node.op_type == "Loop":
            once = node.input[0] in self._casts_of_bool
            return 1 if once else self._number(node, 0, self._iterations)
        return 1 if node.op_type == "If" else _UNFIXED

    def _number(self, node: NodeProto, index: int, default: int = 0) -> int:
        """Return the constant that is an input of one element."""
        constant = self._constants.get(node.input[index]) if index < len(node.input) else None
        if constant is None or math.prod(constant.dims) != 1:
            return default
        return int(numpy_helper.to_array(constant).reshape(-1)[0])

    def _factor(self, node: NodeProto) -> int:
        """Return how many elements are computed for each element of a node's outputs."""
        kernel = attributes.find(node, "kernel_shape")
        if kernel is not None:
            return math.prod(kernel.ints)
        first, second = (
            self._shapes.get(node.input[index], ()) if index < len(node.input) else ()
            for index in range(2)
        )
        if node.op_type in _PRODUCTS and second:
            return max(1, math.prod(second) // max(1, second[0]))
        if node.op_type in _CONTRACTIONS and first:
            return max(1, max(first[-2:]) // 16)
        if node.op_type == "DFT" and first:
            return max(first)
        if node.op_type == "STFT":
            window = math.prod(self._shapes.get(node.input[2], ())) if len(node.input) > 2 else 0
            return max(1, window // 4, self._number(node, 3) // 4)
        return 1


def _of_body(graph: GraphProto) -> int:
    """Return the cost of one run of a subgraph, from its nodes and the shapes of its constants."""
    total = sum(math.prod(tensor.dims) for tensor in graph.initializer)
    for node in graph.node:
        total += _OF_A_NODE + _UNFIXED * sum(_of_body(inner) for _, inner in subgraphs(node))
    return total
