"""The steps that may emulate an operator, found by reading their code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import unwrap
from types import CodeType, FunctionType
from typing import Any

from onnxreduce_cli.steps.registry import Step

#: How the names of modules with emulations begin.
_EMULATED = ".emulated_"


def may_be_emulated(step: Step) -> bool:
    """Return whether a step may call a function of a module with emulations."""
    if step.apply is None:
        return False
    seen = set[int]()
    waiting: list[Callable[..., Any]] = [unwrap(step.apply)]
    while waiting:
        function = waiting.pop()
        if id(function) in seen or not isinstance(function, FunctionType):
            continue
        seen.add(id(function))
        # Modules imported inside functions are among the names of their code.
        modules = (name for code in _codes(function.__code__) for name in code.co_names)
        if any(_EMULATED in name for name in (function.__module__, *modules)):
            return True
        if function.__module__.startswith("onnxreduce_cli.steps."):
            waiting += [unwrap(found) for found in _called(function) if callable(found)]
    return False


def _called(function: FunctionType) -> Iterator[Any]:
    """Yield the objects of a function's module that its code refers to."""
    for code in _codes(function.__code__):
        for name in code.co_names:
            if name in function.__globals__:
                yield function.__globals__[name]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
