"""Which steps lead into the modules that emulate, as their code says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import unwrap
from types import CodeType, FunctionType
from typing import Any

from onnxreduce_cli.steps.registry import Step

#: What the modules of a family are called that hold what only odd models need.
_EMULATED = ".emulated_"


def may_be_emulated(step: Step) -> bool:
    """Return whether a step calls, for some nodes, what emulates its operator."""
    if step.apply is None:
        return False
    seen = set[int]()
    waiting: list[Callable[..., Any]] = [unwrap(step.apply)]
    while waiting:
        function = waiting.pop()
        if id(function) in seen or not isinstance(function, FunctionType):
            continue
        seen.add(id(function))
        # A module that is imported where it is needed is a name of the code, too.
        modules = (name for code in _codes(function.__code__) for name in code.co_names)
        if any(_EMULATED in name for name in (function.__module__, *modules)):
            return True
        if function.__module__.startswith("onnxreduce_cli.steps."):
            waiting += [unwrap(found) for found in _called(function) if callable(found)]
    return False


def _called(function: FunctionType) -> Iterator[Any]:
    """What a function's code refers to: what its module has by that name."""
    for code in _codes(function.__code__):
        for name in code.co_names:
            if name in function.__globals__:
                yield function.__globals__[name]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
