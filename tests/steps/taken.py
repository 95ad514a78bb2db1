"""What the tests of steps have shown in this run: which steps they took, and which they proved.

A test proves a step when the step changes a node, and the test then compares what the model gives
with what another model gives, or what a converted model gives with what it ought to give. That
models were only run, or that one was compared with itself, proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli.steps.registry import STEPS

Function = Callable[..., Any]

#: Steps that change nothing: they let a node pass, or block it.
PASSING = {
    "sequences.sequence_operator",
    "optional.optional_operator",
    "without_equivalent.known_result_only",
    "pool.no_window_in_padding",
    "conv_transpose.odd_padding",
    "label_encoder.same_lists",
    "tree_ensembles.no_classifier",
    "tree_ensembles.still_there",
}


def step_name(function: Function) -> str:
    """A step's function as `PASSING` names it: ``module.function``."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


#: Every step's function with its name and an operator, as they were before any was wrapped.
FUNCTIONS: dict[Function, str] = {
    step.apply: f"{step_name(step.apply)} ({step.op_type})"
    for step in STEPS.values()
    if step.apply is not None
}


class Notes:
    """What one test does, noted while it runs."""

    def __init__(self) -> None:
        self.called: set[Function] = set()
        self.proven: set[Function] = set()
        self._changed: set[Function] = set()
        # By an array's id: the array, lest another gets its id, and the models that gave it.
        self._given: dict[int, tuple[Any, set[bytes]]] = {}
        self._converted: set[bytes] = set()

    def took(self, function: Function, changed: bool) -> None:
        self.called.add(function)
        if changed:
            self._changed.add(function)

    def converted(self, result: Any) -> None:
        if isinstance(result, ModelProto):  # Models of onnx-ir are made of one, too.
            self._converted.add(result.SerializeToString())

    def ran(self, model: ModelProto, outputs: Any) -> None:
        key = model.SerializeToString()
        for array in _arrays(outputs):
            self._given.setdefault(id(array), (array, set()))[1].add(key)

    def compared(self, first: Any, second: Any) -> None:
        """Two values agree: that may prove what was taken until now."""
        one, other = self._models(first), self._models(second)
        models = one | other
        if len(models) > 1 if one and other else models & self._converted:
            self.proven |= self._changed

    def _models(self, value: Any) -> set[bytes]:
        found = (self._given.get(id(array)) for array in _arrays(value))
        return {key for item in found if item is not None for key in item[1]}


def _arrays(value: Any) -> Iterator[Any]:
    """The arrays that a value holds, and of views what they are views of."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)
    while isinstance(value, np.ndarray | np.generic):
        yield value
        value = value.base


def numbers(functions: set[Function]) -> list[int]:
    """The places of functions in `FUNCTIONS`, which are the same in another process."""
    return [number for number, function in enumerate(FUNCTIONS) if function in functions]


def numbered(found: Iterable[int]) -> set[Function]:
    """The functions at these places."""
    listed = list(FUNCTIONS)
    return {listed[number] for number in found}


def report(terminalreporter: pytest.TerminalReporter, lines: list[str]) -> None:
    """Print what is wrong with the proof, if anything is."""
    if lines:
        terminalreporter.section("steps that the tests of steps do not prove", red=True)
        for line in lines:
            terminalreporter.write_line(line)


def unproven(called: set[Function], proven: set[Function]) -> list[str]:
    """What is wrong with the proof of every step, where all tests of steps have passed."""
    passing = {function for function in FUNCTIONS if step_name(function) in PASSING}
    missing = FUNCTIONS.keys() - proven - passing
    return sorted(
        [f"{FUNCTIONS[item]}: no test compares a model before and after it" for item in missing]
        + [f"{FUNCTIONS[item]}: no test takes it" for item in passing - called]
        + [f"{FUNCTIONS[item]}: changes nodes, so not in PASSING" for item in passing & proven]
        + [f"{name}: is gone" for name in PASSING - {step_name(item) for item in FUNCTIONS}]
    )
