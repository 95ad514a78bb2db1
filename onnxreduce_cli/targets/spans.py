"""Some versions of a runtime among all that are known, for people."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

T = TypeVar("T")


def span(every: Sequence[T], some: Collection[T]) -> str:
    """Some of a runtime's versions, as ``2022.1, 2025.4 to 2026.4``; empty if it is all of them.

    Args:
        every: all versions, the oldest first.
        some: those that are meant.
    """
    if len(some) == len(every):
        return ""
    runs: list[list[T]] = [[]]
    for version in every:
        if version in some:
            runs[-1].append(version)
        elif runs[-1]:
            runs.append([])
    ends = [(run[0], run[-1]) for run in runs if run]
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in ends)
