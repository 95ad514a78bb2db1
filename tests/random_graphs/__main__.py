"""Draw models and judge their conversions; a failure is shrunk and printed."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter

import onnx
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.random_graphs.graphs import Case, cases
from tests.random_graphs.judge import WrongError, judge
from tests.random_graphs.whole_model import whole_model_cases

#: The outcome of a model for which something is wrong.
WRONG = "wrong"


def search(
    count: int,
    seed_: int,
    drawn: st.SearchStrategy[Case],
    *,
    each_one: bool = False,
) -> Counter[str]:
    """How often each outcome was met among so many models.

    Args:
        count: how many models, at most.
        seed_: of what is drawn.
        drawn: draws them.
        each_one: whether to print each model for which something is wrong, and go on; else a
            smaller one is looked for, minutes long, once something is wrong.

    Raises:
        WrongError: of the smallest model found for which something is wrong.
    """
    counts: Counter[str] = Counter()

    @seed(seed_)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(drawn)
    def each(case: Case) -> None:
        try:
            counts[judge(case)] += 1
        except WrongError as error:
            if not each_one:
                raise WrongError(f"{error}\n{describe(case)}") from error
            counts[WRONG] += 1
            print(f"{error}\n{describe(case)}\n", flush=True)

    each()
    return counts


def describe(case: Case) -> str:
    """The case as text, from which it can be made again."""
    feeds = "\n".join(f"{name} = {array!r}" for name, array in case.feeds.items())
    how = f"to {case.target}, check={case.check}, {case.options}"
    return f"{how}\n{onnx.printer.to_text(case.model)}\n{feeds}"


def main() -> None:
    """Search as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_graphs")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=0.0, help="draw anew until then")
    parser.add_argument(
        "--options", action="store_true", help="with options that change the whole model"
    )
    parser.add_argument("--each", action="store_true", help="print each wrong one, and go on")
    given_ = parser.parse_args()
    options = " --options" if given_.options else ""
    drawn = whole_model_cases() if given_.options else cases()
    seed_ = secrets.randbelow(1 << 31) if given_.seed is None else given_.seed
    counts: Counter[str] = Counter()
    end = time.monotonic() + given_.seconds
    while not counts or time.monotonic() < end:
        again = f"python -m tests.random_graphs --count {given_.count} --seed {seed_}{options}"
        print(f"seed {seed_}; again: {again}", flush=True)
        counts += search(given_.count, seed_, drawn, each_one=given_.each)
        seed_ += 1
    for outcome, number in counts.most_common():
        print(f"{number:7} {outcome}")
    if counts[WRONG]:
        sys.exit(1)
    if counts["converted"] * 5 < counts.total():
        sys.exit("fewer than one in five was converted: this has tested next to nothing")


if __name__ == "__main__":
    main()
