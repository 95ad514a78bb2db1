"""The models that benchmarks work on, by size."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, helper


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


def many_nodes(path: str, count: int, opset: int = 13) -> None:
    """A chain of 20% ReduceMean, which reads its axes at opset 18, 20% Softmax and 60% Add."""
    weights = [helper.make_tensor("axes", TensorProto.INT64, [1], [1])] if opset >= 18 else []
    axes = {} if weights else {"axes": [1]}
    nodes, value = [], "x"
    for index in range(count):
        name = f"n{index}"
        if index % 5 == 0:
            read = [value, *(tensor.name for tensor in weights)]
            nodes.append(helper.make_node("ReduceMean", read, [name], name=name, **axes))
        elif index % 5 == 1:
            nodes.append(helper.make_node("Softmax", [value], [name], name=name, axis=-1))
        else:
            nodes.append(helper.make_node("Add", [value, "x"], [name], name=name))
        value = name
    _save(_graph(nodes, value, weights), path, opset=opset)


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
