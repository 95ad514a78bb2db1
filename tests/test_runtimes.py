"""Exports of many kinds, converted, load and run in older wheels of ONNX Runtime.

`bash .ci/runtimes` makes an environment for each of these, as their wheels need other versions of
Python and NumPy than the converter does.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxreduce_cli
from tests.support import run_ort

ROOT = Path(__file__).parent.parent
EXPORTS = ROOT / "tests" / "data" / "exports"
CHILD = Path(__file__).with_name("runtime_child.py")

#: By the version of onnxruntime, the opsets to convert to. Of opset 18 and 19, which 1.15.1 loads
#: too, it has not all kernels.
OPSETS = {"1.8.1": (8, 9, 11, 13, 14), "1.15.1": (8, 11, 13, 17)}

#: Relative and absolute tolerance by dtype, between two versions that optimise differently.
CLOSE = {"float16": (1e-2, 1e-2), "float32": (1e-4, 1e-5), "float64": (1e-7, 1e-8)}

pytestmark = pytest.mark.runtimes


def environment(version: str) -> Path:
    return ROOT / f".venv-onnxruntime-{version}" / "bin" / "python"


def installed() -> list[str]:
    return [version for version in OPSETS if environment(version).exists()]


def names() -> list[str]:
    return sorted(path.stem for path in EXPORTS.glob("*.onnx"))


def expected() -> dict[str, list[Any]]:
    """What each export gives, as it is, in the onnxruntime of today."""
    found = {}
    for name in names():
        with np.load(EXPORTS / f"{name}.npz") as feeds:
            found[name] = run_ort(onnx.load(EXPORTS / f"{name}.onnx"), dict(feeds))
    return found


@pytest.fixture(scope="module")
def outputs() -> dict[str, list[Any]]:
    return expected()


def difference(name: str, before: list[Any], after: list[Any]) -> str:
    """How outputs differ; empty where they agree."""
    if len(before) != len(after):
        return f"{len(before)} outputs became {len(after)}"
    for place, (a, b) in enumerate(zip(before, after, strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"output {place}: {a.dtype} {a.shape} became {b.dtype} {b.shape}"
        rtol, atol = CLOSE.get(a.dtype.name, (0, 0))
        if not np.allclose(b, a, rtol, atol, equal_nan=True):
            return f"output {place} is off by {np.abs(b - a).max()}"
    return ""


def test_there_are_exports_and_a_runtime() -> None:
    assert len(names()) >= 34
    assert "1.15.1" in installed(), "onnxruntime 1.15.1 is not there; say: bash .ci/runtimes"


@pytest.mark.parametrize(
    ("version", "opset"), [(version, opset) for version in installed() for opset in OPSETS[version]]
)
def test_all_load_and_agree(
    version: str, opset: int, outputs: dict[str, list[Any]], tmp_path: Path
) -> None:
    wrong = {}
    for name in names():
        plan = onnxreduce_cli.plan(str(EXPORTS / f"{name}.onnx"), opset)
        if plan.blockers:
            wrong[name] = str(plan.blockers[0])
            continue
        result = onnxreduce_cli.convert(str(EXPORTS / f"{name}.onnx"), opset, check=False)
        onnx.checker.check_model(result, full_check=True)
        onnx.save(result, tmp_path / f"{name}.onnx")
        shutil.copy(EXPORTS / f"{name}.npz", tmp_path)
    subprocess.run([environment(version), CHILD, tmp_path], check=True, timeout=600)
    for name in sorted(outputs.keys() - wrong.keys()):
        error = tmp_path / f"{name}.error"
        if error.exists():
            wrong[name] = error.read_text(encoding="utf-8")
            continue
        with np.load(tmp_path / f"{name}.out.npz", allow_pickle=False) as found:
            after = [found[str(place)] for place in range(len(found))]
        if text := difference(name, outputs[name], after):
            wrong[name] = text
    told = "\n".join(f"  {name}: {text[:300]}" for name, text in wrong.items())
    right = len(outputs) - len(wrong)
    assert not wrong, f"{right} of {len(outputs)} load in {version} at {opset} and agree\n{told}"
