"""Puts changed code in the place of that of functions which exist already."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType


def _inner(code: CodeType) -> list[CodeType]:
    return [item for item in code.co_consts if isinstance(item, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """What code does, but for the functions in it; where it stands is no matter."""
    numbers = [repr(item) for item in code.co_consts if not isinstance(item, CodeType)]
    return code.co_code, code.co_names, code.co_varnames, numbers, len(_inner(code))


def pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The code of each thing that changes, with what is to take its place: outer things first."""
    found = []
    if _own(old)[-1] == _own(new)[-1]:
        for before, after in zip(_inner(old), _inner(new), strict=True):
            found += pairs(before, after)
    if found or _own(old) != _own(new):
        yield old, new
        yield from found


def outermost(old: CodeType, new: CodeType) -> dict[CodeType, CodeType] | None:
    """What is to take the place of the code of functions.

    Returns:
        new code by old, outer functions first; None if code outside of functions changes.
    """
    found = list(pairs(old, new))
    while found and not found[0][0].co_flags & inspect.CO_OPTIMIZED:
        outer, inner = found[0], found[1:]
        if _own(outer[0]) != _own(outer[1]):
            return None
        found = inner
    return dict(found)


def _key(code: CodeType) -> tuple[object, ...]:
    """What code is known by: compiled with its whole file it calls what is imported otherwise."""
    return code.co_filename, code.co_firstlineno, code.co_name, code.co_varnames


class Functions:
    """The functions that there are, by the code that they run."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], list[FunctionType]] = {}
        for item in gc.get_objects():
            # Not `isinstance`, which asks a weak reference what it refers to.
            if type(item) is FunctionType:
                self._found.setdefault(_key(item.__code__), []).append(item)

    def known(self, code: CodeType) -> bool:
        """Return whether any runs it."""
        return _key(code) in self._found

    def swap(self, codes: dict[CodeType, CodeType]) -> None:
        """Let those that run some code run other code."""
        for old, new in codes.items():
            for function in self._found.get(_key(old), ()):
                function.__code__ = new
