"""Models converted on a real cluster: a scheduler and two workers, processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import onnx
import psutil
import pytest

from onnxreduce_cli.batch.record import NAME, OutputRecord
from tests.support import model

pytestmark = pytest.mark.kit

GOOD = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] axes = {1}> { y = ReduceMean(x, axes) }"""

#: Put in front of what converts in a worker: says when each model is begun and ended, by which
#: worker and process, and ends none before the test lets it go on.
PLANT = """
import os, sys, time
if "-c" in sys.argv:
    import ctypes
    import onnxreduce_cli.api.file_conversion as conversion
    true, go = conversion.check_conversion, os.environ["GO"]
    def say(what, name):
        with open(os.environ["SAID"], "a") as file:
            file.write(f"{what} {name} {os.getppid()} {os.getpid()}\\n")
    def check(found, **options):
        name = found.model.graph.name
        say("begun", name)
        if name == "crash":
            ctypes.string_at(0)
        while not any(os.path.exists(os.path.join(go, what)) for what in (name, "all")):
            time.sleep(0.01)
        result = true(found, **options)
        say("ended", name)
        return result
    conversion.check_conversion = check
if "worker" in sys.argv:
    exec(os.environ["UNLIKE"])
"""

#: What makes a worker another than this machine, and what is said of it.
UNLIKE = {
    "import onnxreduce_cli; onnxreduce_cli.__version__ = '0.0.1'": (
        "has onnxreduce 0.0.1, here it is",
        "install the same on each",
    ),
    "import onnx; onnx.__version__ = '1.0'": ("has onnx 1.0, here it is",),
    "from onnxreduce_cli.batch import cluster; cluster._size = lambda path: -1": (
        "does not see",
        "m0.onnx as it is here",
        "must be shared",
    ),
    "import sys; sys.modules['onnxreduce_cli'] = None": ("has no onnxreduce, here it is",),
}

#: How long a test waits for something: the machine may have other work.
SECONDS = 300


@dataclass(frozen=True)
class Said:
    """A model that was begun, or ended, by a process of a worker."""

    name: str
    worker: int
    process: int


class Fleet:
    """A scheduler, its workers by their process ids, and what these said."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        (folder / "plant").mkdir()
        self._go = folder / "go"
        self._go.mkdir()
        (folder / "plant" / "sitecustomize.py").write_text(PLANT)
        self._said = folder / "said"
        self._said.touch()
        self._stack, self._folder = stack, folder
        plant = {"SAID": str(self._said), "GO": str(self._go), "UNLIKE": ""}
        self._environment = {**os.environ, "PYTHONPATH": str(folder / "plant"), **plant}
        file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--scheduler-file", str(file), "--port", "0")
        # It is there before it is written.
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        self.address = json.loads(file.read_text())["address"]
        self.workers: dict[int, subprocess.Popen[bytes]] = {}

    def add_worker(self, unlike: str = "") -> None:
        self._environment["UNLIKE"] = unlike
        # Without a nanny, so that the process that is killed is the worker.
        place = ["--local-directory", str(self._folder / "scratch"), "--nthreads", "1"]
        started = self._start("worker", self.address, "--no-nanny", *place)
        self.workers[started.pid] = started

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with open(self._folder / "log", "ab") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
                stdout=log,
                stderr=log,
                cwd="/",
                env=self._environment,
            )
        self._stack.callback(started.wait)
        self._stack.callback(started.kill)
        return started

    def go(self, *names: str) -> None:
        """Let models go on; ``all`` for all of them."""
        for name in names:
            (self._go / name).touch()

    def said(self, what: str) -> list[Said]:
        """The models that were begun, or ended, in order."""
        whole, _, _ = self._said.read_text().rpartition("\n")
        lines = [line.split() for line in whole.splitlines()]
        return [Said(name, int(of), int(by)) for event, name, of, by in lines if event == what]

    def held(self) -> list[Said]:
        """The models that were begun and not ended."""
        ended = {said.name for said in self.said("ended")}
        return [said for said in self.said("begun") if said.name not in ended]


def wait_until(holds, run: subprocess.Popen[str] | None = None) -> None:
    """Wait for something that comes about while a command runs."""
    limit = time.monotonic() + SECONDS
    while not holds():
        assert run is None or run.poll() is None, run.communicate()
        assert time.monotonic() < limit
        time.sleep(0.02)


def has_ended(process: int) -> bool:
    """Whether a process is no more, or nobody has asked yet how it ended."""
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Path:
    """A folder of models in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hub").mkdir()
    for number in range(12):
        found = model(GOOD)
        found.graph.name = f"m{number}"
        onnx.save(found, tmp_path / "hub" / f"m{number}.onnx")
    return tmp_path / "hub"


