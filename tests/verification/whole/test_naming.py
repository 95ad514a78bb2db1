"""What messages call executors and models."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime
import pytest

from onnxreduce_cli.verification.compare.values import Errors
from onnxreduce_cli.verification.errors import CannotRunError
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole import naming
from onnxreduce_cli.verification.whole.naming import executor_name, judged_by, short_message
from onnxreduce_cli.verification.whole.results import Comparison
from tests.support import model

TEXT = '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Neg(x) }'


def test_executors_go_by_name_and_version() -> None:
    assert executor_name("numpy") == "NumPy"
    assert executor_name("onnxruntime") == f"ONNX Runtime {onnxruntime.__version__}"


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
    source = ModelSource(path, "m", called="the model")
    assert short_message(said.replace("PATH", str(path)), source) == expected


IR_VERSION = "Unsupported model IR version: 14, max supported IR version: 13"


@pytest.mark.parametrize(
    ("newest", "expected"),
    [
        (17, "it takes opsets up to 17"),
        (18, "it takes IR versions up to 13"),
        (None, "it takes IR versions up to 13"),
    ],
)
def test_of_opset_and_ir_version_the_opset_is_told_where_it_is_too_new(
    newest: int | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(naming, "_newest_opset", lambda: newest)
    assert short_message(IR_VERSION, ModelSource(model(TEXT), "m")) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("ONNX Runtime only *guarantees* support for this is till opset 26.", 26),
        ("something else", None),
        (None, None),
    ],
)
def test_the_newest_opset_is_what_onnx_runtime_says(
    said: str | None, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Runner:
        def run(self, *_: object) -> None:
            if said is not None:
                raise CannotRunError(said)

    monkeypatch.setattr(naming, "open_isolated", lambda *_: Runner())
    naming._newest_opset.cache_clear()
    try:
        assert naming._newest_opset() == expected
    finally:
        naming._newest_opset.cache_clear()


def compared(executor: str, other: str, *, agree: bool) -> Comparison:
    """The comparison of an output of two models, each as an executor computed it."""
    errors = Errors(count=4, mismatches=0 if agree else 1, bit_exact=agree)
    return Comparison("y", ("a", executor), ("b", other), 1, errors)


def test_models_are_equivalent_by_those_who_find_no_difference() -> None:
    found = [
        compared("numpy", "numpy", agree=True),
        compared("onnxruntime", "onnxruntime", agree=False),
    ]
    here = executor_name("onnxruntime")
    by = judged_by(found, [], True, equivalent=True)
    assert by == f"NumPy only: {here} differs, by a deviation of its own"
    assert judged_by(found, [], True, equivalent=False) == f"{here} and NumPy"
