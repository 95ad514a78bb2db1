"""Give mutants to commands until the time is over, and tell what did not end as documented."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from collections import Counter
from pathlib import Path

from tests.apart import Apart, EndedError, LateError
from tests.fuzz import subject
from tests.fuzz.mutants import Mutant, mutant

#: The most that a command may take, in seconds; a machine that does other things is slower.
_SECONDS = 20.0


def outcomes(apart: Apart, found: Mutant) -> list[str]:
    """What is wrong about one mutant, each by its kind; empty if it ends as documented."""
    try:
        wrong: list[str] = apart.call(subject.problems, found, seconds=_SECONDS)
    except EndedError:
        return ["the process ended"]
    except LateError:
        return [f"not done after {_SECONDS:.0f} seconds"]
    if any(problem.startswith("more than") for problem in wrong):
        apart.end()  # It counts the most that its process ever had.
    return wrong


def search(
    seed: int, *, count: int, seconds: float = float("inf"), record: Path | None = None
) -> tuple[int, dict[str, list[int]]]:
    """Try mutants 0, 1, ... of a seed; how many, and the numbers of those that failed, by kind.

    Args:
        seed: of the mutants.
        count: the most to try.
        seconds: when to stop.
        record: a file that holds where an earlier run stopped, and what it found; written as well.
    """
    done, failed = 0, {}
    if record is not None and record.exists():
        known = json.loads(record.read_text())
        if known["seed"] != seed:
            raise SystemExit(f"{record} is of seed {known['seed']}")
        done, failed = known["done"], known["failed"]
    apart, end = Apart(subject.prepare), time.monotonic() + seconds
    try:
        while done < count and time.monotonic() < end:
            for problem in outcomes(apart, mutant(seed, done)):
                failed.setdefault(problem, []).append(done)
                print(f"{done}: {problem}", flush=True)
            done += 1
            if record is not None and done % 50 == 0:
                record.write_text(json.dumps({"seed": seed, "done": done, "failed": failed}))
    finally:
        apart.end()
    if record is not None:
        record.write_text(json.dumps({"seed": seed, "done": done, "failed": failed}))
    return done, failed


def main() -> None:
    """Search as the command line says; exit code 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=1 << 60)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--record", type=Path)
    parser.add_argument("--only", type=int, metavar="NUMBER")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    if options.only is not None:
        found = mutant(seed, options.only)
        Path("mutant.onnx").write_bytes(found.content)
        print("onnxreduce", found.command, "mutant.onnx", *found.arguments)
        wrong = outcomes(Apart(subject.prepare), found)
        print(*wrong, sep="\n")
        sys.exit(1 if wrong else 0)
    print(f"seed {seed}", flush=True)
    done, failed = search(seed, count=options.count, seconds=options.seconds, record=options.record)
    counts = Counter({problem: len(numbers) for problem, numbers in failed.items()})
    for problem, number in counts.most_common():
        print(f"{number:6} {problem}: {failed[problem][:5]}")
    print(f"{done} mutants, {sum(counts.values())} problems")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
