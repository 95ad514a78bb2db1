"""The type of functions that progress is reported to."""

from __future__ import annotations

from collections.abc import Callable

#: Called with how much is done, how much there is, and what is at work now.
Progress = Callable[[int, int, str], None]
