"""`convert --strip-metadata`, `--inline-functions` and `--dim`."""

from __future__ import annotations

import onnx
import pytest

from tests.support import model

TEXT = """<ir_version: 10, opset_import: ["" : 18, "local" : 1], doc_string: "by me">
    g (float[N,3] x) => (int64[2] y) { [call] z = local.Same(x)  [shape] y = Shape(z) }
    <domain: "local", opset_import: ["" : 18]> Same (a) => (b) { b = Identity(a) }"""


@pytest.fixture(autouse=True)
def _source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(model(TEXT), "m.onnx")


def test_each_option_does_without_an_opset(onnxreduce):
    result = onnxreduce("convert", "--strip-metadata", "m.onnx", "-o", "stripped.onnx")
    assert result.code == 0, result.err
    assert "metadata of the model and all in it stripped: 7 bytes less" in result.out
    assert onnx.load("stripped.onnx").doc_string == ""
    assert onnxreduce("convert", "m.onnx", "--strip-metadata=nodes", "-o", "kept.onnx").code == 0
    assert onnx.load("kept.onnx").doc_string == "by me"
    result = onnxreduce("convert", "m.onnx", "--inline-functions", "-o", "inlined.onnx")
    assert result.code == 0
    assert "function local.Same: inlined for call" in result.out
    assert not onnx.load("inlined.onnx").functions
    result = onnxreduce("convert", "m.onnx", "--dim", "N=2", "--verify")
    assert result.code == 0, result.err
    assert "dimensions fixed: N = 2" in result.out
    found = onnx.load("m.opset18.onnx")
    assert [node.op_type for node in found.graph.node] == ["Constant"]
    assert found.opset_import[0].version == 18


def test_a_dimension_that_is_not_there(onnxreduce):
    result = onnxreduce("convert", "m.onnx", "--dim", "M=2")
    assert result.code == 2
    assert "the model has no such dimension" in result.err
    assert "it has 'N'" in result.err


def test_a_dimension_that_is_said_twice(onnxreduce):
    result = onnxreduce("convert", "m.onnx", "--dim", "N=2", "--dim", "N=3")
    assert result.code == 2
    assert "it says both 2 and 3 for N" in result.err
    assert (
        "not of the form name=size, as batch=1"
        in onnxreduce("convert", "m.onnx", "--dim", "N=²").err
    )


def test_a_dtype_that_becomes_no_other(onnxreduce):
    result = onnxreduce("convert", "m.onnx", "--dtype", "bfloat16")
    assert result.code == 2
    assert "'bfloat16' is not of the form FROM=TO" in result.err
