"""Models with composite operators, as exporters write them at opsets 20 to 24."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper


@dataclass
class Graph:
    """Writes nodes: ``graph.add("Mul", x, 0.5)`` gives the name of what a node makes."""

    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def constant(self, values: Any) -> str:
        array = np.asarray(values)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int, around: float = 0.0) -> str:
        scale = 0.1 if around else shape[0] ** -0.5
        return self.constant(self.rng.normal(around, scale, shape))

    def add(self, op_type: str, *inputs: Any, **attributes: Any) -> str:
        names = [item if isinstance(item, str) else self.constant(item) for item in inputs]
        name = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, names, [name], name, **attributes))
        return name

    def linear(self, data: str, size: int, to: int) -> str:
        return self.add("Add", self.add("MatMul", data, self.weight(size, to)), self.weight(to))

    def conv(self, data: str, channels: int, to: int, kernel: int, **attributes: Any) -> str:
        weight = self.weight(to, channels // attributes.get("group", 1), kernel, kernel)
        padding = [kernel // 2] * 4 if attributes.get("strides") is None else [0] * 4
        return self.add("Conv", data, weight, self.weight(to), pads=padding, **attributes)

    def layer_norm(self, data: str, size: int) -> str:
        scale, bias = self.weight(size, around=1.0), self.weight(size)
        return self.add("LayerNormalization", data, scale, bias, axis=-1)

    def heads(self, data: str, heads: int, length: int, size: int) -> str:
        shape = np.array([1, length, heads, size // heads])
        return self.add("Transpose", self.add("Reshape", data, shape), perm=[0, 2, 1, 3])

    def attention(self, data: str, heads: int, length: int, size: int) -> str:
        query, key, value = (
            self.heads(self.linear(data, size, size), heads, length, size) for _ in range(3)
        )
        scores = self.add("MatMul", query, self.add("Transpose", key, perm=[0, 1, 3, 2]))
        scaled = self.add("Div", scores, np.array((size / heads) ** 0.5))
        mixed = self.add("MatMul", self.add("Softmax", scaled, axis=-1), value)
        back = self.add("Transpose", mixed, perm=[0, 2, 1, 3])
        joined = self.add("Reshape", back, np.array([1, length, size]))
        return self.linear(joined, size, size)

    def model(self, dims: list[int], result: str, opset: int) -> ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "graph",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
            self.initializers,
        )
        imports = [helper.make_opsetid("", opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


def encoder(length: int = 128, size: int = 768) -> ModelProto:
    """Two layers of a BERT-base encoder: LayerNormalization after each part, Gelu."""
    graph, data = Graph(), "x"
    for _ in range(2):
        mixed = graph.add("Add", graph.attention(data, 12, length, size), data)
        data = graph.layer_norm(mixed, size)
        inner = graph.add("Gelu", graph.linear(data, size, 4 * size))
        data = graph.layer_norm(graph.add("Add", graph.linear(inner, 4 * size, size), data), size)
    return graph.model([1, length, size], data, 20)


def vision_transformer(size: int = 192, patches: int = 14) -> ModelProto:
    """A ViT of two layers: patches by Conv, LayerNormalization before each part, Gelu."""
    graph = Graph()
    data = graph.conv("x", 3, size, 16, strides=[16, 16])
    data = graph.add("Reshape", data, np.array([1, size, patches**2]))
    data = graph.add("Add", graph.add("Transpose", data, perm=[0, 2, 1]), graph.weight(1, 1, size))
    for _ in range(2):
        mixed = graph.attention(graph.layer_norm(data, size), 3, patches**2, size)
        data = graph.add("Add", data, mixed)
        inner = graph.linear(graph.layer_norm(data, size), size, 4 * size)
        data = graph.add("Add", data, graph.linear(graph.add("Gelu", inner), 4 * size, size))
    return graph.model([1, 3, 16 * patches, 16 * patches], graph.layer_norm(data, size), 20)


def llama(length: int = 64, size: int = 256, heads: int = 4) -> ModelProto:
    """A block of a Llama: RMSNormalization, RotaryEmbedding, Swish as a gate."""
    graph = Graph()

    def norm(data: str) -> str:
        return graph.add("RMSNormalization", data, graph.weight(size, around=1.0))

    angles = np.outer(np.arange(length), 1e4 ** -np.linspace(0, 1, size // heads // 2))
    cos, sin = (graph.constant(f(angles)[None]) for f in (np.cos, np.sin))
    data = norm("x")
    query, key, value = (
        graph.heads(graph.add("MatMul", data, graph.weight(size, size)), heads, length, size)
        for _ in range(3)
    )
    query, key = (graph.add("RotaryEmbedding", item, cos, sin) for item in (query, key))
    scores = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 1, 3, 2]))
    weights = graph.add("Softmax", graph.add("Mul", scores, np.array((size / heads) ** -0.5)))
    mixed = graph.add("Transpose", graph.add("MatMul", weights, value), perm=[0, 2, 1, 3])
    joined = graph.add("Reshape", mixed, np.array([1, length, size]))
    data = graph.add("Add", "x", graph.add("MatMul", joined, graph.weight(size, size)))
    inner = norm(data)
    gate = graph.add("Swish", graph.add("MatMul", inner, graph.weight(size, 4 * size)))
    wide = graph.add("Mul", gate, graph.add("MatMul", inner, graph.weight(size, 4 * size)))
    narrow = graph.add("MatMul", wide, graph.weight(4 * size, size))
    return graph.model([1, length, size], graph.add("Add", data, narrow), 24)


def convnext(size: int = 96) -> ModelProto:
    """Two blocks of a ConvNeXt: a depthwise Conv, LayerNormalization of channels last, Gelu."""
    graph, data = Graph(), "x"
    for _ in range(2):
        inner = graph.conv(data, size, size, 7, group=size)
        inner = graph.layer_norm(graph.add("Transpose", inner, perm=[0, 2, 3, 1]), size)
        inner = graph.add("Gelu", graph.linear(inner, size, 4 * size))
        inner = graph.add("Mul", graph.linear(inner, 4 * size, size), graph.weight(size))
        data = graph.add("Add", data, graph.add("Transpose", inner, perm=[0, 3, 1, 2]))
    return graph.model([1, size, 28, 28], data, 20)


def unet(size: int = 64) -> ModelProto:
    """A block of a diffusion UNet: GroupNormalization, SiLU and Conv, twice, and what it adds."""
    graph, data = Graph(), "x"
    for _ in range(2):
        scale, bias = graph.weight(size, around=1.0), graph.weight(size)
        normal = graph.add("GroupNormalization", data, scale, bias, num_groups=32)
        data = graph.conv(graph.add("Swish", normal), size, size, 3)
    return graph.model([1, size, 32, 32], graph.add("Add", data, "x"), 24)


def quantized_encoder(length: int = 64, size: int = 128) -> ModelProto:
    """A feed-forward part whose MatMuls are quantized, with LayerNormalization and Gelu."""
    graph = Graph()

    def quantized(data: str) -> str:
        parameters = (np.array(0.05), np.array(128, np.uint8))
        whole = graph.add("QuantizeLinear", data, *parameters)
        return graph.add("DequantizeLinear", whole, *parameters)

    def linear(data: str, given: int, to: int) -> str:
        weights = graph.rng.integers(-127, 127, (given, to)).astype(np.int8)
        weight = graph.add("DequantizeLinear", weights, np.array(0.01), np.array(0, np.int8))
        return graph.add("Add", graph.add("MatMul", quantized(data), weight), graph.weight(to))

    data = graph.layer_norm("x", size)
    inner = graph.add("Gelu", linear(data, size, 4 * size))
    data = graph.add("Add", linear(inner, 4 * size, size), data)
    return graph.model([1, length, size], graph.layer_norm(data, size), 21)


#: By name, each with what makes it.
MODELS: dict[str, Callable[[], ModelProto]] = {
    "BERT-like encoder": encoder,
    "ViT": vision_transformer,
    "Llama-like block": llama,
    "ConvNeXt": convnext,
    "UNet block": unet,
    "QDQ encoder": quantized_encoder,
}
