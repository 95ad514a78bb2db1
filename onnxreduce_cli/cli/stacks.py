"""Options that belong together, given to a command at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_Command = TypeVar("_Command", bound=Callable[..., Any])


def each_of(options: Sequence[Callable[[Any], Any]]) -> Callable[[_Command], _Command]:
    """Return a decorator that gives a command options, which its help shows in this order."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
