"""Models that end or hold up the process that runs them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from onnxreduce_cli.report.verify import as_text
from onnxreduce_cli.verification import CannotRunError, RunFailedError, isolated, run, verify
from onnxreduce_cli.verification.isolated import IsolatedRunner, open_isolated
from onnxreduce_cli.verification.source import Source
from tests.support import model

LOWEST = np.iinfo(np.int32).min
DIVISION = model(
    """
    <ir_version: 8, opset_import: ["": 13]>
    g (int32[N] a, int32[N] b) => (int32[N] y) { y = Div(a, b) }
    """
)
RELU = model(
    '<ir_version: 8, opset_import: ["": 13]> g (float[N] x) => (float[N] y) { y = Relu(x) }'
)
ENDLESS = model(
    """
    <ir_version: 8, opset_import: ["": 13]>
    g (float[N] x) => (float[N] y) <bool yes = {1}> {
        y = Loop ("", yes, x) <body = b (int64 i, bool going, float[N] a) => (bool on, float[N] out)
            { on = Identity(going)  out = Add(a, a) }>
    }
    """
)
X = np.array([1.0, -2.0], np.float32)

# The lowest integer divided by -1 is a trap of this processor's; others give a number.
TRAPS = pytest.mark.skipif(
    os.name == "nt" or os.uname().machine not in ("x86_64", "AMD64", "i686"),
    reason="division does not trap here",
)


@TRAPS
def test_a_crash_costs_a_run_and_no_more() -> None:
    runner = open_isolated(Source(DIVISION, "m"), "onnxruntime")
    trap = {"a": np.array([LOWEST], np.int32), "b": np.array([-1], np.int32)}
    for _ in range(2):
        with pytest.raises(RunFailedError, match=r"crashed on these inputs \(SIGFPE\)"):
            runner.run(trap, ["y"])
    found = runner.run({"a": np.array([7], np.int32), "b": np.array([2], np.int32)}, ["y"])
    assert found["y"].tolist() == [3]


@TRAPS
def test_a_crash_is_in_the_report() -> None:
    inputs = {"a": np.array([LOWEST], np.int32), "b": np.array([-1], np.int32)}
    alone = verify(DIVISION, inputs=inputs)
    assert alone.exit_code == 1
    assert "it crashed on these inputs (SIGFPE)" in as_text(alone)
    # What neither model accepts in ONNX Runtime, the NumPy executor still compares.
    pair = verify(DIVISION, DIVISION, inputs=inputs)
    assert pair.exit_code == 0
    assert [item.executor for item in pair.runs if not item.trials] == ["onnxruntime"] * 2
    with pytest.raises(RunFailedError, match="SIGFPE"):
        run(DIVISION, inputs, executor="onnxruntime")


@pytest.mark.parametrize("executor", ["onnxruntime", "numpy"])
def test_a_loop_without_end(executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "LIMIT", 1.5)
    start = time.perf_counter()
    report = verify(ENDLESS, ENDLESS, executors=[executor])
    assert report.exit_code == 3
    assert "it did not end within 2 seconds" in as_text(report)
    # One trial finds out for each model, not each of the five.
    assert time.perf_counter() - start < 12


def test_what_a_process_held_is_opened_again() -> None:
    runner = IsolatedRunner(Source(RELU, "m"), "onnxruntime")
    assert runner._opened_in is not None
    runner._opened_in._process.kill()
    runner._opened_in._process.wait()
    assert runner.run({"x": X}, ["y"])["y"].tolist() == [1.0, 0.0]


def test_a_model_that_nobody_needs_is_forgotten() -> None:
    first = IsolatedRunner(Source(RELU, "m"), "onnxruntime")
    child, key = first._opened_in, first._key
    assert child is not None
    del first
    assert child.forgotten == [key]
    second = IsolatedRunner(Source(RELU, "m"), "onnxruntime")
    assert child.forgotten == []
    with pytest.raises(KeyError):
        child.ask("run", key, {"x": X}, ["y"])
    assert second.run({"x": X}, ["y"])["y"].tolist() == [1.0, 0.0]


def test_what_an_executor_says_comes_through() -> None:
    broken = ModelProto()
    broken.CopyFrom(RELU)
    broken.graph.node[0].op_type = "Nonsense"
    with pytest.raises(CannotRunError, match="Nonsense"):
        open_isolated(Source(broken, "m"), "onnxruntime")
    with pytest.raises(RunFailedError, match="x"):
        open_isolated(Source(RELU, "m"), "onnxruntime").run(
            {"x": np.zeros((2, 2), np.float32)}, ["y"]
        )


def test_each_thread_has_a_process_of_its_own() -> None:
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda: codes.append(verify(RELU, RELU).exit_code))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0]


def test_modules_of_the_current_folder_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("onnx", "numpy", "pickle", "onnxreduce_cli"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", ".")])
    monkeypatch.setattr(isolated, "_local", threading.local())
    assert run(RELU, {"x": X}, executor="onnxruntime")["y"].tolist() == [1.0, 0.0]


def test_external_data_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    <ir_version: 8, opset_import: ["": 13]>
    g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { y = Add(x, w) }
    """
    onnx.save(
        model(text),
        tmp_path / "m.onnx",
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    monkeypatch.chdir(tmp_path)
    for executor in ("onnxruntime", "numpy"):
        assert run("m.onnx", {"x": X}, executor=executor)["y"].tolist() == [2.0, 0.0]


@pytest.mark.skipif(os.name == "nt", reason="a process does not learn there that its parent ended")
def test_a_run_ends_with_whoever_asked_for_it(tmp_path: Path) -> None:
    onnx.save(ENDLESS, tmp_path / "m.onnx")
    program = (
        "import sys, time\n"
        "from onnxreduce_cli.verification.isolated import IsolatedRunner\n"
        "from onnxreduce_cli.verification.source import Source\n"
        "runner = IsolatedRunner(Source(sys.argv[1], 'm'), 'numpy')\n"
        "print(runner._opened_in._process.pid, flush=True)\n"
        "runner.run({'x': __import__('numpy').ones(2, 'float32')}, ['y'])\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "m.onnx")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        time.sleep(0.5)
        assert _runs(child)
        process.kill()
    end = time.perf_counter() + 20
    while _runs(child) and time.perf_counter() < end:
        time.sleep(0.2)
    assert not _runs(child)


def _runs(process: int) -> bool:
    """Whether a process runs; one that has ended may wait for somebody to ask how."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
