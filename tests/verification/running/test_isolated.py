"""Models that end or hold up the process that runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper

from onnxreduce_cli.api.checks import prepare_checks
from onnxreduce_cli.report.verify import verify_text
from onnxreduce_cli.verification.errors import CannotRunError, LimitError, RunFailedError
from onnxreduce_cli.verification.running import isolated
from onnxreduce_cli.verification.running.isolated import (
    IsolatedRunner,
    end_large_worker,
    open_isolated,
)
from onnxreduce_cli.verification.running.limits import Limits, limited
from onnxreduce_cli.verification.running.sessions import close_models, run_models
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.equivalence import run, verify
from onnxreduce_cli.worker import process
from tests.support import model

LOWEST = np.iinfo(np.int32).min
#: As ml_dtypes names them; NumPy takes the last for a float of its own by the kind of its dtype.
LACKED_BY_NUMPY = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
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


def test_a_model_that_is_refused_is_refused_again() -> None:
    unknown = helper.make_node("NoOperator", ["x"], ["y"], domain="com.microsoft")
    refused = onnx.ModelProto()
    refused.CopyFrom(RELU)
    refused.graph.node[0].CopyFrom(unknown)
    refused.opset_import.add(domain="com.microsoft", version=1)
    runner = IsolatedRunner(ModelSource(refused, "m"), "onnxruntime")
    for _ in range(2):
        with pytest.raises(CannotRunError, match="NoOperator"):
            runner.ready()
        with pytest.raises(CannotRunError, match="NoOperator"):
            runner.run({"x": X}, ["y"])


@TRAPS
def test_a_crash_costs_a_run_and_no_more() -> None:
    runner = open_isolated(ModelSource(DIVISION, "m"), "onnxruntime")
    trap = {"a": np.array([LOWEST], np.int32), "b": np.array([-1], np.int32)}
    for _ in range(2):
        with pytest.raises(RunFailedError, match="ONNX Runtime ended with SIGFPE on these inputs"):
            runner.run(trap, ["y"])
    found = runner.run({"a": np.array([7], np.int32), "b": np.array([2], np.int32)}, ["y"])
    assert found["y"].tolist() == [3]


@TRAPS
def test_a_crash_is_in_the_report() -> None:
    inputs = {"a": np.array([LOWEST], np.int32), "b": np.array([-1], np.int32)}
    alone = verify(DIVISION, inputs=inputs)
    assert alone.exit_code == 1
    assert "ONNX Runtime ended with SIGFPE on these inputs" in verify_text(alone)
    # What neither model accepts in ONNX Runtime, the NumPy executor still compares.
    pair = verify(DIVISION, DIVISION, inputs=inputs)
    assert pair.exit_code == 0
    assert [item.executor for item in pair.runs if not item.trials] == ["onnxruntime"] * 2
    with pytest.raises(RunFailedError, match="SIGFPE"):
        run(DIVISION, inputs, executor="onnxruntime")


@pytest.mark.parametrize("executor", ["onnxruntime", "numpy"])
def test_a_loop_without_end(executor: str) -> None:
    start = time.perf_counter()
    with limited(Limits(1.5)):
        report = verify(ENDLESS, ENDLESS, executors=[executor])
    assert report.exit_code == 3
    assert "the model did not end within 1.5 seconds; to wait longer, say --timeout" in verify_text(
        report
    )
    # One trial finds out for each model, not each of the five.
    assert time.perf_counter() - start < 12


def test_what_a_process_held_is_opened_again() -> None:
    runner = IsolatedRunner(ModelSource(RELU, "m"), "onnxruntime")
    runner.ready()
    runner.worker.end()
    assert runner.run({"x": X}, ["y"])["y"].tolist() == [1.0, 0.0]


def test_a_model_that_nobody_needs_is_forgotten() -> None:
    first = open_isolated(ModelSource(RELU, "m"), "onnxruntime")
    held_by, key = first.worker, first.key
    del first
    assert held_by.deferred == [(close_models, ([key],))]
    second = open_isolated(ModelSource(RELU, "m"), "onnxruntime")
    assert held_by.deferred == []
    with pytest.raises(KeyError, match=str(key)):
        held_by.call(run_models, [key], [{"x": X}], ["y"])
    assert second.run({"x": X}, ["y"])["y"].tolist() == [1.0, 0.0]


def test_what_an_executor_says_comes_through() -> None:
    broken = ModelProto()
    broken.CopyFrom(RELU)
    broken.graph.node[0].op_type = "Nonsense"
    with pytest.raises(CannotRunError, match="Nonsense"):
        open_isolated(ModelSource(broken, "m"), "onnxruntime")
    with pytest.raises(RunFailedError, match="x"):
        open_isolated(ModelSource(RELU, "m"), "onnxruntime").run(
            {"x": np.zeros((2, 2), np.float32)}, ["y"]
        )


def test_the_process_imports_little() -> None:
    program = (
        "import sys\n"
        "import onnxruntime\n"
        "from onnxreduce_cli.verification.running import sessions\n"
        "from onnxreduce_cli.worker import server\n"
        "print(*sys.modules)\n"
    )
    printed = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    modules = printed.stdout.decode().split()
    assert "onnxruntime" in modules
    assert not {"onnx", "click", "ml_dtypes", "google", "onnxruntime.tools"} & set(modules)
    own = {name for name in modules if name.startswith("onnxreduce_cli.")}
    room = "verification.running"
    parts = ("verification", "verification.errors", room, f"{room}.sessions")
    below = ("worker", "worker.server", "errors", "runtime_module", "serializable", "text")
    assert own == {f"onnxreduce_cli.{part}" for part in (*parts, *below)}


def test_where_no_process_starts_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **named: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    process.end_current()
    monkeypatch.setattr(subprocess, "Popen", refuse)
    prepare_checks()
    with pytest.raises(CannotRunError, match="no process can be started for it: Resource"):
        run(RELU, {"x": X}, executor="onnxruntime")


def test_the_process_starts_before_this_one_imports_numpy() -> None:
    program = (
        "import sys\n"
        "from onnxreduce_cli.api.checks import prepare_checks\n"
        "from onnxreduce_cli.worker.process import current_worker\n"
        "prepare_checks()\n"
        "print(*sys.modules)\n"
        "assert current_worker().alive\n"
    )
    printed = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert not {"numpy", "onnx", "onnxruntime"} & set(printed.stdout.decode().split())


def test_a_model_that_takes_more_memory_than_it_may() -> None:
    found = model(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[N] x, int64[R] s) => (float[K] y) { t = Expand(x, s)  y = ReduceSum(t) }
        """
    )
    feeds = {"x": X[:1], "s": np.array([1 << 30])}
    for executor in ("onnxruntime", "numpy"):
        with (
            limited(Limits(memory=1_000_000_000)),
            pytest.raises(
                LimitError, match="more than 1 GB of memory; to allow more, say --memory"
            ),
        ):
            run(found, feeds, executor=executor)
        small = {"x": X[:1], "s": np.array([3])}
        assert run(found, small, executor=executor)["y"].tolist() == [3.0]


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_an_interrupt_is_for_whoever_asks() -> None:
    runner = open_isolated(ModelSource(RELU, "m"), "onnxruntime")
    os.kill(runner.worker.pid, signal.SIGINT)
    worker = runner.worker
    assert runner.run({"x": X}, ["y"])["y"].tolist() == [1.0, 0.0]
    assert runner.worker is worker