@pytest.fixture
def fleet(tmp_path):
    with ExitStack() as stack:
        yield lambda: Fleet(stack, tmp_path)


def start(fleet: Fleet, *more: str) -> subprocess.Popen[str]:
    command = ["convert", "hub/**/*.onnx", "--for", "onnxruntime==1.14", "--out-dir", "out"]
    return subprocess.Popen(
        [sys.executable, "-m", "onnxreduce_cli", *command, "--cluster", fleet.address, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_worker_killed_in_the_midst(hub, fleet) -> None:
    here = fleet()
    here.add_worker()
    here.add_worker()
    run = start(here, "--resume")
    wait_until(lambda: len({said.worker for said in here.held()}) == 2, run)
    first = [said.name for said in here.held()]
    here.go(*first)
    # What a worker has ended and not yet said so is done again, so none is killed before that.
    wait_until(lambda: {f"{name}.onnx" for name in first} <= set(OutputRecord("out").entries), run)
    wait_until(lambda: len(here.held()) == 2, run)
    lost = here.held()[0]
    os.kill(lost.worker, signal.SIGKILL)
    wait_until(lambda: has_ended(lost.process))
    here.go("all")
    out, err = run.communicate(timeout=SECONDS)
    assert run.returncode == 0, err
    # Nothing is lost.
    assert "12 models: 12 unchanged" in out
    assert {path.name for path in Path("out").iterdir()} == {
        NAME,
        *(path.name for path in hub.iterdir()),
    }
    for path in Path("out").glob("*.onnx"):
        onnx.checker.check_model(onnx.load(path))
    # Nothing is done twice: what was begun again is what the lost worker did not end.
    ended = Counter(said.name for said in here.said("ended"))
    assert set(ended) == {f"m{number}" for number in range(12)}
    assert set(ended.values()) == {1}
    begun = Counter(said.name for said in here.said("begun"))
    assert {name for name, times in begun.items() if times > 1} == {lost.name}
    # The record is the same as ever: another run, here, has nothing to do.
    command = ["convert", "hub/**/*.onnx", "--for", "onnxruntime==1.14", "--out-dir", "out"]
    done = subprocess.run(
        [sys.executable, "-m", "onnxreduce_cli", *command, "--resume"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "12 models: 12 skipped" in done.stdout


def test_a_model_that_ends_its_process_ends_no_worker(hub, fleet) -> None:
    here = fleet()
    here.go("all")
    here.add_worker()
    found = model(GOOD)
    found.graph.name = "crash"
    onnx.save(found, hub / "crash.onnx")
    run = start(here)
    out, err = run.communicate(timeout=SECONDS)
    assert run.returncode == 1, err
    assert "13 models: 1 crashed, 12 unchanged" in out
    assert "crash.onnx: the process that converted it ended with SIGSEGV" in err
    assert [said.name for said in here.said("begun")].count("crash") == 1
    assert all(worker.poll() is None for worker in here.workers.values())


def test_a_scheduler_that_is_gone(hub, fleet) -> None:
    here = fleet()
    here.add_worker()
    run = start(here)
    wait_until(here.held, run)
    here.scheduler.kill()
    _, err = run.communicate(timeout=SECONDS)
    assert run.returncode == 2
    assert "Traceback" not in err
    assert "is gone" in err
    assert "--resume" in err


@pytest.mark.parametrize("unlike", UNLIKE)
def test_a_worker_that_is_not_like_this_machine(hub, fleet, unlike) -> None:
    here = fleet()
    here.add_worker(unlike)
    _, err = start(here).communicate(timeout=SECONDS)
    assert "Traceback" not in err
    assert all(words in err for words in UNLIKE[unlike]), err
    # Nothing was begun, so nothing is there.
    assert not here.said("begun")
    assert not list(Path("out").glob("*.onnx"))


@pytest.mark.parametrize("others", [0, 1])
def test_a_worker_that_is_lost_when_it_is_asked(hub, fleet, others) -> None:
    from distributed import Client

    here = fleet()
    here.go("all")
    here.add_worker(
        "from onnxreduce_cli.batch import cluster; cluster.describe_worker = lambda _: os._exit(9)"
    )
    for _ in range(others):
        here.add_worker()
    with Client(here.address, set_as_default=False) as client:
        client.wait_for_workers(1 + others, timeout=SECONDS)
    run = start(here)
    out, err = run.communicate(timeout=SECONDS)
    assert "Traceback" not in err
    if others:
        assert run.returncode == 0, err
        assert "12 models: 12 unchanged" in out
    else:
        assert run.returncode == 2
        assert "has no workers any more" in err
