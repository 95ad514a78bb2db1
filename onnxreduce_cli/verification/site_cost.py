"""How much a run of a site's model takes, estimated before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorShapeProto, helper, numpy_helper

from onnxreduce_cli.model import attributes
from onnxreduce_cli.model.scope import subgraphs

#: The size that stands for dimensions that are not known, and for numbers of iterations.
_OPEN = 8

Shapes = Mapping[str, tuple[int, ...]]


def work(model: ModelProto) -> int:
    """Estimate the elements that a run computes or reads, those of each window and product.

    Args:
        model: the model; dimensions that it leaves open count as small.
    """
    shapes = _shapes(model)
    given = sum(math.prod(shapes[value.name]) for value in model.graph.input)
    held = sum(math.prod(tensor.dims) for tensor in model.graph.initializer)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    return given + held + _of_nodes(model.graph.node, shapes, constants)


def _shapes(model: ModelProto) -> Shapes:
    """The shapes of all values of the main graph as far as inference finds them."""
    closed = ModelProto()
    closed.CopyFrom(model)
    for value in closed.graph.input:
        kind = value.type.tensor_type
        if value.type.HasField("tensor_type") and kind.HasField("shape"):
            closed_type = helper.make_tensor_type_proto(kind.elem_type, _closed(kind.shape))
            value.type.CopyFrom(closed_type)
    try:
        graph = onnx.shape_inference.infer_shapes(closed, data_prop=True).graph
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        graph = closed.graph  # Whoever runs it says what is wrong with it.
    found = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    for value in (*graph.input, *graph.output, *graph.value_info):
        found[value.name] = _closed(value.type.tensor_type.shape)
    return found


def _closed(shape: TensorShapeProto) -> tuple[int, ...]:
    return tuple(dim.dim_value if dim.HasField("dim_value") else _OPEN for dim in shape.dim)


def _of_nodes(
    nodes: Iterable[NodeProto], shapes: Shapes, constants: Mapping[str, onnx.TensorProto]
) -> int:
    total = 0
    for node in nodes:
        made = sum(math.prod(shapes.get(name, ())) for name in node.output)
        total += made * _factor(node, shapes)
        if node.op_type == "OneHot" and node.input[1] in constants:  # Inference does not read it.
            depth = numpy_helper.to_array(constants[node.input[1]]).reshape(-1)
            total += int(depth[0]) * math.prod(shapes.get(node.input[0], ()))
        if node.op_type == "NonMaxSuppression":  # Each box may be compared with all chosen ones.
            total += 16 * math.prod(shapes.get(node.input[1], ()))
        total += sum(_of_graph(graph) for _, graph in subgraphs(node)) * _OPEN
    return total


def _of_graph(graph: GraphProto) -> int:
    """The same for a subgraph, of which no shapes are known but those of its constants."""
    own = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return sum(math.prod(dims) for dims in own.values()) + _of_nodes(graph.node, own, {})


def _factor(node: NodeProto, shapes: Shapes) -> int:
    """How many elements each element of a node's outputs takes."""
    kernel = attributes.find(node, "kernel_shape")
    if kernel is not None:
        return math.prod(kernel.ints)
    first, second = (
        shapes.get(node.input[index], ()) if index < len(node.input) else () for index in range(2)
    )
    if node.op_type in _PRODUCTS and second:
        return max(1, math.prod(second) // max(1, second[0]))
    if node.op_type in _CONTRACTIONS and first:
        return max(1, max(first[-2:]) // 16)
    if node.op_type in _TRANSFORMS and first:
        return max(first)
    return 1


#: Each output element takes a window of the weight.
_PRODUCTS = frozenset({"Conv", "ConvInteger", "ConvTranspose", "DeformConv", "QLinearConv"})
#: Each output element takes a row, 16 of whose elements cost as much as one elsewhere.
_CONTRACTIONS = frozenset(
    {"Attention", "Einsum", "Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"}
)
#: Each output element may take a whole axis, in the transform's matrix.
_TRANSFORMS = frozenset({"DFT", "STFT"})
