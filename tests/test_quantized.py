"""Models that ONNX Runtime's quantizer wrote, with products between quantizing nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests.support import op_types

MODELS = Path(__file__).parent / "data" / "quantized"
STATIC = sorted(path.stem for path in MODELS.glob("*_static.onnx"))
PRODUCTS = ("QLinearConv", "QLinearMatMul")


def run(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Run a model in ONNX Runtime without its optimisations."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, inputs)
    return found


def quantum(path: Path) -> float:
    """The largest scale of a model's tensors: what one step more can be."""
    model = onnx.load(path)
    arrays = {item.name: onnx.numpy_helper.to_array(item) for item in model.graph.initializer}
    scales = [
        arrays[node.input[1]]
        for node in model.graph.node
        if node.op_type == "DequantizeLinear" and node.input[1] in arrays
    ]
    return max(float(np.max(scale)) for scale in scales)


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("name", STATIC)
def test_qdq_agrees_within_a_quantum(onnxreduce, tmp_path: Path, name: str, opset: int) -> None:
    source, result = MODELS / f"{name}.onnx", tmp_path / "qdq.onnx"
    options = [item for op_type in PRODUCTS for item in ("--expand", op_type)]
    ended = onnxreduce("convert", source, "-o", result, "--opset", opset, *options)
    assert ended.code == 0, ended.err
    assert not {*PRODUCTS} & {*op_types(onnx.load(result))}
    inputs = dict(np.load(MODELS / f"{name.partition('_')[0]}.npz"))
    for before, after in zip(run(source, inputs), run(result, inputs), strict=True):
        assert before.shape == after.shape
        assert np.abs(before - after).max() <= quantum(source)


#: A dynamic model; ONNX Runtime 1.23 has no ConvInteger of its int8.
FUSED = pytest.param("mobilenet_fused", marks=pytest.mark.newest)


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("name", [*STATIC, "encoder_int4", "bert_int4", FUSED])
def test_no_operators_of_onnx_runtime_are_left(
    onnxreduce, tmp_path: Path, name: str, opset: int
) -> None:
    source, result = MODELS / f"{name}.onnx", tmp_path / "standard.onnx"
    held = {*op_types(onnx.load(source))}
    names = [op_type for op_type in PRODUCTS if op_type in held] + ["com.microsoft"]
    options = [item for op_type in names for item in ("--expand", op_type)]
    ended = onnxreduce("convert", source, "-o", result, "--opset", opset, *options)
    assert ended.code == 0, ended.err
    converted = onnx.load(result)
    assert "com.microsoft" not in {item.domain for item in converted.opset_import}
    assert not any(node.domain for node in converted.graph.node)
    inputs = dict(np.load(MODELS / f"{name.partition('_')[0]}.npz"))
    most = quantum(source) if name in STATIC else 1e-5
    for before, after in zip(run(source, inputs), run(result, inputs), strict=True):
        assert np.abs(before - after).max() <= most


@pytest.mark.parametrize("name", ["encoder_dynamic", "resnet_qdq"])
@pytest.mark.parametrize("opset", [13, 17])
def test_other_formats_stay_as_they_are(onnxreduce, tmp_path: Path, name: str, opset: int) -> None:
    source, result = MODELS / f"{name}.onnx", tmp_path / "out.onnx"
    ended = onnxreduce("convert", source, "-o", result, "--opset", opset)
    assert ended.code == 0, ended.err
    inputs = dict(np.load(MODELS / f"{name.partition('_')[0]}.npz"))
    for before, after in zip(run(source, inputs), run(result, inputs), strict=True):
        np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-4)
