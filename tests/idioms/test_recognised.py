"""What ONNX Runtime's optimiser makes of composite operators below the opset they came with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnxreduce_cli
from tests.support import converts, one_node, op_types

pytestmark = pytest.mark.newest

X = np.random.default_rng(1).normal(size=(2, 3, 8)).astype(np.float32)
SCALE, BIAS = X[0, 0] + 3, X[0, 1]
OPSETS = (9, 11, 13, 16)


def optimised(model: ModelProto, folder: Path) -> list[str]:
    """The operators of a model after ONNX Runtime's optimisations."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return op_types(onnx.load(options.optimized_model_filepath))


def fused(
    op_type: str, since: int, inputs: dict[str, Any], opset: int, folder: Path, **options: Any
) -> list[str]:
    """The operators that a node of a composite operator ends as."""
    source = one_node(op_type, since, inputs, **options)
    return optimised(onnxreduce_cli.convert(source, opset), folder)


@pytest.mark.parametrize("constants", [(), ("s", "b")])
@pytest.mark.parametrize("opset", OPSETS)
def test_layer_normalization(opset: int, constants: tuple[str, ...], tmp_path: Path) -> None:
    """Of floats: since 1.32 doubles are left as they are."""
    inputs = {"x": X, "s": SCALE, "b": BIAS}
    found = fused("LayerNormalization", 17, inputs, opset, tmp_path, initializers=constants)
    assert found == ["LayerNormalization"]
    del inputs["b"]
    assert fused("LayerNormalization", 17, inputs, opset, tmp_path) == ["LayerNormalization"]


def _behind_transpose(sizes: list[int | str]) -> ModelProto:
    """A LayerNormalization of the channels of an image, as ConvNeXts have it."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["last"], perm=[0, 2, 3, 1]),
        helper.make_node("LayerNormalization", ["last", "s", "b"], ["normal"], name="norm"),
        helper.make_node("Relu", ["normal"], ["positive"]),
        helper.make_node("Transpose", ["positive"], ["y"], perm=[0, 3, 1, 2]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name in "xy")
    constants = [numpy_helper.from_array(SCALE, "s"), numpy_helper.from_array(BIAS, "b")]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(("sizes", "opsets"), [([2, 8, 3, 4], OPSETS), (["n", 8, "h", "w"], (14,))])
def test_layer_normalization_behind_a_transpose(
    sizes: list[int | str], opsets: tuple[int, ...], tmp_path: Path
) -> None:
    source = _behind_transpose(sizes)
    image = np.random.default_rng(2).normal(size=(2, 8, 3, 4)).astype(np.float32)
    for opset in opsets:
        result = converts(source, opset, {"x": image})
        assert "Flatten" in op_types(result)
        assert "LayerNormalization" in optimised(result, tmp_path)


@pytest.mark.parametrize("shape", [(2, 8, 0, 4), (0, 8, 3, 4), (2, 8, 3, 0)])
def test_no_size_of_0_is_lost_behind_a_transpose(shape: tuple[int, ...]) -> None:
    source = _behind_transpose(["n", 8, "h", "w"])
    for opset in (13, 14):
        converts(source, opset, {"x": np.zeros(shape, np.float32)})


@pytest.mark.parametrize("opset", [*OPSETS, 17, 18])
def test_rms_normalization(opset: int, tmp_path: Path) -> None:
    inputs = {"x": X, "s": SCALE}
    found = fused("RMSNormalization", 23, inputs, opset, tmp_path)
    assert found == ["SimplifiedLayerNormalization"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("opset", [*OPSETS, 18])
def test_gelu(opset: int, dtype: type, tmp_path: Path) -> None:
    found = fused("Gelu", 20, {"x": X.astype(dtype)}, opset, tmp_path)
    assert [item for item in found if item != "Cast"] == ["Gelu"]


@pytest.mark.parametrize("opset", [*OPSETS, 18])
def test_swish(opset: int, tmp_path: Path) -> None:
    assert fused("Swish", 24, {"x": X}, opset, tmp_path) == ["QuickGelu"]
    assert fused("Swish", 24, {"x": X}, opset, tmp_path, alpha=1.702) == ["QuickGelu"]


@pytest.mark.parametrize("axis", [1, -2])
def test_no_bias_is_added_where_nothing_knows_it(axis: int) -> None:
    inputs = {"x": X, "s": X[0]}
    source = one_node("LayerNormalization", 17, inputs, axis=axis)
    written = op_types(onnxreduce_cli.convert(source, 13))
    assert written == ["ReduceMean", "Sub", "Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul"]


def test_gelu_by_tanh_is_eight_nodes() -> None:
    source = one_node("Gelu", 20, {"x": X}, approximate="tanh")
    assert len(op_types(onnxreduce_cli.convert(source, 13))) == 8


def test_the_largest_numbers_do_not_overflow_in_gelu() -> None:
    x = np.array([3e38, -3e38], np.float32)
    result = onnxreduce_cli.convert(one_node("Gelu", 20, {"x": x}), 13)
    np.testing.assert_array_equal(onnxreduce_cli.run(result, {"x": x})["y0"], [x[0], 0])
