"""What the library takes, warns of and raises, beside what the command does."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import onnxreduce
from onnxreduce import InvalidModelError, OnnxreduceWarning, UsageError
from onnxreduce_cli.api.library import convert  # The tests of steps put theirs around its name.
from tests.support import model

SOURCE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N,3] x) => (float[N,1] y) <int64[1] axes = {1}> { [first] y = ReduceMax(x, axes) }"""


def opset(found: ModelProto) -> int:
    return int(found.opset_import[0].version)


@pytest.mark.parametrize("wrong", ["13", 13.0, [13], True])
def test_an_opset_that_is_no_number(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"opset is an integer, such as opset=13, not"):
        onnxreduce.convert(model(SOURCE), wrong)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="ml_opset is an integer"):
        onnxreduce.plan(model(SOURCE), ml_opset=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("target_opset", "; it is opset here"), ("opsett", "; did you mean opset"), ("zzz", "$")],
)
def test_an_unknown_keyword_leads_to_ours(name: str, meant: str) -> None:
    with pytest.raises(TypeError, match=rf"convert\(\) has no keyword '{name}'{meant}"):
        onnxreduce.convert("a.onnx", **{name: 13})


@pytest.mark.parametrize("given", [None, b"model", 13])
def test_what_is_no_model(given: object) -> None:
    said = f"a model is a path or an onnx.ModelProto, not {type(given).__name__}"
    for call in (onnxreduce.convert, onnxreduce.plan):
        with pytest.raises(TypeError, match=said):
            call(given, 13)
    with pytest.raises(TypeError, match=said):
        onnxreduce.run(given, {})


def test_an_opset_as_numpy_has_it() -> None:
    assert opset(onnxreduce.convert(model(SOURCE), np.int64(13))) == 13


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    for call in (onnxreduce.convert, onnxreduce.plan, onnxreduce.convert_version):
        with pytest.raises(FileNotFoundError, match=r"nowhere\.onnx cannot be read"):
            call(str(tmp_path / "nowhere.onnx"), 13)  # type: ignore[operator]
    with pytest.raises(InvalidModelError, match="cannot be read"):
        onnxreduce.convert(tmp_path / "nowhere.onnx", 13)


def test_the_runtime_has_two_names(tmp_path: Path) -> None:
    source = model(SOURCE)
    by_target = onnxreduce.convert(source, target="onnxruntime==1.8")
    assert by_target == onnxreduce.convert(source, runtime="onnxruntime==1.8")
    assert onnxreduce.plan(source, target="onnxruntime==1.8").target == opset(by_target)
    onnx.save(source, tmp_path / "a.onnx")
    done = onnxreduce.convert_file(tmp_path / "a.onnx", target="onnxruntime==1.8")
    assert done.target.endswith("a.onnxruntime-1.8.onnx")
    with pytest.raises(UsageError, match="leave runtime out"):
        onnxreduce.convert(source, target="opencv", runtime="opencv")


def test_an_object_that_holds_a_model() -> None:
    """As `torch.onnx.ONNXProgram` does."""
    program = SimpleNamespace(model_proto=model(SOURCE))
    made = onnxreduce.convert(program, 13)
    assert opset(made) == 13
    assert opset(program.model_proto) == 18
    assert onnxreduce.convert(program, 13, in_place=True) is program.model_proto
    assert onnxreduce.plan(program, 18).source == 13
    assert onnxreduce.inspect(program).found.opsets == {"ai.onnx": 13}
    assert onnxreduce.verify(program, made).equivalent
    assert not onnxreduce.diff(program, made).differs
    found = onnxreduce.run(program, {"x": np.array([[1, 3, 2]], np.float32)})
    assert found["y"].tolist() == [[3.0]]


def test_what_cannot_be_checked_is_warned_of() -> None:
    noise = model(
        """<ir_version: 8, opset_import: ["" : 22]>
        g (float[N,3] x) => (float[N,3] y) { [noise] y = Bernoulli(x) }"""
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        convert(noise, 14)
        convert(model(SOURCE), 13)
    assert len(caught) == len({str(item.message) for item in caught}) == 1, caught
    assert caught[0].category is OnnxreduceWarning
    assert caught[0].filename == __file__
    assert "not checked: Bernoulli node noise" in str(caught[0].message)


def test_weights_beside_the_file_are_warned_of(tmp_path: Path) -> None:
    source = onnx.parser.parse_model(SOURCE)
    source.graph.initializer.append(
        onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    )
    path = tmp_path / "a.onnx"
    onnx.save(source, path, save_as_external_data=True, location="a.bin", size_threshold=1)
    with pytest.warns(OnnxreduceWarning, match=r"a\.bin in .*load_external_data_for_model"):
        made = onnxreduce.convert(path, 13)
    onnx.load_external_data_for_model(made, str(tmp_path))
    assert made.graph.initializer[-1].raw_data or made.graph.initializer[0].raw_data


def test_lookups_hold_what_the_commands_print() -> None:
    found = onnxreduce.inspect(model(SOURCE))
    assert found.to_dict()["reachable"] == list(found.reachable)
    assert 13 in found.reachable
    named = onnxreduce.ops("reducesum")
    assert [item.name for item in named.operators] == ["ReduceSum"]
    assert len(onnxreduce.ops().to_dict()["operators"]) > 150
    with pytest.raises(UsageError, match="did you mean ReduceSum"):
        onnxreduce.ops("ReducSum")
    rows = onnxreduce.targets("opencv==4.6").to_dict()["runtimes"]
    assert [row["name"] for row in rows] == ["opencv"]
    assert len(onnxreduce.targets().runtimes) > 20
    with pytest.raises(UsageError, match="opencv"):
        onnxreduce.targets("opencw")
