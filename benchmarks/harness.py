"""Measuring whole commands, starting up included: in turns, each in a process of its own.

Turns, so that whatever else the machine does hits all alike: each ratio is the median of those
within a turn, to the first command. Times are of processors, so that they do not wait for others.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

#: What stands for the file that a command reads, and for that which it writes.
SOURCE, TARGET = "{source}", "{target}"

#: The command as its users start it.
PROGRAM = str(Path(sys.executable).with_name("onnxreduce"))

#: Linux's PR_SET_CHILD_SUBREAPER: what a command leaves behind becomes this process's child.
_SUBREAPER = 36


@dataclass(frozen=True)
class Figures:
    """What a run took: seconds of wall and CPU time, megabytes of its largest process."""

    wall: float
    cpu: float
    memory: float

    def to(self, other: Figures) -> Figures:
        """The ratios to those of another run."""
        return Figures(self.wall / other.wall, self.cpu / other.cpu, self.memory / other.memory)

    @staticmethod
    def joined(runs: Sequence[Figures], how: Callable[[Iterator[float]], float]) -> Figures:
        return Figures(
            how(run.wall for run in runs),
            how(run.cpu for run in runs),
            how(run.memory for run in runs),
        )


@dataclass(frozen=True)
class Case:
    """One table: several commands at the same work.

    Attributes:
        title: what is done.
        make: writes the model that is worked on to a path.
        commands: by name; the first is what the others are compared with.
        rounds: how often each has its turn.
    """

    title: str
    make: Callable[[str], None]
    commands: Mapping[str, Sequence[str]]
    rounds: int = 5


def run(case: Case, key: str, folder: Path) -> str:
    """Measure a case, whose model is made by a process that knows it by `key`; return a table."""
    source, target = folder / "model.onnx", folder / "out.onnx"
    make = [sys.executable, "-m", "benchmarks", "--make", key, str(source)]
    subprocess.run(make, check=True, cwd=Path(__file__).parents[1])
    commands = {
        name: [part.format(source=source, target=target) for part in command]
        for name, command in case.commands.items()
    }
    found = measured([*commands.values()], target, case.rounds)
    lines = [
        f"| {case.title} | wall s | CPU s | peak MB | wall | CPU | memory |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, runs in zip(commands, found, strict=True):
        if not runs:
            lines.append(f"| {name} | fails | | | | | |")
            continue
        own = Figures.joined(runs, min)
        to = Figures.joined(
            [run.to(base) for run, base in zip(runs, found[0], strict=True)], statistics.median
        )
        lines.append(
            f"| {name} | {own.wall:.2f} | {own.cpu:.2f} | {own.memory:.0f} | "
            f"{to.wall:.2f} | {to.cpu:.2f} | {to.memory:.2f} |"
        )
    return "\n".join(lines)


def measured(
    commands: Sequence[Sequence[str]], target: Path, rounds: int
) -> list[Sequence[Figures]]:
    """Run commands in turns; return the figures of each, none where it fails.

    They run in the folder of the target, which should be in no project, as they read the settings
    of one. The target is removed before each: a file that takes the place of another is waited for.
    """
    # Not here: the memory of a process that starts another counts as that one's, and here is much.
    call = [sys.executable, __file__, json.dumps([commands, str(target), rounds])]
    done = subprocess.run(call, check=True, stdout=subprocess.PIPE)
    return [[Figures(*run) for run in runs] for runs in json.loads(done.stdout)]


def _run_in_turns(
    commands: Sequence[Sequence[str]], target: Path, rounds: int
) -> list[Sequence[Figures]]:
    # What is installed is compiled once, not each time that it is imported.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    found: list[list[Figures] | None] = [[] for _ in commands]
    for _ in range(rounds):
        for place, command in enumerate(commands):
            runs = found[place]
            if runs is not None:
                target.unlink(missing_ok=True)
                figures = _measured(command, target.parent, kept)
                found[place] = None if figures is None else [*runs, figures]
    return [runs or () for runs in found]


def _measured(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> Figures | None:
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        started = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, env=environment, cwd=folder
        )
        _, status, usage = os.wait4(started.pid, 0)
        wall = time.perf_counter() - start
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode:
            errors.seek(0)
            print(f"{command} failed: {errors.read()[-200:].decode()}", file=sys.stderr)
    # `convert` does not wait for the copy of itself that checks.
    usages = [usage, *_left_behind()]
    if started.returncode:
        return None
    cpu = sum(item.ru_utime + item.ru_stime for item in usages)
    return Figures(wall, cpu, max(item.ru_maxrss for item in usages) / 1024)


def _left_behind() -> Iterator[os.struct_rusage]:  # type: ignore[name-defined]
    """What the processes took that a command did not wait for."""
    while True:
        try:
            yield os.wait4(-1, 0)[2]
        except ChildProcessError:
            return


if __name__ == "__main__":
    _commands, _target, _rounds = json.loads(sys.argv[1])
    _found = _run_in_turns(_commands, Path(_target), _rounds)
    print(json.dumps([[*map(astuple, runs)] for runs in _found]))
