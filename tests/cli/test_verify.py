"""`onnxreduce verify`."""

from __future__ import annotations

import json
from pathlib import Path

import onnx

SAMPLES = Path(__file__).parents[2] / "samples"
SEGMENTATION = SAMPLES / "segmentation_opset11.onnx"


def test_verify_a_conversion(onnxreduce, tmp_path):
    target = tmp_path / "out.onnx"
    assert onnxreduce("convert", SEGMENTATION, "--opset", 13, "-o", target).code == 0
    result = onnxreduce("verify", SEGMENTATION, target)
    assert result.code == 0
    assert result.out.startswith("EQUIVALENT")
    report = json.loads(onnxreduce("verify", SEGMENTATION, target, "--json").out)
    assert report["equivalent"] is True
    assert onnxreduce("verify", SEGMENTATION, "--executor", "both").code == 0


def test_verify_finds_a_difference(onnxreduce, tmp_path):
    wrong = onnx.load(SEGMENTATION)
    (softmax,) = (node for node in wrong.graph.node if node.op_type == "Softmax")
    softmax.attribute[0].i = 1
    wrong_path = tmp_path / "wrong.onnx"
    onnx.save(wrong, wrong_path)
    result = onnxreduce("verify", SEGMENTATION, wrong_path, "--save-failure", tmp_path / "kept")
    assert result.code == 1
    assert result.out.startswith("NOT EQUIVALENT")
    assert "(Softmax)" in result.out
    assert (tmp_path / "kept" / "input_0.pb").exists()
    replay = ("verify", SEGMENTATION, wrong_path, "--inputs", tmp_path / "kept")
    assert onnxreduce(*replay, "--trials", 1).code == 1


def test_verify_usage(onnxreduce, tmp_path):
    assert onnxreduce("verify", tmp_path / "none.onnx").code == 2
    result = onnxreduce("verify", SEGMENTATION, "--dim", "batch")
    assert result.code == 2
    assert "name=size" in result.err
    result = onnxreduce("verify", SEGMENTATION, "--dim", "nothing=3")
    assert result.code == 2
    for option in ("--trials=0", "--seed=-1", "--rtol=-1", "--atol=nan", "--ulp=-1"):
        result = onnxreduce("verify", SEGMENTATION, option)
        assert result.code == 2
        assert option.partition("=")[0] in result.err


def test_verify_that_nothing_can_run(onnxreduce, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(
        onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18, "far" : 1]>
            g (float[2] x) => (float[2] y) { y = far.Away(x) }"""),
        path,
    )
    result = onnxreduce("verify", path)
    assert result.code == 3
    assert "nothing is known" in result.out
