"""A process that is a copy of another one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onnxreduce_cli.verification.copying import can_be_copied

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there processes are copied")

_ECHO = """
import os, sys, time
from onnxreduce_cli.verification.copying import Copy, can_be_copied

def echo():
    print("lost", file=sys.stderr)
    sys.stdout.buffer.write(sys.stdin.buffer.read() + sys.argv[1].encode())
    sys.stdout.flush()

copy = Copy(echo)
copy.stdin.write(b"given ")
copy.stdin.close()
told = [copy.stdout.read() == b"given %d" % os.getpid(), copy.wait(), copy.poll()]
endless = Copy(lambda: time.sleep(600))
told.append(endless.poll())
endless.kill()
told += [endless.wait(), can_be_copied()]

def fail():
    raise SystemExit(0)

told.append(Copy(fail).wait())
open(sys.argv[1], "w").write(repr(told))
"""


@pytest.mark.parametrize("streams", ["", "<&- >&- 2>&-"])
def test_a_copy_answers_and_ends_whatever_the_streams_are(streams: str, tmp_path: Path) -> None:
    told = tmp_path / "told"
    shell = ["sh", "-c", f'exec "$0" -c "$1" "$2" {streams}', sys.executable, _ECHO, str(told)]
    printed = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert told.read_text() == "[True, 0, 0, None, -9, True, 1]"
    assert printed.stderr == ""


def test_a_process_of_several_threads_is_not_copied() -> None:
    program = (
        "import threading\n"
        "from onnxreduce_cli.verification.copying import can_be_copied\n"
        "end = threading.Event()\n"
        "thread = threading.Thread(target=end.wait)\n"
        "thread.start()\n"
        "print(can_be_copied())\n"
        "end.set()\n"
    )
    printed = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert printed.stdout.strip() == b"False"


def test_without_proc_nothing_tells_whether_it_can_be_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: str) -> list[str]:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert not can_be_copied()
