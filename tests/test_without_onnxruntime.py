"""Where ONNX Runtime cannot be imported, NumPy alone checks, says so, and no command breaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support import model

TEXT = """<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
g (float[2,3] x) => (float[2] y) <float[3] b = {1, 2, 3}, int64[1] axes = {1}> {
    z = com.microsoft.BiasGelu(x, b)
    y = ReduceMax<keepdims=0>(z, axes)
}"""

REASON = "ONNX Runtime is not installed: pip install onnxruntime"

#: What Python runs first: here nothing can import ONNX Runtime.
NONE = "import sys; sys.modules['onnxruntime'] = None"

#: Here no package is called onnxruntime, as where onnxruntime-gpu or a build of one's own is used.
NAMELESS = """
import importlib.metadata as metadata
known = metadata.distribution
def distribution(name):
    if name.startswith("onnxruntime"):
        raise metadata.PackageNotFoundError(name)
    return known(name)
metadata.distribution = distribution
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = model(TEXT)
    del found.graph.node[0], found.opset_import[1]
    found.graph.node[0].input[0] = "x"
    onnx.save(found, tmp_path / "m.onnx")
    onnx.save(model(TEXT), tmp_path / "ms.onnx")
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    return tmp_path


def python(folder: Path, first: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call Python in a folder; it and all processes that it starts run some code first."""
    (folder / "first").mkdir(exist_ok=True)
    (folder / "first" / "sitecustomize.py").write_text(first)
    paths = [str(folder / "first"), str(Path(__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"},
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert "bug in onnxreduce" not in done.stdout + done.stderr
    return done


def command(folder: Path, line: str, first: str = NONE) -> subprocess.CompletedProcess[str]:
    return python(folder, first, "-m", "onnxreduce_cli", *line.split())


def test_numpy_alone_checks_a_conversion(folder):
    done = command(folder, "convert m.onnx --opset 13 -o n.onnx --json r.json")
    assert done.returncode == 0, done.stderr
    head = done.stdout.splitlines()[0]
    changed = "Converted to opset 13: 1 node changed, all checked by NumPy alone, bit-exact"
    assert head == f"{changed} (n.onnx)"
    assert "1 node, all checked: 1 bit-exact" in done.stdout
    assert done.stderr == f"warning: checked by NumPy alone: {REASON}\n"
    assert f"warning: checked by NumPy alone: {REASON}" in (folder / "r.json").read_text()
    assert onnx.load(folder / "n.onnx").opset_import[0].version == 13


def test_nothing_is_said_of_checks_that_were_not_made(folder):
    for line in ("--opset 18 --dry-run", "--opset 18 -o a.onnx", "--opset 13 --no-check -o b.onnx"):
        done = command(folder, f"convert m.onnx {line}")
        assert done.returncode == 0, done.stderr
        assert "alone" not in done.stdout + done.stderr


def test_whole_models_are_compared_by_numpy_alone(folder):
    done = command(folder, "convert m.onnx --opset 13 --dtype float=double --dry-run --verify")
    assert done.returncode == 0, done.stderr
    assert "checked by NumPy alone" in done.stdout.splitlines()[0]
    assert f"by NumPy only: {REASON}" in done.stdout


def test_a_whole_model_that_options_change(folder):
    done = command(folder, "convert m.onnx --dtype float=double -o n.onnx")
    assert done.returncode == 0, done.stderr
    assert "checked by NumPy alone" in done.stdout.splitlines()[0]
    assert f"does not load the result: it {REASON.removeprefix('ONNX Runtime ')}" in done.stderr


@pytest.mark.parametrize("more", ["", "--verify", "--dry-run --verify"])
def test_strict_refuses(folder, more):
    done = command(folder, f"convert m.onnx --opset 13 --strict {more}")
    assert done.returncode == 1
    expected = f"a strict check needs {REASON.replace(' is', ', which is')}"
    assert done.stderr == f"nothing was converted, as {expected}\n"
    assert sorted(path.name for path in folder.glob("*.onnx")) == ["m.onnx", "ms.onnx"]


def test_many_models(folder):
    done = command(folder, "convert m.onnx ms.onnx --opset 13 --out-dir out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("checked by NumPy alone") == 2
    assert f"m.onnx: warning: checked by NumPy alone: {REASON}" in done.stderr
    done = command(folder, "convert m.onnx ms.onnx --opset 13 --out-dir strict --strict")
    assert done.returncode == 1
    assert "2 models: 2 not checked" in done.stdout


def test_verify_says_it_in_its_first_line(folder):
    done = command(folder, "verify m.onnx m.onnx")
    assert done.returncode == 0, done.stderr
    head = done.stdout.splitlines()[0]
    assert head.startswith("EQUIVALENT: ")
    assert head.endswith(f", by NumPy only: {REASON}")


@pytest.mark.parametrize("line", ["verify m.onnx", "verify m.onnx m.onnx --executor onnxruntime"])
def test_what_numpy_alone_cannot_verify(folder, line):
    done = command(folder, line)
    assert done.returncode == 3
    assert "NOT VERIFIED" in done.stdout
    assert "it is not installed: pip install onnxruntime" in done.stdout


def test_run(folder):
    done = command(folder, "run m.onnx -i x=x.npy")
    assert done.returncode == 3
    expected = f"ONNX Runtime cannot run m.onnx: it {REASON.removeprefix('ONNX Runtime ')}"
    assert done.stderr == f"Error: {expected}; NumPy may: --executor=numpy\n"
    done = command(folder, "run m.onnx -i x=x.npy --executor=numpy")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("run by NumPy:")


@pytest.mark.parametrize(
    "line",
    [
        "inspect ms.onnx",
        "convert ms.onnx --opset 13 --dtype float=double --dry-run",
        "convert ms.onnx --for onnxruntime==1.8 -o n.onnx",
        "diff m.onnx ms.onnx",
        "ops ReduceMax",
        "targets opencv",
    ],
)
def test_what_needs_no_onnx_runtime(folder, line):
    assert command(folder, line).returncode == (1 if line.startswith("diff") else 0)


def test_the_version(folder):
    done = command(folder, "--version")
    assert done.returncode == 0
    assert "onnxruntime is not installed: pip install onnxruntime" in done.stdout.splitlines()


def test_the_version_that_is_installed_is_that_of_none(folder):
    done = command(folder, "convert m.onnx --for installed")
    assert done.returncode == 2
    assert f"{REASON}; or name a version: --for onnxruntime==1.20" in done.stderr


LIBRARY = """
import warnings, onnxreduce
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    onnxreduce.convert("m.onnx", 13)
print(*[item.message for item in found])
try:
    onnxreduce.convert("m.onnx", 13, strict=True)
except onnxreduce.UncheckedError as error:
    print(error)
print(onnxreduce.inspect("ms.onnx").reachable[-1])
"""


def test_the_library(folder):
    lines = python(folder, NONE, "-c", LIBRARY).stdout.splitlines()
    assert lines[0] == f"checked by NumPy alone: {REASON}"
    assert lines[1].startswith("nothing was converted, as a strict check needs ONNX Runtime, which")
    assert int(lines[2]) > 20


def test_what_is_imported_counts_whatever_package_it_is_from(folder):
    import onnxruntime

    done = command(folder, "convert m.onnx --opset 13 -o n.onnx --strict --verify", NAMELESS)
    assert done.returncode == 0, done.stderr
    assert "NumPy alone" not in done.stdout + done.stderr
    assert f"by ONNX Runtime {onnxruntime.__version__} and NumPy" in done.stdout
    done = command(folder, "targets installed --json", NAMELESS)
    assert json.loads(done.stdout)["exit_code"] == 0
