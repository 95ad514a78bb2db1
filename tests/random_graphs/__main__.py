"""Draw models and judge their conversions; a failure is shrunk and printed."""

from __future__ import annotations

import argparse
import secrets
from collections import Counter

import onnx
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.random_graphs.graphs import Case, cases
from tests.random_graphs.judge import WrongError, judge


def search(count: int, seed_: int, *, shrink: bool = True) -> Counter[str]:
    """How often each outcome was met among so many models.

    Args:
        count: how many models.
        seed_: of what is drawn.
        shrink: whether to look for a smaller model, minutes long, once something is wrong.

    Raises:
        WrongError: of the smallest model found for which something is wrong.
    """
    counts: Counter[str] = Counter()

    @seed(seed_)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(cases())
    def each(case: Case) -> None:
        try:
            counts[judge(case)] += 1
        except WrongError as error:
            raise WrongError(f"{error}\n{describe(case)}") from error

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
    parser.add_argument("--no-shrink", action="store_true", help="print the first at once")
    given_ = parser.parse_args()
    chosen = secrets.randbelow(1 << 32) if given_.seed is None else given_.seed
    again = f"python -m tests.random_graphs --count {given_.count} --seed {chosen}"
    print(f"seed {chosen}; again: {again}", flush=True)
    counts = search(given_.count, chosen, shrink=not given_.no_shrink)
    for outcome, number in counts.most_common():
        print(f"{number:7} {outcome}")


if __name__ == "__main__":
    main()
