"""How the command line starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests.support import model

#: Prints the threads of this process, as Linux counts them, and what processes that it starts see.
_PROGRAM = """
import os, sys
from onnxreduce_cli.cli.starting import import_numpy

import_numpy()
print("numpy" in sys.modules, len(os.listdir("/proc/self/task")))
print(os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.parametrize("given", [None, "2"])
def test_numpy_is_imported_without_threads_unless_some_are_asked_for(given: str | None) -> None:
    known = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    env = known if given is None else {**known, "OPENBLAS_NUM_THREADS": given}
    printed = subprocess.run(
        [sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, check=True, env=env, text=True
    )
    expected = ["True", "1", "None"] if given is None else ["False", "1", "2"]
    assert printed.stdout.split() == expected


#: Prints whether a process checks pairs, what runs ONNX Runtime, whether that is imported here, and
#: what it makes of a model.
_CHECKS = """
import sys
{before}
from onnxreduce_cli.cli.starting import prepared

def command(**options):
    here = "onnxruntime" in sys.modules
    from onnxreduce_cli.verification import pair_process, process, run
    checks = pair_process.prepared() is not None
    kind = type(process.start("onnxruntime")._process).__name__
    feeds = {{"x": __import__("numpy").array([1, -1], "float32")}}
    print(checks, kind, here, *run(sys.argv[1], feeds)["y"].tolist())

prepared(command)(no_check=False, dry_run=False, verify={verify})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there processes are copied")
@pytest.mark.parametrize(
    ("before", "verify", "expected"),
    [
        ("", False, "True Popen"),
        ("", True, "True Copy"),
        ("import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])", False, "False Copy"),
        ("import numpy", True, "False Popen"),
    ],
)
def test_copies_of_a_process_that_has_imported_numpy_alone_check(
    before: str, verify: bool, expected: str, tmp_path: Path
) -> None:
    source = model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    )
    onnx.save(source, tmp_path / "m.onnx")
    checks = _CHECKS.format(before=before, verify=verify)
    program = [sys.executable, "-c", checks, str(tmp_path / "m.onnx")]
    env = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    printed = subprocess.run(program, stdout=subprocess.PIPE, check=True, env=env, text=True)
    assert printed.stdout.split() == [*expected.split(), "False", "1.0", "0.0"]


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
    "onnxreduce_cli.model.specialisation",
    "onnxreduce_cli.model.weights",
    "onnxreduce_cli.report",
    "onnxreduce_cli.steps.elementwise.binary_operators",
    "onnxreduce_cli.targets.requirement",
    "onnxreduce_cli.verification.process",
    "shlex",
    "unicodedata",
}


def test_a_plain_conversion_imports_what_it_needs(tmp_path: Path) -> None:
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[2,3] x) => (float[2,1] y) { a = Add(x, x) y = ReduceMean<axes=[1]>(a) }"""
    onnx.save(model(text), source)
    options = ["--opset", "18", "--no-check", "-q", "-o", str(target)]
    command = [sys.executable, "-c", _CONVERSION, "convert", str(source), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, cwd=tmp_path)
    names = done.stdout.split()
    assert target.exists()
    assert "onnxreduce_cli.steps.reduction.reduce_axes_13_18" in names
    assert _UNUSED.intersection(names) == set()
    assert sum(name.startswith("onnxreduce_cli") for name in names) < 140
