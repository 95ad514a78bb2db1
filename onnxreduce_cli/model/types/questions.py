"""The questions that the conversion of one node asked about the values around it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from onnxreduce_cli.model.graph.folding import Folded
from onnxreduce_cli.model.graph.scope import Scope

#: The most elements of a constant that are compared; a larger one equals itself only.
_COMPARED = 1024

#: A method of `Facts`, and the names of the values that it was asked about.
Question = tuple[str, tuple[str, ...]]

#: What a generated name is derived from; a constant with its `TensorProto.DataType`, or None.
Fresh = tuple[str, tuple[npt.NDArray[Any], int] | None]

_Method = TypeVar("_Method", bound=Callable[..., Any])

#: The methods themselves, which note nothing, by name.
UNNOTED: dict[str, Callable[..., Any]] = {}


class Questions:
    """Questions about values of the model that were asked in one scope, with their answers.

    Attributes:
        scope: the scope.
        answers: a key of each answer, in the order asked; equal keys are equal answers.
        complete: whether all that was asked is in `answers`.
        fresh: the names that were generated meanwhile, and those of constants, in the order first
            wanted; each with the hint that it is derived from, and the constant and its dtype.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.answers: dict[Question, Hashable] = {}
        self.complete = True
        self.fresh: dict[str, Fresh] = {}

    def note(self, scope: Scope, question: str, names: tuple[str, ...], answer: Hashable) -> None:
        """Note a question, and the key of its answer."""
        if scope is not self.scope:
            self.complete = False
        # What is known in part refers to the dimensions of other values.
        if answer is ...:
            self.complete = False
        # A `Value` is a string that refers to the facts, and would keep them in memory.
        self.answers.setdefault((question, tuple(map(str, names))), answer)

    def add(self, asked: Questions) -> None:
        """Note what was asked before, as if it were asked now."""
        self.complete &= asked.complete and asked.scope is self.scope
        for question, answer in asked.answers.items():
            self.answers.setdefault(question, answer)


def array_key(own: Hashable, array: npt.NDArray[Any] | None) -> Hashable:
    """Return a key of a constant value: equal keys are equal constants.

    Args:
        own: what no other value has, to tell a large one by.
        array: the value; None where it is not known.
    """
    if array is None:
        return None
    if array.size > _COMPARED:
        return own
    elements = (*array.ravel(),) if array.dtype == object else array.tobytes()
    return array.dtype, array.shape, elements


def question(method: _Method) -> _Method:
    """Let a method of the facts note what it is asked about values of the model, and its answer."""
    UNNOTED[method.__name__] = method

    @wraps(method)
    def asked(self: Any, scope: Scope, *names: str) -> Any:
        found = method(self, scope, *names)
        if self.questions is None:
            return found
        for name in names:
            # Questions about generated values lead to some about values of the model.
            made = self.generated.key(scope, name) if name else None
            if not name or (made is not None and made not in self.generated.restated):
                return found
        key = answer_key(scope, names[0], found)
        self.questions.note(scope, method.__name__, names, key)
        return found

    return cast("_Method", asked)


def answer_key(scope: Scope, name: str, answer: Any) -> Hashable:
    """Return a key of what was answered about a name in a scope: equal keys are equal answers.

    Returns:
        `...` for what is known in part.
    """
    if isinstance(answer, Folded):
        answer = ... if answer.constant is None else answer.constant
    if isinstance(answer, np.ndarray):
        return array_key((id(scope), str(name)), answer)
    return cast("Hashable", answer)
