"""How the command line starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests.support import model

#: Converts, and prints what was imported for that.
_CONVERSION = """
import os, sys
from onnxreduce_cli.cli.program import program

os._exit = lambda code: print(*sys.modules)
program()
"""

#: What a plain conversion has no use for: each module takes a tenth of a millisecond at least.
_UNUSED = {
    "onnxruntime",
    "onnxreduce_cli.api.by_name",
    "onnxreduce_cli.api.comparison",
    "onnxreduce_cli.api.library",
    "onnxreduce_cli.batch.run",
    "onnxreduce_cli.engine.avoidance",
    "onnxreduce_cli.engine.passes",
    "onnxreduce_cli.engine.unknown_types",
    "onnxreduce_cli.model.types.called_types",
    "onnxreduce_cli.model.types.specialisation",
    "onnxreduce_cli.model.file.weights",
    "onnxreduce_cli.report",
    "onnxreduce_cli.steps.elementwise.binary_operators",
    "onnxreduce_cli.targets.requirement",
    "onnxreduce_cli.worker.process",
    "shlex",
    "unicodedata",
}


#: What a conversion with checks has no use for either.
_UNUSED_BY_CHECKS = {"concurrent.futures", "logging", "numpy.random", "onnxruntime", "psutil"}


def converted(folder: Path, *options: str) -> list[str]:
    """Convert a model, and return the names of the modules imported."""
    source, target = folder / "a.onnx", folder / "b.onnx"
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[2,3] x) => (float[2,1] y) { a = Add(x, x) y = ReduceMean<axes=[1]>(a) }"""
    onnx.save(model(text), source)
    given = ["convert", str(source), "--opset", "18", *options, "-o", str(target)]
    command = [sys.executable, "-c", _CONVERSION, *given]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, cwd=folder)
    assert target.exists()
    return done.stdout.split()


def test_a_plain_conversion_imports_what_it_needs(tmp_path: Path) -> None:
    names = converted(tmp_path, "--no-check", "-q")
    assert "onnxreduce_cli.steps.reduction.reduce_sum_13_others_18" in names
    assert _UNUSED.intersection(names) == set()
    assert sum(name.startswith("onnxreduce_cli") for name in names) < 140


@pytest.mark.newest  # Older NumPys import numpy.random themselves.
def test_a_conversion_with_checks_imports_what_it_needs(tmp_path: Path) -> None:
    names = converted(tmp_path, "-q")
    assert "onnxreduce_cli.verification.sites.pair_check" in names
    assert _UNUSED_BY_CHECKS.intersection(names) == set()
