"""`onnxreduce inspect`, `ops`, `run` and `verify`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxreduce_cli
from tests.support import model

SAMPLES = Path(__file__).parents[2] / "samples"
SEGMENTATION = SAMPLES / "segmentation_opset11.onnx"
REDUCTIONS = SAMPLES / "reductions_opset18.onnx"


def test_inspect(onnxreduce):
    result = onnxreduce("inspect", REDUCTIONS)
    assert result.code == 0
    assert "IR version 10, ai.onnx 18" in result.out
    assert "ReduceMax x 1" in result.out
    assert "can reach opset" in result.out
    assert "input [1, 2]" in result.out
    assert "runs as it is, by what onnxreduce targets knows, in: " in result.out
    assert "after convert --for in: " in result.out


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


def test_ops(onnxreduce):
    result = onnxreduce("ops", "ReduceSum")
    assert result.code == 0
    assert "since-versions 1, 11, 13" in result.out
    assert "12 to 13: step: axes: attribute to input" in result.out
    assert onnxreduce("ops", "ai.onnx.ReduceSum") == result
    assert "blocks where" in onnxreduce("ops", "StringNormalizer").out
    result = onnxreduce("ops")
    assert len(result.out.splitlines()) > 190
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
    assert "--allow-ops has no com.microsoft.Gelu, which is not converted" in refused.err


@pytest.mark.parametrize("executor", ["numpy", "onnxruntime"])
def test_run(onnxreduce, tmp_path, executor):
    inputs = SAMPLES / "reductions_opset18.npz"
    kept = tmp_path / "out.npz"
    call = ("run", REDUCTIONS, "--executor", executor, "--inputs", inputs)
    assert onnxreduce(*call, "-o", kept).code == 0
    expected = onnxreduce_cli.run(str(REDUCTIONS), dict(np.load(inputs)), executor=executor)
    with np.load(kept) as found:
        assert list(found) == list(expected)
        for name in found:
            assert np.array_equal(found[name], expected[name])
    result = onnxreduce(*call)
    assert all(name in result.out for name in expected)


def test_run_leaves_a_device_alone(onnxreduce, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    inputs = SAMPLES / "reductions_opset18.npz"
    result = onnxreduce("run", REDUCTIONS, "--inputs", inputs, "-o", pipe)
    assert result.code == 2
    assert "It is no regular file" in result.err
    assert pipe.is_fifo()


def test_run_of_what_is_no_tensor(onnxreduce, tmp_path):
    path, kept = tmp_path / "rows.onnx", tmp_path / "out.npz"
    text = """<ir_version: 8, opset_import: ["" : 13]> g () => (seq(float[1]) rows, float[2] x) {
        x = Constant <value = float[2] {1, 2}> ()  rows = SplitToSequence <axis = 0> (x)
    }"""
    onnx.save(model(text), path)
    assert "rows: sequence" in onnxreduce("run", path).out
    result = onnxreduce("run", path, "-o", kept)
    assert result.code == 2
    assert "output 'rows' is no tensor, which an .npz file cannot hold" in result.err
    assert not kept.exists()


def test_run_takes_one_set_of_inputs(onnxreduce, tmp_path):
    sets = tmp_path / "sets"
    for number in range(2):
        folder = sets / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        tensor = onnx.numpy_helper.from_array(np.ones((1, 2), np.float32), "x")
        (folder / "input_0.pb").write_bytes(tensor.SerializeToString())
    path = tmp_path / "m.onnx"
    text = """<ir_version: 8, opset_import: ["" : 13]>
        g (float[1,2] x) => (float[1,2] y) { y = Relu(x) }"""
    onnx.save(model(text), path)
    result = onnxreduce("run", path, "--inputs", sets)
    assert result.code == 2
    assert "holds 2 sets of inputs; name one" in result.err
    assert onnxreduce("run", path, "--inputs", sets / "test_data_set_1").code == 0


def test_run_without_inputs(onnxreduce):
    result = onnxreduce("run", REDUCTIONS)
    assert result.code == 2
    assert "input0" in result.err


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


def test_targets(onnxreduce) -> None:
    every = onnxreduce("targets")
    assert every.code == 0
    assert "openvino         OpenVINO: 2022.1 to 2026.4" in every.out
    one = onnxreduce("targets", "opencv==4.13")
    assert one.code == 0
    assert one.out.startswith("opencv: OpenCV dnn; also called cv2")
    assert one.err.startswith("nothing is known of opencv 4.13: taken for 4.12")
    unknown = onnxreduce("targets", "opencw")
    assert (unknown.code, unknown.out) == (2, "")
    assert "did you mean opencv?" in unknown.err
