"""Shape inference of models that make it take all memory."""

from __future__ import annotations

import time

import pytest
from onnx import ModelProto, TensorProto, helper

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.model import safe_inference
from onnxreduce_cli.model.safe_inference import infer_shapes


def doubling(op_type: str, count: int, of: str = "a") -> ModelProto:
    """`count` nodes, each of which reads the one before twice, from the constant or an input on."""
    nodes = [helper.make_node("Identity", [of], ["v0"])]
    nodes += [
        helper.make_node(op_type, [f"v{i}", f"v{i}"], [f"v{i + 1}"], axis=0) for i in range(count)
    ]
    nodes.append(helper.make_node("ReduceSum", ["x", f"v{count}"], ["y"]))
    start = helper.make_tensor("a", TensorProto.INT64, [1, 1] if op_type == "Gather" else [1], [0])
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [start],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("op_type", ["Concat", "Gather"])
def test_lists_and_ranks_that_double(op_type: str) -> None:
    model = doubling(op_type, 41)
    start = time.perf_counter()
    assert infer_shapes(model, data_prop=True) is None
    assert time.perf_counter() - start < 20
    # The conversion goes on with what the model declares.
    Conversion(doubling(op_type, 41), 11).plan()


def test_what_stays_small_is_inferred_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_inference, "_apart", lambda *_: pytest.fail("in another process"))
    assert infer_shapes(doubling("Concat", 12), data_prop=True) is not None
    # Features double along an axis; nobody computes their elements.
    assert infer_shapes(doubling("Concat", 41, "x"), data_prop=True) is not None


def test_inference_apart_gives_the_same() -> None:
    model = doubling("Concat", 12)
    apart = safe_inference._apart(model, True)
    assert apart == infer_shapes(model, data_prop=True)


@pytest.mark.parametrize(
    ("domain", "opset", "op_type"),
    [
        ("", 20, "RegexFullMatch"),
        ("ai.onnx.ml", 1, "LabelEncoder"),
        ("ai.onnx.ml", 1, "DictVectorizer"),
    ],
)
def test_an_operator_of_what_has_no_type(domain: str, opset: int, op_type: str) -> None:
    nodes = [
        helper.make_node("Unknown", ["x"], ["u"], domain="other"),
        helper.make_node(op_type, ["u"], ["y"], domain=domain),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("x", 1, [2])], [info("y", 7, None)])
    imports = {"": 20, "other": 1, domain: opset}
    found = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*item) for item in imports.items()]
    )
    assert infer_shapes(found, data_prop=True) is None
