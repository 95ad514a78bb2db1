"""Changes the code in small ways and looks whether its tests notice: mutation testing.

    nox -s mutation -- [--count 300] [--jobs 2] [--again FILE] [PATH...]

Cosmic Ray's operators say what may be changed: a comparison, a number, a condition. Each mutant is
tried with those tests that reach the changed statement, in a fork of a process that has collected
them: functions are given their changed code there. Where what runs on import is changed, it is a
fork of a process that has not imported the package. What survives is printed, with the change.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from tests.mutation import forks, runs
from tests.mutation.mutants import ROOT, Mutant, mutants
from tests.mutation.trials import KILLED, Trials

#: What is changed, and its own tests.
OWN_TESTS = {
    "onnxreduce_cli/verification/compare.py": ["tests/verification/test_compare.py"],
    "onnxreduce_cli/idioms": ["tests/idioms"],
    "onnxreduce_cli/steps/reduction": [
        "tests/steps/reduction",
        "tests/engine/test_family_for_runtimes.py",
    ],
}


def files(path: str) -> list[str]:
    """The Python files of what is changed."""
    found = ROOT / path
    every = sorted(found.rglob("*.py")) if found.is_dir() else [found]
    return [file.relative_to(ROOT).as_posix() for file in every]


def chosen(paths: list[str], options: argparse.Namespace) -> list[Mutant]:
    """The mutants that are tried, in the order of the files."""
    found = [mutant for path in paths for mutant in mutants(path)]
    if options.again:
        lines = Path(options.again).read_text(encoding="utf-8").splitlines()
        names = {line.rpartition(": ")[0] for line in lines}
        found = [mutant for mutant in found if mutant.name in names]
    if options.count:
        drawn = random.Random(options.seed).sample(range(len(found)), options.count)
        found = [found[index] for index in sorted(drawn)]
    return sorted(found, key=lambda mutant: (mutant.part.path, mutant.line))


def main() -> int:
    """Try mutants, and say how many were killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", default=list(OWN_TESTS), help=", ".join(OWN_TESTS))
    parser.add_argument("--count", type=int, help="how many mutants are drawn, if not all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", help="what this printed: try those that survived")
    parser.add_argument("--jobs", type=int, default=1, help="how many are tried at the same time")
    parser.add_argument("--patience", type=float, default=20, help="seconds of tests for a mutant")
    options = parser.parse_args()
    start, fates = time.monotonic(), dict[str, int]()
    for name in ("hypothesis", "onnx", "onnxruntime", "ml_dtypes", "onnx.reference"):
        __import__(name)
    for path in options.paths:
        changed, tests = files(path), OWN_TESTS[path]
        reach = forks.apart(lambda changed=changed, tests=tests: runs.reach(changed, tests))
        trials = Trials(reach, options.jobs, options.patience)
        trials.all(chosen(changed, options), tests)
        for fate, count in trials.fates.items():
            fates[fate] = fates.get(fate, 0) + count
    told = ", ".join(f"{count} {fate}" for fate, count in sorted(fates.items()))
    share = fates.get(KILLED, 0) / max(1, sum(fates.values()))
    minutes = (time.monotonic() - start) / 60
    print(f"{sum(fates.values())} mutants in {minutes:.0f} minutes: {told}; {share:.1%} killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
