"""`onnxreduce run`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import onnxreduce_cli
from onnxreduce_cli.schemas import newest_opset
from onnxreduce_cli.verification.errors import CannotRunError
from tests.support import model

SAMPLES = Path(__file__).parents[2] / "samples"
REDUCTIONS = SAMPLES / "reductions_opset18.onnx"


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


def test_onnxruntime_is_the_default_and_named(onnxreduce, tmp_path):
    inputs, kept = SAMPLES / "reductions_opset18.npz", tmp_path / "out.npz"
    call = ("run", REDUCTIONS, "--inputs", inputs)
    by = f"run by ONNX Runtime {onnxruntime.__version__}"
    assert onnxreduce(*call).out.startswith(f"{by}:\n")
    assert onnxreduce(*call, "-o", kept).out == f"{kept}: 6 outputs, {by}\n"
    assert onnxreduce(*call, "--executor", "numpy").out.startswith("run by NumPy:\n")
    assert json.loads(onnxreduce(*call, "--json").out)["executor"] == "onnxruntime"


def test_what_onnxruntime_cannot_run_numpy_may(onnxreduce, tmp_path):
    path = tmp_path / "newer.onnx"
    text = f"""<ir_version: 8, opset_import: ["" : {newest_opset() + 1}]> g () => (float[1] x) {{
        x = Constant <value = float[1] {{1}}> ()
    }}"""
    path.write_bytes(model(text).SerializeToString())
    result = onnxreduce("run", path)
    assert result.code == 3
    assert "newer.onnx: it takes opsets up to " in result.err
    assert result.err.endswith("; NumPy may: --executor=numpy\n")
    with pytest.raises(CannotRunError, match="NumPy may: executor=numpy"):
        onnxreduce_cli.run(path, {})


def test_values_have_no_more_digits_than_their_dtype(onnxreduce, tmp_path):
    path = tmp_path / "tenths.onnx"
    text = """<ir_version: 8, opset_import: ["" : 13]> g () => (float[2] x) {
        x = Constant <value = float[2] {0.1, 0.2}> ()
    }"""
    onnx.save(model(text), path)
    assert "\n  [0.1, 0.2]\n" in onnxreduce("run", path).out


def test_integers_are_shown_in_full(onnxreduce, tmp_path):
    path, given = tmp_path / "m.onnx", tmp_path / "x.npy"
    onnx.save(
        model("""<ir_version: 8, opset_import: ["" : 13]>
            g (int64[70] x) => (int64[70] y) { y = Identity(x) }"""),
        path,
    )
    np.save(given, np.arange(70) + (2**62 + 1))
    call = ("run", path, "-i", f"x={given}")
    assert "y: int64[70], min 4611686018427387905, mean 4.61169e+18, max " in onnxreduce(*call).out
    (output,) = json.loads(onnxreduce(*call, "--json").out)["outputs"]
    assert (output["min"], output["max"]) == (2**62 + 1, 2**62 + 70)


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
