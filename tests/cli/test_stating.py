"""`--type` of `onnxreduce convert`."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from tests.support import model


@pytest.fixture
def source(tmp_path):
    found = model("""<ir_version: 8, opset_import: ["" : 18, "my.ops" : 1]>
    g (float[2,3] x) => (float[N,M] z) { y = my.ops.Foo(x) z = Relu(y) }""")
    found.graph.output[0].CopyFrom(helper.make_empty_tensor_value_info("z"))
    path = tmp_path / "model.onnx"
    onnx.save(found, path)
    return path


def test_the_blocker_says_what_to_type(onnxreduce, source):
    result = onnxreduce("convert", source, "--opset", 13)
    assert result.code == 1
    assert " ".join(result.err.split()).endswith("state it, such as: --type y=float")
    result = onnxreduce("convert", source, "--opset", 13, "--type", "y=float")
    assert result.code == 0
    assert "types taken as given, stated in value_info: y=float" in result.out
    written = onnx.load(source.with_name("model.opset13.onnx"))
    assert [info.name for info in written.graph.value_info] == ["y"]


def test_the_plan_says_what_was_stated(onnxreduce, source):
    result = onnxreduce("convert", source, "--opset", 13, "--dry-run", "--type", "y=float[2,N]")
    assert result.code == 0
    assert "types taken as given, stated in value_info: y=float[2,N]" in result.out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["y"], "'y' is not of the form NAME=DTYPE"),
        (["=float"], "'=float' is not of the form NAME=DTYPE"),
        (["y=float", "y=uint8"], "it says both float and uint8 of 'y'"),
        (["y=flaot"], "there is no dtype 'flaot'; did you mean float"),
        (["w=float"], "--type w: no graph of the model has such a value"),
        (["x=double"], "--type x: it is known to be float[2,3]"),
    ],
)
def test_what_makes_no_sense_is_refused(onnxreduce, source, given, message):
    options = [item for text in given for item in ("--type", text)]
    result = onnxreduce("convert", source, "--opset", 13, *options)
    assert result.code == 2
    assert message in result.err
    assert not source.with_name("model.opset13.onnx").exists()


def test_several_models_take_it_too(onnxreduce, source, tmp_path):
    options = ["--opset", 13, "--out-dir", tmp_path / "out", "--resume", "--type", "y=float"]
    for _ in range(2):
        result = onnxreduce("convert", source, *options)
        assert result.code == 0
    assert (tmp_path / "out" / "model.onnx").exists()
