"""Measure what `verify` sees: ``python -m tests.verification.whole.planted [SEEDS]``."""

from __future__ import annotations

import sys

from onnxreduce_cli.verification.whole.equivalence import verify
from tests.verification.whole.planted.faults import FAULTS
from tests.verification.whole.planted.further import FURTHER_FAULTS, FURTHER_REWRITES
from tests.verification.whole.planted.rewrites import REWRITES


def main(seeds: int) -> None:
    """Print what is missed and what raises an alarm, and with how many seeds."""
    for kind, pairs, wanted in (
        ("missed", FAULTS + FURTHER_FAULTS, False),
        ("alarms", REWRITES + FURTHER_REWRITES, True),
    ):
        wrong = {pair.name: 0 for pair in pairs}
        for seed in range(seeds):
            count = 0
            for pair in pairs:
                if verify(*pair.models(), seed=seed).equivalent is not wanted:
                    wrong[pair.name] += 1
                    count += 1
            print(f"seed {seed}: {count} {kind} of {len(pairs)}", flush=True)
        print({name: count for name, count in wrong.items() if count})


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
