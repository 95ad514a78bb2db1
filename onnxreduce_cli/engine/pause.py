"""A pause of the cyclic garbage collector while many long-lived objects are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector, which would scan every node of a large model again and again.

    Measured on 100,000 nodes, it takes a quarter of the time of planning. Reference counting, which
    frees most objects, goes on as always.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
