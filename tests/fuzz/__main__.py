"""Give mutants to commands until the time is over, and tell what did not end as documented."""

from __future__ import annotations

import argparse
import functools
import json
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.apart import Apart, EndedError, LateError
from tests.fuzz import edge_mutants, subject
from tests.fuzz.mutants import Mutant, mutant
from tests.fuzz.subject import Ended

#: After so many seconds a command hangs, however busy the machine is with others.
_SECONDS = 120.0


def ending(apart: Apart, found: Mutant) -> Ended:
    """How the command ends that a mutant is given to, in a process apart."""
    try:
        ended: Ended = apart.call(subject.ending, found, seconds=_SECONDS)
    except EndedError:
        return Ended("ended", ["the process ended"])
    except LateError:
        return Ended("late", [f"not done after {_SECONDS:.0f} seconds"])
    if any(problem.startswith("more than") for problem in ended.problems):
        apart.end()  # It counts the most that its process ever had.
    return ended


@dataclass
class Tally:
    """What became of the mutants of a seed.

    Attributes:
        seed: the seed.
        done: how many were tried, from the first.
        ends: how often a command ended in each way.
        failed: the numbers of those with a problem, by its kind.
    """

    seed: int
    done: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    failed: dict[str, list[int]] = field(default_factory=dict)

    def add(self, ended: Ended) -> None:
        """Count the next mutant, and print what is wrong about how its command ended."""
        self.ends[ended.how] = self.ends.get(ended.how, 0) + 1
        for problem in ended.problems:
            self.failed.setdefault(problem, []).append(self.done)
            print(f"{self.done}: {problem}", flush=True)
        self.done += 1

    def show(self) -> None:
        """Print the figures."""
        for how, number in sorted(self.ends.items()):
            print(f"{number:6} {how}")
        for problem, numbers in sorted(self.failed.items()):
            print(f"{len(numbers):6} {problem}: {numbers[:5]}")
        print(f"{self.done} mutants, {sum(map(len, self.failed.values()))} problems")


def search(
    seed: int,
    made: Callable[[int], Mutant],
    *,
    count: int,
    seconds: float = float("inf"),
    record: Path | None = None,
) -> Tally:
    """Try mutants 0, 1, ... of a seed.

    Args:
        seed: of the mutants.
        made: gives the mutant of a number.
        count: the most to try.
        seconds: when to stop.
        record: a file that holds where an earlier run stopped, and what it found; written as well.
    """
    tally = Tally(seed)
    if record is not None and record.exists():
        tally = Tally(**json.loads(record.read_text()))
        if tally.seed != seed:
            raise SystemExit(f"{record} is of seed {tally.seed}")
    apart, end = Apart(subject.prepare), time.monotonic() + seconds
    try:
        while tally.done < count and time.monotonic() < end:
            tally.add(ending(apart, made(tally.done)))
            if record is not None:
                record.write_text(json.dumps(asdict(tally)))
    finally:
        apart.end()
    return tally


def main() -> None:
    """Search as the command line says; exit code 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--edges", action="store_true", help="each attribute at its edges instead")
    parser.add_argument("--count", type=int, default=1 << 60)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--record", type=Path)
    parser.add_argument("--only", type=int, metavar="NUMBER")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    again, made, count = f"--seed {seed}", functools.partial(mutant, seed), options.count
    if options.edges:
        seed, again, made = 0, "--edges", edge_mutants.edge_mutant
        count = min(count, edge_mutants.count())
    if options.only is not None:
        found = made(options.only)
        Path("mutant.onnx").write_bytes(found.content)
        print("onnxreduce", found.command, "mutant.onnx", *found.arguments)
        ended = ending(Apart(subject.prepare), found)
        print(ended.how, *ended.problems, sep="\n")
        sys.exit(1 if ended.problems else 0)
    print(f"one again: python -m tests.fuzz {again} --only NUMBER", flush=True)
    tally = search(seed, made, count=count, seconds=options.seconds, record=options.record)
    tally.show()
    if not tally.ends.get("exit code 0"):
        sys.exit("no command succeeded: this has tested nothing")
    sys.exit(1 if tally.failed else 0)


if __name__ == "__main__":
    main()
