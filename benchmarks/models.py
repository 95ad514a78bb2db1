"""The models that benchmarks work on: exports repeated, a language model, functions, branches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, helper

from benchmarks.composites import Graph
from tests.support import several_times

DATA = Path(__file__).parents[1] / "tests" / "data"

#: A model of nine nodes, three of which change on the way to opset 13.
SMALL = DATA / "exports" / "dyn_resnet.onnx"

LANGUAGE_OPSET = 18


def repeated(path: str, export: str, count: int) -> None:
    """Write an export of the tests so often side by side that it has `count` nodes."""
    found = onnx.load(DATA / f"{export}.onnx")
    onnx.save(several_times(found, -(-count // len(found.graph.node))), path)


@dataclass
class LanguageModel(Graph):
    """Writes layers in float16 as exporters do, of any batch and length, equal constants once."""

    size: int = 64
    heads: int = 4
    constants: dict[tuple[object, ...], str] = field(default_factory=dict)

    def constant(self, values: Any) -> str:
        array = np.asarray(values)
        if array.dtype == np.float64:
            array = array.astype(np.float16)
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = super().constant(array)
        return self.constants[key]

    def norm(self, data: str) -> str:
        """The root mean square in float32."""
        wide = self.add("Cast", data, to=TensorProto.FLOAT)
        squares = self.add("Pow", wide, np.array(2, np.float32))
        mean = self.add("ReduceMean", squares, np.array([-1]))
        root = self.add("Sqrt", self.add("Add", mean, np.array(1e-6, np.float32)))
        normal = self.add("Cast", self.add("Div", wide, root), to=TensorProto.FLOAT16)
        return self.add("Mul", normal, self.weight(self.size, around=1.0))

    def length(self, data: str, axis: int) -> str:
        found = self.add("Gather", self.add("Shape", data), np.array(axis), axis=0)
        return self.add("Unsqueeze", found, np.array([0]))

    def reshaped(self, data: str, like: str, *sizes: int) -> str:
        lengths = [self.length(like, axis) for axis in (0, 1)]
        shape = self.add("Concat", *lengths, *(np.array([size]) for size in sizes), axis=0)
        return self.add("Reshape", data, shape)

    def rotated(self, data: str, tables: Sequence[str], length: str) -> str:
        half = self.size // self.heads // 2
        first, last = (
            self.add("Slice", data, np.array([start]), np.array([end]), np.array([3]))
            for start, end in ((0, half), (half, 2**63 - 1))
        )
        turned = self.add("Concat", self.add("Neg", last), first, axis=-1)
        cos, sin = (
            self.add("Slice", table, np.array([0]), length, np.array([2])) for table in tables
        )
        return self.add("Add", self.add("Mul", data, cos), self.add("Mul", turned, sin))

    def layer(self, data: str, tables: Sequence[str]) -> str:
        size, head = self.size, self.size // self.heads
        normal = self.norm(data)
        length = self.length(normal, 1)
        query, key, value = (
            self.add(
                "Transpose",
                self.reshaped(
                    self.add("MatMul", normal, self.weight(size, size)), normal, self.heads, head
                ),
                perm=[0, 2, 1, 3],
            )
            for _ in range(3)
        )
        query, key = (self.rotated(item, tables, length) for item in (query, key))
        scores = self.add("MatMul", query, self.add("Transpose", key, perm=[0, 1, 3, 2]))
        weights = self.add("Softmax", self.add("Mul", scores, np.array(head**-0.5)), axis=-1)
        mixed = self.add("Transpose", self.add("MatMul", weights, value), perm=[0, 2, 1, 3])
        joined = self.add("MatMul", self.reshaped(mixed, normal, size), self.weight(size, size))
        data = self.add("Add", data, joined)
        inner = self.norm(data)
        gate = self.add("MatMul", inner, self.weight(size, 2 * size))
        gate = self.add("Mul", gate, self.add("Sigmoid", gate))
        wide = self.add("Mul", gate, self.add("MatMul", inner, self.weight(size, 2 * size)))
        return self.add("Add", data, self.add("MatMul", wide, self.weight(2 * size, size)))


def language_model(path: str, layers: int = 60) -> None:
    """Write a decoder's layers: root mean square norms, rotary positions, attention, a gate."""
    graph = LanguageModel()
    head = graph.size // graph.heads
    angles = np.outer(np.arange(512), 1e4 ** -np.linspace(0, 1, head // 2))
    tables = [graph.constant(f(np.tile(angles, 2))[None, None]) for f in (np.cos, np.sin)]
    data = "x"
    for _ in range(layers):
        data = graph.layer(data, tables)
    found = graph.model([], data, LANGUAGE_OPSET)
    for info in (found.graph.input[0], found.graph.output[0]):
        dims = ["batch", "sequence", graph.size]
        info.CopyFrom(helper.make_tensor_value_info(info.name, TensorProto.FLOAT16, dims))
    onnx.save(found, path)


def _graph(
    nodes: Iterable[NodeProto], output: str, weights: Iterable[TensorProto] = ()
) -> GraphProto:
    return helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        list(weights),
    )


def _save(
    graph: GraphProto, path: str, functions: Iterable[FunctionProto] = (), opset: int = 13
) -> None:
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, functions=list(functions), opset_imports=opsets, ir_version=8)
    onnx.save(model, path)


def many_functions(path: str, count: int) -> None:
    """Functions of two nodes, each called once."""
    functions, calls = [], []
    for index in range(count):
        body = [
            helper.make_node("ReduceMean", ["a"], ["b"], axes=[1]),
            helper.make_node("Softmax", ["b"], ["c"], axis=-1),
        ]
        name, opset = f"F{index}", [helper.make_opsetid("", 13)]
        functions.append(helper.make_function("local", name, ["a"], ["c"], body, opset))
        calls.append(helper.make_node(name, ["x"], [f"y{index}"], domain="local"))
    _save(_graph(calls, "y0"), path, functions)


def nested(path: str, levels: int) -> None:
    """A ReduceMean within Ifs within each other."""
    inner = [helper.make_node("ReduceMean", ["x"], [f"y{levels}"], name="reduce", axes=[1])]
    for level in reversed(range(levels)):
        arms = {}
        for arm, nodes, output in (
            ("then_branch", inner, f"y{level + 1}"),
            ("else_branch", [helper.make_node("Identity", ["x"], ["e"])], "e"),
        ):
            info = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
            arms[arm] = helper.make_graph(nodes, arm, [], [info])
        inner = [helper.make_node("If", ["c"], [f"y{level}"], name=f"if{level}", **arms)]
    _save(_graph(inner, "y0"), path)