@pytest.mark.parametrize("dtype", [*LACKED_BY_NUMPY, "float16", "str", "bool"])
def test_values_of_all_dtypes_come_back(dtype: str) -> None:
    numbers = np.array([[1, 0], [-1, 2]])
    kind = getattr(ml_dtypes, dtype, dtype)
    value = numbers.astype(object).astype(str).astype(object) if dtype == "str" else None
    value = numbers.astype(kind) if value is None else value
    elem_type = helper.np_dtype_to_tensor_dtype(value.dtype)
    info = [helper.make_tensor_value_info(name, elem_type, ["N", 2]) for name in "xy"]
    node = helper.make_node("Identity", ["x"], ["y"])
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    for executor in ("onnxruntime", "numpy"):
        for given in (value, value[:, ::-1], value[:0]):
            got = run(found, {"x": given}, executor=executor)["y"]
            assert got.dtype == given.dtype
            assert got.tolist() == given.tolist()
            assert got.shape == given.shape


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
    monkeypatch.setattr(process, "_local", threading.local())
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


@pytest.mark.skipif(os.name == "nt", reason="looks at processes as Linux shows them")
@pytest.mark.parametrize("executor", ["onnxruntime", "numpy"])
def test_a_run_ends_with_whoever_asked_for_it(executor: str, tmp_path: Path) -> None:
    onnx.save(ENDLESS, tmp_path / "m.onnx")
    program = (
        "import sys, time\n"
        "from onnxreduce_cli.verification.running.isolated import IsolatedRunner\n"
        "from onnxreduce_cli.verification.running.source import ModelSource\n"
        "runner = IsolatedRunner(ModelSource(sys.argv[1], 'm'), sys.argv[2])\n"
        "runner.ready()\n"
        "print(runner.worker.pid, flush=True)\n"
        "runner.run({'x': __import__('numpy').ones(2, 'float32')}, ['y'])\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "m.onnx"), executor]
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


def test_a_model_that_has_run_is_closed_before_the_next_is_opened() -> None:
    waiting: list[int] = []

    def look(done: int, total: int, what: str) -> None:
        waiting.append(len(process.current_worker().deferred))

    verify(RELU, RELU, trials=2, progress=look)
    assert len(waiting) == 5
    assert not any(waiting[1:])


@pytest.mark.parametrize("executor", ["onnxruntime", "numpy"])
@pytest.mark.parametrize("kept", [-(1 << 40), 1 << 40])
def test_a_process_that_keeps_much_memory_is_ended(
    executor: str, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "_KEPT", kept)
    runner = open_isolated(ModelSource(RELU, "m"), executor)
    assert runner.run({"x": X}, ["y"])["y"].tolist() == [1.0, 0.0]
    held_by = runner.worker
    del runner
    end_large_worker()
    assert held_by.alive == (kept > 0)
    again = open_isolated(ModelSource(RELU, "m"), executor)
    assert again.run({"x": X}, ["y"])["y"].tolist() == [1.0, 0.0]


def test_a_process_tells_how_much_memory_it_has() -> None:
    runner = open_isolated(ModelSource(RELU, "m"), "numpy")
    before = runner.worker.memory
    assert 1 << 24 < before < 1 << 29
    runner.worker.call(_keep, 1 << 26)
    assert 1 << 26 <= runner.worker.memory - before < 1 << 27
    runner.worker.end()
    assert runner.worker.memory == 0


def _keep(size: int) -> None:
    kept.append(np.ones(size, np.uint8))


kept: list[np.ndarray] = []
