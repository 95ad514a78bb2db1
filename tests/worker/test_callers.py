"""Programs that convert with checks, however they are run: they run once, and leave nothing behind.

Each says which process it is, and what its worker's is.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests.support import model
from tests.worker.test_process import gone

#: What people write: no main guard, so that what ran the program again would do all of it again.
_CONVERTS = """
import os
with open("runs", "a") as file:
    file.write("run\\n")

import onnx
import onnxreduce
from onnxreduce_cli.worker import process

def convert():
    found = onnxreduce.convert(onnx.load("m.onnx"), 13)
    assert found.opset_import[0].version == 13
    done = onnxreduce.convert_file("m.onnx", "out.onnx", opset=13, force=True, verify=True)
    assert done.checks.checked == 1, done.checks
    assert done.verified.exit_code == 0
    with open("worker", "w") as file:
        file.write(str(process.current_worker().pid))
"""

_CALLS = _CONVERTS + "\nconvert()\n"

#: As in `_CALLS`, by a thread that ends with the program.
_DAEMON = (
    _CONVERTS
    + """
import threading
thread = threading.Thread(target=convert, daemon=True)
thread.start()
thread.join()
"""
)

#: As in `_CALLS`, by a thread that the program does not wait for.
_LEFT = (
    _CONVERTS
    + """
import threading, time

def again():
    while True:
        convert()

threading.Thread(target=again, daemon=True).start()
while not (os.path.exists("worker") and os.path.getsize("worker")):
    time.sleep(0.01)
"""
)

#: Cells in a kernel's namespace, where no file holds the code and there is a running event loop.
_NOTEBOOK = """
import asyncio, code, sys

sys.path.insert(0, "")
shell = code.InteractiveInterpreter({"__name__": "__main__", "__doc__": None})

async def run(cell):
    shell.runcode(compile(cell, "<cell>", "exec"))

async def kernel():
    for cell in CELLS:
        await run(cell)

asyncio.run(kernel())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] axes = {1}> { y = ReduceMean(x, axes) }"""
    onnx.save(model(text), tmp_path / "m.onnx")
    return tmp_path


@pytest.mark.parametrize("way", ["script", "standard input", "command", "notebook"])
@pytest.mark.parametrize("program", [_CALLS, _DAEMON, _LEFT], ids=["calls", "daemon", "left"])
def test_a_program_runs_once_and_leaves_no_worker(way: str, program: str, folder: Path) -> None:
    command, given = [sys.executable], None
    if way == "notebook":
        start, _, end = program.rpartition("\n\n")
        program = f"CELLS = {[start, end]!r}\n{_NOTEBOOK}"
    if way == "script" or way == "notebook":
        (folder / "program.py").write_text(program)
        command.append("program.py")
    elif way == "command":
        command += ["-c", program]
    else:
        command.append("-")
        given = program
    ran = subprocess.run(
        command, input=given, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "")
    if program is not _LEFT:  # Python may say of that how its thread was ended.
        assert ran.stderr == ""
    assert (folder / "runs").read_text() == "run\n"
    assert onnx.load(folder / "out.onnx").opset_import[0].version == 13
    assert gone(int((folder / "worker").read_text()))
