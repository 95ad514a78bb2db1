"""The questions that the conversion of one node asked about the values around it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy.typing as npt

from onnxreduce_cli.model.graph.scope import Scope

#: The most elements of a constant that are compared; a larger one equals itself only.
_COMPARED = 1024

#: A method of `Facts`, and the names of the values that it was asked about.
Question = tuple[str, tuple[str, ...]]


class Questions:
    """Questions about values of the model that were asked in one scope, with their answers.

    Attributes:
        scope: the scope.
        answers: a key of each answer, in the order asked; equal keys are equal answers.
        complete: whether all that was asked is in `answers`.
        fresh: the names that were generated meanwhile, each behind what it was derived from.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.answers: dict[Question, Hashable] = {}
        self.complete = True
        self.fresh: list[tuple[str, str]] = []

    def note(self, scope: Scope, question: str, names: tuple[str, ...], answer: Hashable) -> None:
        """Note a question, and the key of its answer."""
        if scope is not self.scope:
            self.complete = False
        # A `Value` is a string that refers to the facts, and would keep them in memory.
        self.answers.setdefault((question, tuple(map(str, names))), answer)

    def add(self, asked: Questions) -> None:
        """Note what was asked before, as if it were asked now."""
        self.complete &= asked.complete and asked.scope is self.scope
        for question, answer in asked.answers.items():
            self.answers.setdefault(question, answer)


def array_key(name: str, array: npt.NDArray[Any] | None) -> Hashable:
    """Return a key of the constant value of a name: equal keys are equal constants."""
    if array is None:
        return None
    if array.size > _COMPARED:
        return str(name)
    elements = (*array.ravel(),) if array.dtype == object else array.tobytes()
    return array.dtype.name, array.shape, elements
