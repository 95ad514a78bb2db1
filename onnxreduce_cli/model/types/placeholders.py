"""Placeholders for operators of other domains, which onnx's shape inference does not know.

ONNX Runtime's fused operators and some of ``ai.onnx.ml`` come without shape inference, and one
such node makes the ranks of all values after it unknown. Most have outputs of the same type and
shape as some operator of the default domain: in the copy of the model that shape inference reads,
that operator replaces it. For others at least the ranks are certain.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from onnx import GraphProto, NodeProto, TensorProto, helper

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import LEARNING, MICROSOFT, is_default
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, FunctionKey, called_key, subgraphs

#: Returns the node that replaces a copy of a node of an opset; None to leave it as it is.
_Rule = Callable[[NodeProto, int], "NodeProto | None"]

#: A domain of onnx, with operators that train a model.
TRAINING = "ai.onnx.preview.training"

#: The ranks of the outputs, whatever the inputs.
_RANKS: dict[tuple[str, str], tuple[int, ...]] = {
    (LEARNING, "LinearClassifier"): (1, 2),
    (LEARNING, "LinearRegressor"): (2,),
    (LEARNING, "SVMClassifier"): (1, 2),
    (LEARNING, "SVMRegressor"): (2,),
    (LEARNING, "TreeEnsembleClassifier"): (1, 2),
    (LEARNING, "TreeEnsembleRegressor"): (2,),
    (MICROSOFT, "Attention"): (3, 5),
    (MICROSOFT, "EmbedLayerNormalization"): (3, 1, 3),
    (MICROSOFT, "GroupQueryAttention"): (3, 4, 4),
    (MICROSOFT, "MultiHeadAttention"): (3, 4, 4),
    (MICROSOFT, "QAttention"): (3,),
    (MICROSOFT, "QGemm"): (2,),
}


def ranks(node: NodeProto, first_input: int | None) -> tuple[int, ...]:
    """Return the ranks of the outputs of a node of another domain; empty where not certain.

    Args:
        node: the node.
        first_input: the rank of its first input, if known.
    """
    if (node.domain, node.op_type) == (LEARNING, "ArrayFeatureExtractor"):
        # A vector counts as a matrix of one row.
        return () if first_input is None else (max(first_input, 2),)
    if (node.domain, node.op_type) == (MICROSOFT, "MatMulNBits"):
        return () if first_input is None else (first_input,)  # Its weights are a matrix.
    return _RANKS.get((node.domain, node.op_type), ())


def put_placeholders(graph: GraphProto, opset: int, functions: Container[FunctionKey]) -> None:
    """Replace nodes that shape inference does not know in a graph, its subgraphs included.

    Args:
        graph: the copy that shape inference reads.
        opset: the opset of the default domain.
        functions: the model's functions by domain, name and overload, which take precedence.
    """
    relevant = _OPERATORS | GRAPH_OPERATORS
    graphs = [graph]
    while graphs:
        for node in [n for n in graphs.pop().node if n.op_type in relevant or n.domain]:
            graphs += [subgraph for _, subgraph in subgraphs(node)]
            key = ("" if is_default(node.domain) else node.domain, node.op_type)
            called = called_key(node) in functions
            rule = _RULES.get(key) if node.input and node.output and not called else None
            found = rule(node, opset) if opset and rule is not None else None
            if found is not None:
                found.name = node.name
                found.output.insert(0, node.output[0])
                node.CopyFrom(found)


def _node(op_type: str, inputs: list[str], **values: Any) -> NodeProto:
    return helper.make_node(op_type, inputs, [], **values)


def _same(node: NodeProto, _: int) -> NodeProto:
    return _node("Identity", [node.input[0]])


def _sum_too(node: NodeProto, opset: int) -> NodeProto:
    """Return a node that gives the first input, and again as the sum, which is the fourth output.

    Momentum is the operator of onnx that has two such outputs.
    """
    if len(node.output) < 4:
        return _same(node, opset)
    data = node.input[0]
    inputs, outputs = ["", "", data, data, data], [node.output[3]]
    return helper.make_node("Momentum", inputs, outputs, domain=TRAINING)


def _like_scale(node: NodeProto, opset: int) -> NodeProto:
    """Return a node with the shape of the first input and the dtype of the second."""
    if opset >= 15:
        return _node("CastLike", list(node.input[:2]))
    # Inference reads the dtype off the first input.
    return _node("Mul", [*reversed(node.input[:2])])


def _layer_normalization(node: NodeProto, opset: int) -> NodeProto | None:
    """Return the same for the operator that ONNX Runtime has where onnx has none yet."""
    return _like_scale(node, opset) if opset < 17 else None


def _to_float(node: NodeProto, opset: int) -> NodeProto | None:
    # Before opset 6 a Cast names its dtype by name.
    return _node("Cast", [node.input[0]], to=int(TensorProto.FLOAT)) if opset >= 6 else None


def _like(op_type: str, count: int, *kept: str) -> _Rule:
    """Return a rule for an operator with the first inputs and some attributes."""

    def rule(node: NodeProto, _: int) -> NodeProto:
        found = _node(op_type, list(node.input[:count]))
        for name in kept:
            attribute = attributes.find(node, name)
            if attribute is not None:
                found.attribute.append(attribute)
        return found

    return rule


def _quantized_pair(op_type: str) -> _Rule:
    """Return a rule for two quantized inputs, each with scale and zero point, that broadcast."""

    def rule(node: NodeProto, opset: int) -> NodeProto | None:
        broadcasts = opset >= 7 and len(node.input) > 3
        return _node(op_type, [node.input[0], node.input[3]]) if broadcasts else None

    return rule


def _quantized_concat(node: NodeProto, _: int) -> NodeProto:
    found = _node("Concat", list(node.input[2::3]))
    found.attribute.extend(item for item in node.attribute if item.name == "axis")
    return found


def _mat_mul(node: NodeProto, opset: int) -> NodeProto | None:
    flags = ("transA", "transB", "transBatchA", "transBatchB")
    first, second, *batch = (_flag(node, name) for name in flags)
    if any(batch):
        return None
    if not first and not second:
        return _node("MatMul", list(node.input[:2]))
    if opset < 12:
        return None
    a, b = "...ki" if first else "...ik", "...jk" if second else "...kj"
    return _node("Einsum", list(node.input[:2]), equation=f"{a},{b}->...ij")


def _pooled(op_type: str, *kept: str) -> _Rule:
    like = _like(op_type, 1, *kept)
    return lambda node, opset: None if _flag(node, "channels_last") else like(node, opset)


def _flag(node: NodeProto, name: str) -> bool:
    attribute = attributes.find(node, name)
    return attribute is not None and bool(attribute.i)


_WINDOW = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")

_RULES: dict[tuple[str, str], _Rule] = {
    ("", "Affine"): _same,
    ("", "ImageScaler"): _same,
    ("", "ParametricSoftplus"): _same,
    ("", "Scale"): _same,
    ("", "ScaledTanh"): _same,
    ("", "LayerNormalization"): _layer_normalization,
    ("", "SimplifiedLayerNormalization"): _like_scale,
    (LEARNING, "Imputer"): _same,
    (LEARNING, "Normalizer"): _to_float,
    (LEARNING, "Scaler"): _to_float,
    (MICROSOFT, "FusedConv"): _like("Conv", 3, *_CONV),
    (MICROSOFT, "FusedGemm"): _like("Gemm", 3, "alpha", "beta", "transA", "transB"),
    (MICROSOFT, "FusedMatMul"): _mat_mul,
    (MICROSOFT, "QLinearAdd"): _quantized_pair("Add"),
    (MICROSOFT, "QLinearAveragePool"): _pooled("AveragePool", *_WINDOW),
    (MICROSOFT, "QLinearConcat"): _quantized_concat,
    (MICROSOFT, "QLinearGlobalAveragePool"): _pooled("GlobalAveragePool"),
    (MICROSOFT, "QLinearMul"): _quantized_pair("Mul"),
}
_RULES |= {
    (MICROSOFT, op_type): _same
    for op_type in (
        "BiasGelu",
        "FastGelu",
        "Gelu",
        "QLinearLeakyRelu",
        "QLinearSigmoid",
        "QLinearSoftmax",
        "QuickGelu",
    )
}
_RULES |= {
    (MICROSOFT, op_type): _sum_too
    for op_type in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
}

_OPERATORS = frozenset(op_type for _, op_type in _RULES)
