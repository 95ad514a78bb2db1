"""How the command line starts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
