"""The worker: calls in a process beside this one, and how it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import psutil
import pytest

import onnxreduce_cli
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.worker import process
from onnxreduce_cli.worker.process import (
    EndedError,
    LateError,
    TooLargeError,
    UnansweredError,
    Worker,
)

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")


def same(*given):
    return given


def crash():
    ctypes.string_at(0)


def hold(seconds):
    """Take time without ever giving control back to the interpreter."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def fill(size):
    kept = b"1" * size
    time.sleep(60)
    return len(kept)


def loaded(*names):
    return [name in sys.modules for name in names]


def note(text):
    noted.append(text)
    return noted


noted: list[str] = []


def fail(error):
    raise error


class UnsendableError(Exception):
    """An error that no pickle can make again."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def leave(path):
    """Write to a path once asked to end."""
    try:
        Path(path).write_text("begun")
        time.sleep(60)
    finally:
        Path(path).write_text("cleared up")


@pytest.fixture
def worker():
    found = Worker()
    yield found
    found.end()


def gone(pid):
    """Wait until a process is no more; one that nobody has asked how it ended counts as that."""
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array(5, np.int8),
        np.zeros((2, 0, 3), np.float16),
        np.array([["é", ""], ["\0", "long" * 99]], object),
        np.asfortranarray(np.arange(12).reshape(3, 4)),
        np.arange(12)[::2],
        np.array([[1, 0], [-2, 3]]).astype(ml_dtypes.bfloat16),
        np.array([[1, 0], [-2, 3]]).astype(ml_dtypes.int4),
    ],
    ids=lambda value: f"{value.dtype}{list(value.shape)}",
)
def test_values_arrive_as_they_were_sent(worker, value):
    (found, (again,), nothing) = worker.call(same, value, [value], None)
    for item in (found, again):
        assert (item.dtype, item.shape) == (value.dtype, value.shape)
        assert item.tolist() == value.tolist()
    assert nothing is None
    found[...] = value.dtype.type(1)  # It can be written to.


def test_large_values_are_sent_while_large_answers_come(worker):
    values = [bytes([number]) * (1 << 20) for number in range(20)]
    replies = [worker.send(same, value) for value in values]
    assert [reply.result() for reply in replies] == [(value,) for value in values]


def test_what_a_call_raises_is_raised_here(worker):
    with pytest.raises(UsageError, match="no such thing"):
        worker.call(fail, UsageError("no such thing"))
    with pytest.raises(RuntimeError, match="UnsendableError: a and b"):
        worker.call(raise_unsendable)
    assert worker.call(same, 1) == (1,)


def raise_unsendable():
    raise UnsendableError("a", "b")


def test_deferred_calls_are_made_before_the_next(worker):
    worker.deferred += [(note, ("one",)), (note, ("two",))]
    assert worker.call(note, "three") == ["one", "two", "three"]
    assert worker.deferred == []


@POSIX
def test_a_crash_ends_the_worker_and_tells_how(worker):
    first, second, third = (worker.send(*call) for call in ((same, 1), (crash,), (same, 3)))
    assert first.result() == (1,)
    with pytest.raises(EndedError, match=r"^SIGSEGV$"):
        second.result()
    with pytest.raises(UnansweredError):
        third.result()
    assert not worker.alive
    with pytest.raises(UnansweredError):
        worker.call(same, 4)


def test_an_exit_code_is_told(worker):
    with pytest.raises(EndedError, match=r"^exit code 7$"):
        worker.call(os._exit, 7)


def test_what_cannot_start_is_not_taken_for_unanswered(tmp_path, monkeypatch):
    """Else whoever asks again where nothing was answered would do so without end."""
    (tmp_path / "ends_at_once.py").write_text("raise SystemExit(1)")
    monkeypatch.syspath_prepend(tmp_path)
    found = Worker(["ends_at_once"])
    first, second = found.send(same, 1), found.send(same, 2)
    with pytest.raises(EndedError, match=r"^exit code 1$"):
        first.result()
    with pytest.raises(UnansweredError):
        second.result()


def test_a_module_that_is_not_there_is_missed_where_it_is_used():
    assert Worker(["there_is_no_such_module"]).call(same, 1) == (1,)


@POSIX
def test_a_call_that_is_interrupted_does_not_keep_the_next_waiting(worker):
    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            worker.call(time.sleep, 60)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not worker.alive


def test_one_that_is_killed_ends_meanwhile():
    first = process.current_worker()
    pid = first.pid
    process.kill_current()
    assert not first.alive
    assert process.current_worker().call(same, 1) == (1,)
    assert gone(pid)


def test_another_one_takes_the_place_of_one_that_ended():
    first = process.current_worker()
    assert process.current_worker() is first
    first.end()
    second = process.current_worker()
    assert second is not first
    assert second.call(same, 1) == (1,)


@pytest.mark.parametrize("function", [time.sleep, hold])
def test_a_call_that_takes_longer_than_it_may_ends_the_worker(worker, function):
    if function is hold and sys.platform == "win32":
        pytest.skip("usleep as POSIX has it")
    start = time.monotonic()
    late = worker.send(function, 60, seconds=0.3)
    after = worker.send(same, b"1" * (1 << 20))  # More than a pipe takes.
    with pytest.raises(LateError):
        late.result()
    with pytest.raises(UnansweredError):
        after.result()
    assert time.monotonic() - start < 20


def test_time_counts_from_where_the_worker_begins_a_call(worker):
    replies = [worker.send(time.sleep, 0.4, seconds=0.7) for _ in range(4)]
    assert [reply.result() for reply in replies] == [None] * 4


def test_a_call_that_takes_more_memory_than_it_may_ends_the_worker(worker):
    assert worker.call(same, 1, memory=1 << 28) == (1,)
    with pytest.raises(TooLargeError):
        worker.call(fill, 1 << 29, memory=1 << 28)


def test_modules_are_imported_before_the_first_call():
    found = Worker(["json.tool"])
    assert found.call(loaded, "json.tool", "numpy", "onnxreduce_cli.worker.process")[0]
    found.end()


def test_what_is_printed_is_no_answer(worker):
    assert worker.call(os.write, 1, b"printed by native code") == 22
    assert worker.call(print, "by Python") is None
    assert worker.call(os.system, "echo by another process") == 0


@POSIX
def test_an_interrupt_is_for_the_caller(worker):
    assert worker.call(same, 1) == (1,)
    os.kill(worker.pid, signal.SIGINT)
    assert worker.call(same, 2) == (2,)


def test_it_ends_with_the_last_reference():
    found = Worker()
    pid = found.pid
    assert psutil.pid_exists(pid)
    del found
    assert gone(pid)


@POSIX
def test_it_clears_up_when_it_is_stopped(tmp_path):
    found, path = Worker(), tmp_path / "state"
    found.send(leave, str(path))
    while not (path.exists() and path.read_text()):
        time.sleep(0.01)
    found.stop()
    found.wait()
    assert path.read_text() == "cleared up"
    assert not found.alive


def test_the_thread_that_ends_takes_its_worker_along():
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(process.current_worker().pid))
    thread.start()
    thread.join()
    assert gone(found[0])
    assert found[0] != process.current_worker().pid


@POSIX
def test_a_fork_of_this_process_has_a_worker_of_its_own():
    here = process.current_worker()
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if not here.alive and process.current_worker().call(same, 1) == (1,) else 2
            process.end_current()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert here.call(same, 2) == (2,)


#: Starts a worker that does something, says its number, and ends in some way.
_CALLER = """
import os, signal, sys, time
from onnxreduce_cli.worker.process import Worker
signal.signal(signal.SIGINT, signal.default_int_handler)  # Else ignored, as in the background.
worker = Worker()
worker.call(time.sleep, 0)
print(worker.pid, flush=True)
reply = worker.send(time.sleep, 600)
{end}
"""


@pytest.mark.parametrize(
    "end", ["", "sys.exit(3)", "1 / 0", "os._exit(1)", "os.kill(os.getpid(), 9)", "os.abort()"]
)
def test_it_ends_with_its_caller(end):
    ran = subprocess.run(
        [sys.executable, "-c", _CALLER.format(end=end)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    assert gone(int(ran.stdout))


@POSIX
def test_an_interrupt_leaves_none_behind():
    program = _CALLER.format(end="reply.result()")
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as caller:
        assert caller.stdout is not None
        pid = int(caller.stdout.readline())
        os.killpg(caller.pid, signal.SIGINT)
        caller.wait(60)
    assert caller.returncode in (1, 130, -signal.SIGINT)
    assert gone(pid)


@POSIX
def test_it_works_whatever_the_streams_of_its_caller_are(tmp_path):
    program = (
        "import sys\n"
        "from onnxreduce_cli.worker.process import Worker\n"
        "open(sys.argv[1], 'w').write(str(Worker().call(len, 'four')))\n"
    )
    path = tmp_path / "found"
    shell = ["sh", "-c", 'exec "$0" -c "$1" "$2" <&- >&- 2>&-', sys.executable, program, str(path)]
    subprocess.run(shell, check=True, timeout=60)
    assert path.read_text() == "4"


@pytest.mark.parametrize("place", ["PYTHONPATH", "sys.path"])
def test_modules_are_found_where_this_process_finds_them(place, tmp_path):
    """Those of the current folder are none of them, whatever they are called."""
    for name in ("onnx", "numpy", "pickle", "struct", "onnxreduce_cli", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    root = str(Path(onnxreduce_cli.__file__).parents[1])
    program = f"""
import sys
sys.path[:] = [entry for entry in sys.path if entry not in ("", {str(tmp_path)!r})]
if {place == "sys.path"}:
    sys.path.insert(0, {root!r})
import onnxreduce_cli
from onnxreduce_cli.worker.process import Worker
print(Worker(["numpy", "onnx"]).call(len, "four"))
"""
    given = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env = {**given, "PYTHONPATH": root} if place == "PYTHONPATH" else given
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["4"]
