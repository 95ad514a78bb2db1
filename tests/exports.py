"""Exports of PyTorch and scikit-learn, and running models in older wheels of ONNX Runtime.

These need other versions of Python and NumPy than the converter does: each is installed into a
folder of its own, as for `python -m lab`, if a Python for it is there.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from lab.installing import install
from lab.running import environment
from tests.support import run_ort

ROOT = Path(__file__).parent.parent
EXPORTS = ROOT / "tests" / "data" / "exports"
CHILD = Path(__file__).with_name("runtime_child.py")

#: Relative and absolute tolerance by dtype, between two versions that optimise differently.
CLOSE = {"float16": (1e-2, 1e-2), "float32": (1e-4, 1e-5), "float64": (1e-7, 1e-8)}


def names() -> list[str]:
    """The names of all exports."""
    return sorted(path.stem for path in EXPORTS.glob("*.onnx"))


def expected() -> dict[str, list[Any]]:
    """What each export gives, as it is, in the onnxruntime of today."""
    found = {}
    for name in names():
        with np.load(EXPORTS / f"{name}.npz") as feeds:
            found[name] = run_ort(onnx.load(EXPORTS / f"{name}.onnx"), dict(feeds))
    return found


def run_all(version: str, folder: Path) -> int:
    """Run each NAME.onnx of a folder on NAME.npz in a version of onnxruntime, in one process.

    Returns:
        the process's exit code.

    Raises:
        NotThereError: that version cannot be installed here.
    """
    installed = install("onnxruntime", version)
    command = [installed.program, str(CHILD), str(folder)]
    own = environment(installed, str(folder))
    return subprocess.run(command, env=own, timeout=600, check=False).returncode


def found_wrong(folder: Path, name: str, before: list[Any]) -> str:
    """Why a model that was run did not load, or how its outputs differ; empty where they agree."""
    error = folder / f"{name}.error"
    if error.exists():
        return error.read_text(encoding="utf-8")
    return difference(before, outputs_of(folder, name))


def outputs_of(folder: Path, name: str) -> list[Any]:
    """What a model gave that was run."""
    with np.load(folder / f"{name}.out.npz", allow_pickle=False) as found:
        return [found[str(place)] for place in range(len(found))]


def difference(before: list[Any], after: list[Any]) -> str:
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
