"""What a landing tries of an exhaustive matrix: some of each stratum, always the same.

Each night all of it is tried, by pytest's option ``--whole``.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Item = TypeVar("Item")

#: Whether all is tried; `conftest.py` sets it before tests are collected.
whole = False


def share(
    items: Iterable[Item],
    stratum: Callable[[Item], Hashable] = lambda item: None,
    *,
    each: int = 1,
    name: Callable[[Item], str] = str,
) -> list[Item]:
    """Return at most `each` items of every stratum in their order, or all for ``--whole``.

    Args:
        stratum: what must be tried at least once, such as a boundary of an operator.
        name: what an item is drawn by; the draw of a stratum is that of the same items only.
    """
    listed = list(items)
    if whole:
        return listed
    strata = defaultdict[Hashable, list[int]](list)
    for index, item in enumerate(listed):
        strata[stratum(item)].append(index)
    keys = [zlib.crc32(name(item).encode()) for item in listed]
    chosen = (sorted(found, key=keys.__getitem__)[:each] for found in strata.values())
    return [listed[index] for index in sorted(index for found in chosen for index in found)]
