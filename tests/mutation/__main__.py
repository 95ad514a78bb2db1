"""Changes the code in small ways and looks whether its tests notice: mutation testing.

    nox -s mutation -- [--minutes 60] [--jobs 2] [--again FILE] [--explained] [PATH...]

Cosmic Ray's operators say what may be changed: a comparison, a number, a condition. Each mutant is
tried with those tests that reach the changed statement, in a fork of a process that has collected
them: functions are given their changed code there. Where what runs on import is changed, it is a
fork of a process that has not imported the package. What survives is printed, with the change;
what `survivors.md` says to be no different is counted by itself, and not tried.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import time
from pathlib import Path

from tests.mutation import forks, runs
from tests.mutation.explained import Explained
from tests.mutation.mutants import ROOT, Mutant, mutants
from tests.mutation.trials import EXPLAINED, KILLED, Trials

#: What is changed, and its own tests.
OWN_TESTS = {
    "onnxreduce_cli/verification/compare/values.py": ["tests/verification/compare/test_values.py"],
    "onnxreduce_cli/idioms": ["tests/idioms"],
    "onnxreduce_cli/steps/reduction": [
        "tests/steps/reduction",
        "tests/engine/test_family_for_runtimes.py",
    ],
}

#: How many mutants are tried before the time is looked at: whatever is tried is drawn at random.
BATCH = 50


def files(path: str) -> list[str]:
    """The Python files of what is changed."""
    found = ROOT / path
    every = sorted(found.rglob("*.py")) if found.is_dir() else [found]
    return [file.relative_to(ROOT).as_posix() for file in every]


def chosen(path: str, options: argparse.Namespace) -> list[list[Mutant]]:
    """The mutants that are tried, in batches, in each in the order of the files."""
    found = [mutant for file in files(path) for mutant in mutants(file)]
    if options.again:
        lines = Path(options.again).read_text(encoding="utf-8").splitlines()
        names = {line.rpartition(": ")[0] for line in lines}
        found = [mutant for mutant in found if mutant.name in names]
    random.Random(options.seed).shuffle(found)
    batches = [found[start : start + BATCH] for start in range(0, len(found), BATCH)]
    return [sorted(batch, key=lambda mutant: (mutant.part.path, mutant.line)) for batch in batches]


def main() -> int:
    """Try mutants, and say how many were killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", default=list(OWN_TESTS), help=", ".join(OWN_TESTS))
    parser.add_argument("--minutes", type=float, default=60, help="shared by what is changed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", help="a file with what this printed: those anew")
    parser.add_argument("--explained", action="store_true", help="try those in survivors.md too")
    parser.add_argument("--jobs", type=int, default=1, help="how many are tried at the same time")
    parser.add_argument("--patience", type=float, default=30, help="seconds of tests for a mutant")
    options = parser.parse_args()
    start, fates = time.monotonic(), dict[str, int]()
    for name in ("hypothesis", "onnx", "onnxruntime", "ml_dtypes", "onnx.reference"):
        __import__(name)
    found = {path: chosen(path, options) for path in options.paths}
    table = Path(__file__).with_name("survivors.md").read_text(encoding="utf-8")
    explained = Explained("" if options.explained else table)
    every, share = sum(map(len, found.values())), 0.0
    for path, batches in found.items():
        share += len(batches) / every
        end, tests = start + 60 * options.minutes * share, OWN_TESTS[path]
        reach = forks.apart(functools.partial(runs.reach, files(path), tests))
        trials = Trials(reach, options.jobs, options.patience, explained)
        for batch in batches:
            if time.monotonic() < end:
                trials.all([mutant for mutant in batch if mutant.is_python], tests)
                print(path, trials.fates, flush=True)
        for fate, count in trials.fates.items():
            fates[fate] = fates.get(fate, 0) + count
    told = ", ".join(f"{count} {fate}" for fate, count in sorted(fates.items()))
    judged, killed = sum(fates.values()), fates.get(KILLED, 0)
    every = sum(len(batch) for batches in found.values() for batch in batches)
    print(f"{judged} of {every} mutants, {(time.monotonic() - start) / 60:.0f} minutes: {told}")
    differ = judged - fates.get(EXPLAINED, 0)
    shares = [killed / max(1, count) for count in (judged, differ)]
    print("killed: {:.1%}, of those that differ {:.1%}".format(*shares))
    return 0


if __name__ == "__main__":
    sys.exit(main())
