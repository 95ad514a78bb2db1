"""`onnxreduce convert --verify`: how the whole models are compared, and what is said of it."""

from __future__ import annotations

import re
from importlib.metadata import version

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxreduce_cli.steps import registry
from onnxreduce_cli.verification.whole import naming
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
    words = f"verified: the whole models agree on 8 inputs, by {ONNX_RUNTIME} and NumPy\n"
    assert words in result.out


def test_by_numpy_only_where_onnx_runtime_is_too_old(onnxreduce, source):
    """Whether it is the opset or the IR version that it refuses first."""
    # The newest of a release: another process than this one may know none after it.
    newest = max(opset for _, _, opset, *_ in helper.VERSION_TABLE)
    taken = naming._newest_opset()
    by = f"{ONNX_RUNTIME} and NumPy"
    if taken is not None:
        assert newest - 5 < taken < newest
        by = f"NumPy only: {ONNX_RUNTIME} takes opsets up to {taken}"
    for ir_version in ("auto", "10"):
        call = ("convert", source, "--opset", newest, "--verify", "--force")
        result = onnxreduce(*call, "--ir-version", ir_version)
        assert result.code == 0
        assert f"agree on 8 inputs, by {by}\n" in result.out
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
        assert f"agree on {inputs} input" in result.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--dim", "Q=4"), "--dim Q: the model has no such dimension; it has 'N', 'M'"),
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
    assert "add --verify" in result.err


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
    assert "agree on 8 inputs" in result.out


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


def test_a_dry_run_compares_and_writes_nothing(onnxreduce, source, tmp_path):
    result = onnxreduce("convert", source, "--opset", 13, "--dry-run", "--verify")
    assert result.code == 0
    assert "1 node, all checked" in result.out
    assert f"verified: the whole models agree on 8 inputs, by {ONNX_RUNTIME}" in result.out
    quiet = onnxreduce("convert", source, "--opset", 13, "--dry-run", "--verify", "-q")
    assert (quiet.code, quiet.out) == (0, "")
    assert list(tmp_path.iterdir()) == [source]


def test_a_dry_run_finds_what_is_wrong(onnxreduce, source, wrong_step, tmp_path):
    options = ("--opset", 13, "--dry-run", "--verify")
    assert "does not compute the same" in onnxreduce("convert", source, *options).err
    result = onnxreduce("convert", source, *options, "--no-check")
    assert result.code == 1
    assert "NOT EQUIVALENT" in result.out + result.err
    assert list(tmp_path.iterdir()) == [source]


def test_a_dry_run_compares_with_external_data(onnxreduce, tmp_path, monkeypatch):
    given = model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2,3] x) => (float[2,1] y) '
        "<float[3] w = {1, 2, 3}, int64[1] axes = {1}> { s = Mul(x, w) y = ReduceMax(s, axes) }"
    )
    weights = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w")
    next(item for item in given.graph.initializer if item.name == "w").CopyFrom(weights)
    folder = tmp_path / "a"
    folder.mkdir()
    path = folder / "a.onnx"
    onnx.save(given, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    monkeypatch.chdir(tmp_path)
    result = onnxreduce("convert", "a/a.onnx", "--opset", 13, "--dry-run", "--verify")
    assert "the whole models agree" in result.out
    assert sorted(item.name for item in folder.iterdir()) == ["a.onnx", "w.bin"]


def test_a_dry_run_of_what_blocks_compares_nothing(onnxreduce, tmp_path):
    path = tmp_path / "model.onnx"
    text = '<ir_version: 8, opset_import: ["" : 18]> g (bfloat16[2] x) => (bfloat16[1] y) '
    onnx.save(model(text + "{ y = ReduceMax(x) }"), path)
    result = onnxreduce("convert", path, "--opset", 11, "--dry-run", "--verify")
    assert result.code == 1
    assert "verified" not in result.out
    assert "bfloat16" in result.err
