"""`onnxreduce inspect`, `diff`, `ops` and `targets`."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from onnxreduce_cli import schemas
from tests.support import model

SAMPLES = Path(__file__).parents[2] / "samples"
REDUCTIONS = SAMPLES / "reductions_opset18.onnx"

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[2,3] y) { [first] s = Abs(x)  [second] y = Softmax<axis = -1>(s) }"""


def test_inspect(onnxreduce):
    result = onnxreduce("inspect", REDUCTIONS)
    assert result.code == 0
    assert "IR version 10, ai.onnx 18" in result.out
    assert "ReduceMax x 1" in result.out
    assert "can reach opset" in result.out
    assert "input [1, 2]" in result.out
    assert "known to take it as it is: " in result.out
    assert "after convert --for: " in result.out


def test_inspect_shows_what_blocks(onnxreduce, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(
        model("""<ir_version: 8, opset_import: ["" : 18]>
            g (bfloat16[2,3] x) => (bfloat16[1,1] y) { [r] y = ReduceMax(x) }"""),
        path,
    )
    result = onnxreduce("inspect", path)
    assert "can reach opset 13-" in result.out
    assert "cannot reach opset 1-12:" in result.out
    assert "ReduceMax node r (opset 18)" in result.out


def test_inspect_names_each_blocker_once_with_its_opsets(onnxreduce, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(
        model("""<ir_version: 8, opset_import: ["" : 18]>
            g (string[2] x, float[2] a) => (string[2] y, float[2] b, bfloat16[2] c) {
                [lower] y = StringNormalizer<case_change_action = "LOWER">(x)
                [sine] b = Sin(a)
                [cast] c = Cast<to = 16>(a)
            }"""),
        path,
    )
    out = onnxreduce("inspect", path).out
    assert "\ncannot reach opset 1-12:\n  1-12: Cast node cast (opset 18): " in out
    assert "\n  1-9: StringNormalizer node lower (opset 18): " in out
    assert "\n  1-6: Sin node sine (opset 18): " in out
    assert [out.count(f" node {name} ") for name in ("lower", "sine", "cast")] == [1, 1, 1]


def test_ops(onnxreduce):
    result = onnxreduce("ops", "ReduceSum")
    assert result.code == 0
    assert "since-versions 1, 11, 13" in result.out
    assert "12 to 13: step: axes: attribute to input" in result.out
    assert onnxreduce("ops", "ai.onnx.ReduceSum") == result
    assert "blocks where" in onnxreduce("ops", "StringNormalizer").out
    result = onnxreduce("ops")
    assert len(result.out.splitlines()) > 190
    assert f"\nIf: {' '.join(map(str, schemas.versions('If')))}\n" in result.out
    assert "\nGelu: 20; --expand; --contract\n" in result.out
    assert "\ncom.microsoft.QLinearAdd: --expand\n" in result.out
    result = onnxreduce("ops", "reducesun")
    assert result.code == 2
    assert "did you mean ReduceSum" in result.err


def test_ops_of_a_model(onnxreduce, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(
        model("""<ir_version: 8, opset_import: ["" : 17, "own" : 1, "com.microsoft" : 1]>
            g (float[2,3] x) => (float[2,3] y) {
                a = own.twice(x) b = com.microsoft.Gelu(a) y = Relu(b)
            }
            <domain: "own", opset_import: ["" : 17]>
            twice (v) => (w) { w = Add(v, v) }"""),
        path,
    )
    result = onnxreduce("ops", "--of", path)
    assert result.code == 0
    head, *names = result.out.splitlines()
    assert head == f"# {path}, opset 17: 3 operators"
    assert names == ["Add", "Relu", "com.microsoft.Gelu"]
    assert onnxreduce("ops", "Add", "--of", path).code == 2
    # What it prints allows the model itself, and nothing else.
    names_file = tmp_path / "ops.txt"
    names_file.write_text(result.out)
    allowed = ["convert", path, "--dry-run", "--allow-ops"]
    assert "0 nodes changed" in onnxreduce(*allowed, names_file).out
    refused = onnxreduce(*allowed, "Add,Relu")
    assert refused.code == 1
    assert "--allow-ops does not take com.microsoft.Gelu" in refused.err


def test_targets(onnxreduce) -> None:
    every = onnxreduce("targets")
    assert every.code == 0
    assert "openvino OpenVINO: 2022.1 to 2026.4" in " ".join(every.out.split())
    one = onnxreduce("targets", "opencv==4.13")
    assert one.code == 0
    assert one.out.startswith("opencv: OpenCV, its dnn module; also called cv2")
    assert one.err.startswith("opencv 4.13 is between 4.12 and 5.0: taken for 4.12")
    unknown = onnxreduce("targets", "opencw")
    assert (unknown.code, unknown.out) == (2, "")
    assert "did you mean opencv?" in unknown.err


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
