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
