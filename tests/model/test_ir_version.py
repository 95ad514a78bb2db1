"""IR versions: the least for an opset, and what of a model needs a newer one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnxreduce_cli.model.ir_version import least_for_features, least_for_opset
from onnxreduce_cli.model.scope import scopes
from onnxreduce_cli.schemas import newest_opset
from tests.support import model


def test_the_least_for_each_opset() -> None:
    expected = {1: 3, 7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 18: 8, 19: 9}
    assert {opset: least_for_opset(opset) for opset in expected} == expected
    every = [least_for_opset(opset) for opset in range(1, newest_opset() + 1)]
    assert every == sorted(every)


def plain() -> ModelProto:
    return model("""<ir_version: 3, opset_import: ["" : 8]>
        g (float[2] x) => (float[2] y) { [n] y = Neg(x) }""")


def initializer(found: ModelProto) -> None:
    found.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))


def listed_initializer(found: ModelProto) -> None:
    initializer(found)
    found.graph.input.append(helper.make_tensor_value_info("w", 1, [2]))


def function(found: ModelProto) -> None:
    found.functions.append(
        helper.make_function(
            "local", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], []
        )
    )


def default(found: ModelProto) -> None:
    function(found)
    found.functions[0].attribute_proto.append(helper.make_attribute("k", 1))


def sparse(found: ModelProto) -> None:
    values = helper.make_tensor("s", 1, [1], [1.0])
    indices = helper.make_tensor("", 7, [1], [0])
    found.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))


def bfloat16(found: ModelProto) -> None:
    found.graph.input.append(helper.make_tensor_value_info("b", TensorProto.BFLOAT16, [2]))


def float8_constant(found: ModelProto) -> None:
    tensor = helper.make_tensor("", TensorProto.FLOAT8E4M3FN, [1], [1.0])
    found.graph.node.append(helper.make_node("Constant", [], ["f"], value=tensor))


FEATURES: list[tuple[Callable[[ModelProto], object], int, str]] = [
    (lambda found: None, 3, "operator set imports"),
    (listed_initializer, 3, "operator set imports"),
    (initializer, 4, "initializer 'w', which is no graph input"),
    (bfloat16, 4, "value 'b' of dtype bfloat16"),
    (lambda found: found.graph.quantization_annotation.add(), 5, "quantization annotations"),
    (sparse, 6, "sparse initializers"),
    (lambda found: found.training_info.add(), 7, "training information"),
    (function, 8, "model-local function 'F'"),
    (default, 9, "default attributes of function 'F'"),
    (float8_constant, 9, "dtype float8e4m3fn"),
    (lambda found: found.graph.metadata_props.add(key="a"), 10, "metadata of the main graph"),
    (lambda found: found.graph.node[0].metadata_props.add(key="a"), 10, "node 'n'"),
    (lambda found: found.graph.input[0].metadata_props.add(key="a"), 10, "metadata of value 'x'"),
    (lambda found: found.graph.node[0].device_configurations.add(), 11, "node 'n'"),
]


@pytest.mark.parametrize(("change", "least", "words"), FEATURES, ids=lambda item: str(item)[:30])
def test_features(change: Callable[[ModelProto], object], least: int, words: str) -> None:
    found = plain()
    change(found)
    needed, why = least_for_features(found, scopes(found))
    assert needed == least
    assert words in why


def test_features_in_branches() -> None:
    found = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x, bool c) => (float[2] y) {
            y = If (c) <
                then_branch = t () => (float[2] a) <float[2] w = {1, 2}> { a = Add(x, w) },
                else_branch = e () => (float[2] b) { b = Neg(x) }
            >
        }""")
    assert least_for_features(found, scopes(found)) == (
        4,
        "initializer 'w', which is no graph input",
    )
    assert isinstance(found, onnx.ModelProto)
