"""The order in which tests are tried with a mutant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set


def in_order(
    names: Set[str], seconds: Mapping[str, float], killers: Sequence[str], nearby: Set[str]
) -> list[str]:
    """Tests in the order in which they are tried.

    First come those that killed mutants nearby, then the quickest one of each function, and so on.

    Args:
        names: of the tests.
        seconds: how long each takes.
        killers: those that killed others, the latest one last.
        nearby: those that come before the others, as they run something of the file.
    """
    late = {name: place for place, name in enumerate(killers)}
    counts: dict[str, int] = {}
    ranks = {}
    for name in sorted(names, key=lambda name: (seconds[name], name)):
        function = name.partition("[")[0]
        ranks[name] = counts[function] = counts.get(function, -1) + 1

    def place(name: str) -> tuple[object, ...]:
        return -late.get(name, -1), name not in nearby, ranks[name], seconds[name], name

    return sorted(names, key=place)


def within(order: Sequence[str], seconds: Mapping[str, float], most: float) -> Iterator[str]:
    """The first tests, as many as take some seconds together."""
    for name in order:
        most -= seconds[name]
        yield name
        if most < 0:
            break
