"""Measuring: each run in a process of its own, the contenders in turns, the least of all rounds.

Turns, so that whatever else the machine does hits all alike; a process each, so that peak memory is
the contender's own. What is measured is the work from file to file: imports are made before; or
whole commands, starting up included.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Reads the file at the first path and writes the second.
Work = Callable[[str, str], None]


@dataclass(frozen=True)
class Figures:
    """What a run took: seconds of wall and CPU time, megabytes of resident memory at most."""

    wall: float
    cpu: float
    memory: float

    @staticmethod
    def least(runs: Sequence[Figures]) -> Figures:
        return Figures(
            min(run.wall for run in runs),
            min(run.cpu for run in runs),
            min(run.memory for run in runs),
        )


@dataclass(frozen=True)
class Case:
    """One table: several contenders at the same work.

    Attributes:
        title: what is done.
        make: writes the model that is worked on to a path.
        contenders: by name; the first is what the others are compared with.
        rounds: how often each has its turn.
    """

    title: str
    make: Callable[[str], None]
    contenders: dict[str, Work]
    rounds: int = 5


def measured(work: Work, source: str, target: str) -> Figures:
    """Run a contender in this process."""
    # Writing over a file takes some longer than writing a new one.
    Path(target).unlink(missing_ok=True)
    start, cpu = time.perf_counter(), _cpu()
    work(source, target)
    return Figures(time.perf_counter() - start, _cpu() - cpu, _peak_memory())


def run(case: Case, key: str, folder: Path) -> dict[str, Figures | None]:
    """The figures of each contender; None for one that fails on the model.

    Args:
        case: what to measure.
        key: what `python -m benchmarks --measure` knows the case by.
        folder: where the model and what is made of it may be.
    """
    source, target = folder / "model.onnx", folder / "out.onnx"
    _spawn(key, "make", source, target)
    found: dict[str, list[Figures] | None] = {name: [] for name in case.contenders}
    for _ in range(case.rounds):
        for name, runs in found.items():
            if runs is None:
                continue
            shown = _spawn(key, name, source, target)
            if shown is None:
                found[name] = None
            else:
                runs.append(Figures(**json.loads(shown)))
    return {name: runs and Figures.least(runs) for name, runs in found.items()}


def _spawn(*arguments: object) -> str | None:
    """What a new process says that does one thing; None if it fails."""
    command = [sys.executable, "-m", "benchmarks", "--measure", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    if done.returncode:
        print(f"    {arguments[1]} failed: {done.stderr.strip()[-200:]}", file=sys.stderr)
        return None
    return done.stdout.splitlines()[-1] if done.stdout else ""


#: The command as its users start it.
PROGRAM = str(Path(sys.executable).with_name("onnxreduce"))


def least(commands: Sequence[Sequence[str]], target: str, rounds: int) -> list[float]:
    """What whole commands take at least, in seconds of the clock.

    Not of processors: nobody is told what the copy of `convert` took that checks, as that is not
    waited for. The commands run in the folder of the target, which should be in no project, as
    they read the settings of one. A first turn does not count, in which modules are compiled, and
    what they become is kept even where the environment says that Python should not.

    Args:
        commands: the commands.
        target: a file that some of them write; it is removed before each.
        rounds: how often each has its turn.
    """
    for command in commands:
        _took(command, target)
    runs = [[_took(command, target) for command in commands] for _ in range(rounds)]
    return [min(own) for own in zip(*runs, strict=True)]


def _took(command: Sequence[str], target: str) -> float:
    # `convert` waits for the disk before a file takes the place of another; onnx does not.
    Path(target).unlink(missing_ok=True)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=kept, cwd=Path(target).parent)
    return time.perf_counter() - start


def table(title: str, found: dict[str, Figures | None]) -> str:
    """The figures as a table in Markdown, and their ratios to the first contender's."""
    lines = [
        f"| {title} | wall s | CPU s | peak MB | wall | CPU | memory |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    base = next(figures for figures in found.values() if figures is not None)
    for name, figures in found.items():
        if figures is None:
            lines.append(f"| {name} | fails | | | | | |")
            continue
        ratios = (figures.wall / base.wall, figures.cpu / base.cpu, figures.memory / base.memory)
        lines.append(
            f"| {name} | {figures.wall:.2f} | {figures.cpu:.2f} | {figures.memory:.0f} | "
            + " | ".join(f"{ratio:.2f}" for ratio in ratios)
            + " |"
        )
    return "\n".join(lines)


def _cpu() -> float:
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def _peak_memory() -> float:
    """In megabytes; of this process since it began, where the system tells, or of its children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return max(children, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return max(children, int(line.split()[1]) / 1024)
