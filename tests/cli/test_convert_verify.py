"""`onnxreduce convert --verify`: how the whole models are compared, and what is said of it."""

from __future__ import annotations

import re
from importlib.metadata import version

import numpy as np
import onnx
import pytest

from onnxreduce_cli import schemas
from onnxreduce_cli.steps import registry
from onnxreduce_cli.verification import naming
from tests.support import model

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N,3,M] x) => (float[N,1,M] y) <int64[1] axes = {1}> { [mean] y = ReduceMean(x, axes) }"""

#: Only one size of N is as large as the shape that it is given.
SIZED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N] x) => (float[1,1] y) <int64[2] shape = {4, HALF}> {
    twice = Concat <axis = 0> (x, x)
    t = Reshape(twice, shape)
    y = ReduceMean(t)
}"""

ONNX_RUNTIME = f"ONNX Runtime {version('onnxruntime')}"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model(TEXT), path)
    return path


@pytest.fixture
def wrong_step(monkeypatch):
    """A step that reduces another axis."""
    key = ("ReduceMean", 18, "down")
    description = registry.STEPS[key].description

    def wrong(context):
        context.replace(inputs=[context.op.Neg(context.input(0))], axes=[1])

    monkeypatch.setitem(registry.STEPS, key, registry.Step(*key, "step", description, wrong))


def test_it_is_said_by_whom(onnxreduce, source):
    result = onnxreduce("convert", source, "--opset", 13, "--verify")
    words = f"verified: the whole models agree on 5 inputs, by {ONNX_RUNTIME} and NumPy\n"
    assert words in result.out


def test_by_numpy_only_where_onnx_runtime_is_too_old(onnxreduce, source):
    """Whether it is the opset or the IR version that it refuses first."""
    newest, taken = schemas.newest_opset(), naming._newest_opset()
    by = f"{ONNX_RUNTIME} and NumPy"
    if taken is not None:
        assert newest - 5 < taken < newest
        by = f"NumPy only: {ONNX_RUNTIME} takes opsets up to {taken}"
    for ir_version in ("auto", "10"):
        call = ("convert", source, "--opset", newest, "--verify", "--force")
        result = onnxreduce(*call, "--ir-version", ir_version)
        assert result.code == 0
        assert f"agree on 5 inputs, by {by}\n" in result.out
        assert "onnxruntime_src" not in result.out + result.err


def test_the_options_of_verify(onnxreduce, source, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 3, 4), np.float32))
    np.savez(tmp_path / "x.npz", x=np.ones((2, 3, 4), np.float32))
    convert = ("convert", source, "--opset", 13, "--force", "--verify")
    for options, inputs in (
        (("--dim", "N=4", "--dim", "M=1", "--trials", 2, "--seed", 3), 2),
        (("-i", f"x={tmp_path / 'x.npy'}"), 1),
        (("--inputs", tmp_path / "x.npz", "--rtol", 0, "--atol", 0), 1),
    ):
        result = onnxreduce(*convert, *options)
        assert result.code == 0
        assert f"agree on {inputs} inputs" in result.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--dim", "Q=4"), "no input has a dimension 'Q'; there are: N, M"),
        (("-i", "x=none.npy"), "none.npy cannot be read"),
        (("-i", "z=none.npy"), "the model has no input 'z'"),
        (("--trials", "0"), "--trials"),
        (("--rtol", "-1"), "--rtol"),
    ],
)
def test_options_that_do_not_fit(onnxreduce, source, options, words):
    result = onnxreduce("convert", source, "--opset", 13, "--verify", *options)
    assert result.code == 2
    assert words in result.err
    assert not source.with_name("model.opset13.onnx").exists()


def test_options_of_comparing_need_verify(onnxreduce, source):
    result = onnxreduce("convert", source, "--opset", 13, "--trials", 2)
    assert result.code == 2
    assert "say --verify too" in result.err


def test_the_tolerances_count(onnxreduce, source, wrong_step):
    call = ("convert", source, "--opset", 13, "--no-check", "--verify")
    assert onnxreduce(*call).code == 1
    assert onnxreduce(*call, "--rtol", 9, "--atol", 1e9).code == 0


def test_no_temporary_file_is_named(onnxreduce, source, wrong_step, tmp_path):
    result = onnxreduce("convert", source, "--opset", 13, "--no-check", "--verify")
    assert result.code == 1
    assert result.err.startswith(f"NOT EQUIVALENT: {source} and the converted model differ\n")
    assert set(re.findall(r"\S+\.onnx", result.err)) == {str(source)}
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("half", [1, 8, 32, 112, 256])
def test_sizes_that_the_model_takes_are_found(onnxreduce, tmp_path, half):
    path = tmp_path / "model.onnx"
    onnx.save(model(SIZED.replace("HALF", str(half))), path)
    result = onnxreduce("convert", path, "--opset", 13, "--verify")
    assert result.code == 0
    assert "agree on 5 inputs" in result.out


def test_sizes_that_are_not_found_are_told(onnxreduce, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model(SIZED.replace("HALF", "501")), path)
    call = ("convert", path, "--opset", 13, "--verify")
    result = onnxreduce(*call)
    assert result.code == 3
    assert result.err.startswith("NOT VERIFIED")
    assert "no sizes of N were found that the model accepts, up to 512" in result.err
    assert "--dim N=SIZE" in result.err
    assert onnxreduce(*call, "--dim", "N=1002").code == 0
