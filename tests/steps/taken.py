"""What the tests of steps have shown so far in this run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnxreduce_cli.steps.table  # noqa: F401 - registers the steps
from onnxreduce_cli.steps.registry import STEPS

Function = Callable[..., Any]

#: Steps that a passing test took.
CALLED: set[Function] = set()

#: Steps that changed a node in a passing test that ran models before and after.
PROVEN: set[Function] = set()


def step_name(function: Function) -> str:
    """A step's function as the tables of the tests name it: ``module.function``."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


#: Every step's function with its name and an operator, as they were before any was wrapped.
FUNCTIONS: dict[Function, str] = {
    step.apply: f"{step_name(step.apply)} ({step.op_type})"
    for step in STEPS.values()
    if step.apply is not None
}
