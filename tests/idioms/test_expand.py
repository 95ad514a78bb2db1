"""`expand=`: composite operators written out, at an opset that has them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest

import onnxreduce_cli
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.report.plan import plan_text
from tests.support import as_converted, blockers, converts, model, one_node, op_types

pytestmark = pytest.mark.newest

X = np.random.default_rng(3).normal(size=(2, 4, 8)).astype(np.float32)
CHANNELS = X[0, :, 0]
INPUTS = {
    "LayerNormalization": (17, (X, X[0, 0], X[0, 1])),
    "RMSNormalization": (23, (X, X[0, 0])),
    "Gelu": (20, (X,)),
    "HardSwish": (14, (X,)),
    "Mish": (18, (X,)),
    "Swish": (24, (X,)),
    "GroupNormalization": (21, (X, CHANNELS, CHANNELS)),
    "Celu": (12, (X,)),
}


@pytest.mark.parametrize("op_type", INPUTS)
def test_composite_operators_are_written_out_at_the_same_opset(op_type: str) -> None:
    since, arrays = INPUTS[op_type]
    options = {"num_groups": 2} if op_type == "GroupNormalization" else {}
    inputs = {f"x{index}": array for index, array in enumerate(arrays)}
    shape = [[2, 4, 8]]
    source = one_node(op_type, since, inputs, output_shapes=shape, **options)
    for opset in {since, 24}:
        result = converts(source, opset, inputs, expand=[op_type])
        assert op_type not in op_types(result)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32])
def test_what_is_computed_in_another_dtype_is_cast_back(dtype: type) -> None:
    x = (4 * X).astype(dtype)
    source = one_node("ReduceL2", 18, {"x": x})
    converts(source, 18, {"x": x}, expand=["ReduceL2"], in_numpy=True)


def test_a_layer_normalization_with_its_mean_and_deviation() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2, 4, 8] x, float[8] s) => (float[2, 4, 8] y, float[2, 4, 1] m, float[2, 4, 1] d) {
          y, m, d = LayerNormalization(x, s)
        }"""
    )
    converts(source, 17, {"x": X, "s": X[0, 0]}, expand=["LayerNormalization"])


def test_what_is_written_with_itself_at_first_is_expanded_again() -> None:
    axis = np.array(1, np.int64)
    source = one_node("DFT", 20, {"x": X[..., :2], "n": None, "axis": axis})
    result = converts(source, 20, {"x": X[..., :2], "axis": axis}, expand=["DFT"])
    assert "DFT" not in op_types(result)


def test_what_cannot_be_written_without_itself_is_refused() -> None:
    inputs = {"x": X[0], "i": np.zeros((1, 8), np.int64), "u": X[0, :1]}
    source = one_node("ScatterElements", 18, inputs)
    (blocker,) = blockers(source, 18, expand=["ScatterElements"])
    assert blocker.reason == "it cannot be expanded: at opset 18 it takes ScatterElements itself"
    assert blocker.advice == "leave ScatterElements out of --expand"


def test_operators_of_a_body_are_expanded_too() -> None:
    source = one_node("LogSoftmax", 13, {"x": X})
    result = converts(source, 18, {"x": X}, expand=["LogSoftmax", "ReduceLogSumExp", "Gelu"])
    assert {"LogSoftmax", "ReduceLogSumExp"}.isdisjoint(op_types(result))


def test_a_cast_like_becomes_a_cast_with_its_attributes() -> None:
    inputs = {"x": X, "like": np.zeros(1, ml_dtypes.float8_e4m3fn)}
    source = one_node("CastLike", 24, inputs, saturate=0)
    result = onnxreduce_cli.convert(source, 24, expand=["CastLike"])
    assert op_types(result) == ["Cast"]
    assert {item.name: item.i for item in result.graph.node[0].attribute} == {
        "saturate": 0,
        "to": onnx.TensorProto.FLOAT8E4M3FN,
    }


def test_what_the_model_lacks_is_said() -> None:
    source = one_node("Mish", 18, {"x": X})
    plan = onnxreduce_cli.plan(source, 18, expand=["Softmax", "Mish", "Celu"])
    assert plan.lacking == ("Celu", "Softmax")
    assert "the model has no Celu, Softmax" in plan_text(as_converted(plan))
    assert not onnxreduce_cli.plan(source, 18).lacking


def test_unknown_names_get_a_suggestion() -> None:
    source = one_node("Relu", 18, {"x": X})
    with pytest.raises(UsageError, match="did you mean LayerNormalization"):
        onnxreduce_cli.plan(source, 18, expand=["LayerNormalisation"])
