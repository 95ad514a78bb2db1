"""Quantized results a quantum apart: accepted halfway between two steps, and only there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.verification.compare.outcomes import RunOutcome, Side
from onnxreduce_cli.verification.sites.pair_check import PairResult, check_pair
from onnxreduce_cli.verification.sites.ties import excuse_ties

_SCALES = {"x_scale": 0.05, "w_scale": 0.02, "y_scale": 0.3}


def convolution() -> ModelProto:
    """Return a QLinearConv of which many products lie halfway: its scales make steps of 1/300."""
    rng = np.random.default_rng(0)
    arrays = {
        "x_scale": np.float32(_SCALES["x_scale"]),
        "x_zero": np.uint8(3),
        "w": rng.integers(-100, 100, (4, 3, 3, 3)).astype(np.int8),
        "w_scale": np.float32(_SCALES["w_scale"]),
        "w_zero": np.int8(0),
        "y_scale": np.float32(_SCALES["y_scale"]),
        "y_zero": np.uint8(5),
        "b": rng.integers(-500, 500, 4).astype(np.int32),
    }
    node = helper.make_node("QLinearConv", ["x", *arrays], ["y"], name="conv")
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 4, 6, 6])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


def written_out(source: ModelProto, opset: int) -> ModelProto:
    result = ModelProto()
    result.CopyFrom(source)
    conversion = Conversion(result, opset, Options(expand=("QLinearConv",)))
    assert not conversion.blockers
    conversion.apply()
    return result


def check(source: ModelProto, result: ModelProto) -> PairResult:
    return check_pair(Pair(source, result, False, True, {}, {}), 0)


@pytest.mark.parametrize("opset", [9, 10, 13, 21])
def test_a_quantum_at_ties_passes_and_is_said(opset: int) -> None:
    source = convolution()
    found = check(source, written_out(source, opset))
    assert not found.failure
    assert not found.unchecked
    assert found.errors.max_abs == 1
    assert not found.errors.bit_exact
    assert any("one quantum apart" in text for text in found.remarks)


@pytest.mark.parametrize("opset", [9, 10, 13, 21])
@pytest.mark.parametrize("scale", _SCALES)
@pytest.mark.parametrize("factor", [1.001, 0.999])
def test_a_wrong_scale_is_caught(scale: str, factor: float, opset: int) -> None:
    source = convolution()
    result = written_out(source, opset)
    (tensor,) = [item for item in result.graph.initializer if item.name == scale]
    wrong = (numpy_helper.to_array(tensor) * np.float32(factor)).astype(np.float32)
    tensor.CopyFrom(numpy_helper.from_array(wrong, scale))
    assert "elements differ" in check(source, result).failure


@pytest.mark.parametrize(
    ("values", "candidate", "expected"),
    [
        ([0.5, 1.5, 2.5], [1, 2, 3], [0, 2, 2]),  # Each to even, and one up at two ties.
        ([0.49, 1.51, 2.5], [1, 1, 2], [1, 1, 2]),  # Off a tie it stays as it is.
        ([0.5, 1.5, 2.5], [2, 2, 2], [2, 2, 2]),  # Two quanta are an error.
    ],
)
def test_only_a_quantum_at_ties_is_excused(
    values: Sequence[float], candidate: Sequence[int], expected: Sequence[int]
) -> None:
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("QuantizeLinear", ["x", "scale"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
            [helper.make_tensor_value_info("y", TensorProto.UINT8, [3])],
            [numpy_helper.from_array(np.array(1, np.float32), "scale")],
        ),
        opset_imports=[helper.make_opsetid("", 13)],
    )
    pair = Pair(model, model, False, True, {}, {})
    reference = np.rint(values).astype(np.uint8)
    outcomes = {
        (Side.REFERENCE, "numpy"): RunOutcome({"y": reference}),
        (Side.CANDIDATE, "numpy"): RunOutcome({"y": np.array(candidate, np.uint8)}),
    }
    feeds = {"x": np.array(values, np.float32)}
    found, number = excuse_ties(pair, feeds, outcomes)
    values_found = found[Side.CANDIDATE, "numpy"].values
    assert values_found is not None
    assert values_found["y"].tolist() == list(expected)
    assert number == np.count_nonzero(values_found["y"] != np.array(candidate))
