"""What messages call executors and models."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import onnx
import pytest

from onnxreduce_cli.verification.naming import executor_name, message
from onnxreduce_cli.verification.source import Source
from tests.support import model

TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Neg(x) }'


def test_executors_go_by_name_and_version() -> None:
    assert executor_name("numpy") == "NumPy"
    assert executor_name("onnxruntime") == f"ONNX Runtime {version('onnxruntime')}"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "Load model from PATH failed:/onnxruntime_src/onnxruntime/core/graph/utils.h:46 void "
            "onnxruntime::Validate(const std::unordered_map<std::string, int>&, bool) ONNX Runtime "
            "only *guarantees* support for models stamped with official released onnx opset "
            "versions. Opset 27 is under development. Current official support for domain ai.onnx "
            "is till opset 26.",
            "it takes opsets up to 26",
        ),
        (
            "/onnxruntime_src/onnxruntime/core/graph/model.cc:256 onnxruntime::Model::Model(const "
            "onnxruntime::ModelOptions&) Unsupported model IR version: 14, max supported IR "
            "version: 13",
            "it takes IR versions up to 13",
        ),
        (
            "Status Message: /onnxruntime_src/onnxruntime/core/cpu/reshape.h:91 "
            "onnxruntime::Reshape(const onnxruntime::TensorShape&, bool) const size was false",
            "Status Message: size was false",
        ),
        ("PATH cannot be read: PATH", "the model cannot be read: the model"),
        ("node 'x' (Max): what it says", "node 'x' (Max): what it says"),
    ],
)
def test_reasons_are_short_and_name_no_path(said: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "tmp123.onnx"
    onnx.save(model(TEXT), path)
    source = Source(path, "m", called="the model")
    assert message(said.replace("PATH", str(path)), source) == expected
