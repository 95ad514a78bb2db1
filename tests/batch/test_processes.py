"""Calls in processes of their own."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxreduce_cli.batch.pool import CrashedCall, call_apart
from onnxreduce_cli.batch.processes import Processes


def double(number):
    return 2 * number


def crash(number):
    if number == 1:
        ctypes.string_at(0)
    if number == 2:
        os._exit(7)
    return number


def linger(path):
    """Say that it is at work, then work until it is stopped, then say that."""
    if not path:
        return
    try:
        Path(path).write_text("begun")
        time.sleep(60)
    finally:
        Path(path).write_text("cleared up")


def process(_):
    return os.getpid()


def test_results():
    assert dict(call_apart(double, range(5), Processes(2))) == {n: 2 * n for n in range(5)}
    assert list(call_apart(double, [], Processes(2))) == []


def test_processes_are_used_again_and_there_are_no_more_than_asked_for():
    assert len({pid for _, pid in call_apart(process, range(6), Processes(1))}) == 1
    assert len({pid for _, pid in call_apart(process, range(6), Processes(2))}) <= 2


def test_a_crash_is_that_items_alone():
    found = dict(call_apart(crash, range(6), Processes(2)))
    assert found == {
        0: 0,
        1: CrashedCall("SIGSEGV" if sys.platform != "win32" else found[1].cause),
        2: CrashedCall("exit code 7"),
        3: 3,
        4: 4,
        5: 5,
    }


def test_items_are_drawn_when_a_process_is_free():
    drawn = []

    def items():
        for number in range(4):
            drawn.append(number)
            yield number

    calls = call_apart(double, items(), Processes(1))
    next(calls)
    assert drawn == [0]
    calls.close()
    assert drawn == [0]


def test_leaving_early_stops_what_is_at_work(tmp_path):
    path = tmp_path / "state"
    calls = call_apart(linger, [str(path), ""], Processes(2))
    assert next(calls) == ("", None)
    while not (path.exists() and path.read_text()):
        time.sleep(0.01)
    calls.close()
    assert path.read_text() == "cleared up"


@pytest.mark.skipif(sys.platform == "win32", reason="its processes handle no such signal")
def test_a_process_without_calls_ends_with_its_caller_whatever_becomes_of_signals():
    serve = "from onnxreduce_cli.worker import server; "
    serve += "server.os.kill = lambda *_: None; server.serve()"
    begun = subprocess.Popen(
        [sys.executable, "-c", serve], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        begun.communicate(timeout=20)
        assert begun.returncode == 0
    finally:
        begun.send_signal(signal.SIGKILL)
