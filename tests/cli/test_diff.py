"""`onnxreduce diff`."""

from __future__ import annotations

import json

import onnx
import pytest

from tests.support import model

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[2,3] y) { [first] s = Abs(x)  [second] y = Softmax<axis = -1>(s) }"""


@pytest.fixture
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(model(TEXT), "a.onnx")
    onnx.save(model(TEXT), "same.onnx")
    onnx.save(model(TEXT.replace("-1", "0")), "b.onnx")
    odd = model(TEXT)
    odd.graph.node[0].name = "first\x1b[2J\nequal"
    odd.graph.node[0].op_type = "Neg"
    onnx.save(odd, "odd.onnx")


@pytest.mark.usefixtures("models")
def test_the_exit_code_is_that_of_diff(onnxreduce):
    same = onnxreduce("diff", "a.onnx", "same.onnx")
    assert (same.code, same.out, same.err) == (0, "", "")
    result = onnxreduce("diff", "a.onnx", "b.onnx")
    assert result.code == 1
    assert result.out == "a.onnx -> b.onnx: nodes: 1 changed\n  1 Softmax: axis -1 → 0: second\n"
    assert onnxreduce("diff", "a.onnx", "b.onnx", "-q").out == ""
    result = onnxreduce("diff", "a.onnx", "nothing.onnx")
    assert result.code == 2
    assert "nothing.onnx" in result.err


@pytest.mark.usefixtures("models")
def test_json(onnxreduce):
    result = onnxreduce("diff", "a.onnx", "b.onnx", "--json")
    assert result.code == 1
    found = json.loads(result.out)
    assert found["differs"]
    assert found["changes"][0]["edits"] == ["axis -1 → 0"]
    assert json.loads(onnxreduce("diff", "a.onnx", "same.onnx", "--json").out)["changes"] == []


@pytest.mark.usefixtures("models")
def test_what_names_hold_does_not_reach_the_terminal(onnxreduce):
    result = onnxreduce("diff", "odd.onnx", "a.onnx")
    assert "\x1b" not in result.out
    assert "first\\x1b[2J\\nequal" in result.out
    assert all(len(line) <= 100 for line in result.out.splitlines())
