"""What proves a step, and what does not."""

from __future__ import annotations

import numpy as np

from tests.steps.taken import FUNCTIONS, PASSING, Notes, numbered, numbers, step_name, unproven
from tests.support import one_node

STEP, OTHER = sorted(FUNCTIONS, key=step_name)[:2]
BEFORE, AFTER = (one_node("Relu", opset, {"x": np.ones(2, np.float32)}) for opset in (13, 14))


def notes() -> tuple[Notes, np.ndarray, np.ndarray]:
    """A test that took a step, and ran a model before and after."""
    found, first, second = Notes(), np.ones((2, 3)), np.ones((2, 3))
    found.took(STEP, changed=True)
    found.converted(AFTER)
    found.ran(BEFORE, {"y": first})
    found.ran(AFTER, [second])
    return found, first, second


def test_two_models_prove_a_step() -> None:
    found, first, second = notes()
    assert not found.proven, "that both were run proves nothing"
    found.compared({"y": first}, [second])
    assert found.proven == {STEP}


def test_a_view_is_what_it_is_a_view_of() -> None:
    found, first, second = notes()
    found.compared(first[0], second.T)
    assert found.proven == {STEP}


def test_what_ought_to_come_proves_what_was_converted_only() -> None:
    found, first, second = notes()
    found.compared(np.ones((2, 3)), first)
    assert not found.proven
    found.compared(np.ones((2, 3)), second)
    assert found.proven == {STEP}


def test_a_model_beside_itself_proves_nothing() -> None:
    found, _, second = notes()
    again = np.ones((2, 3))
    found.ran(AFTER, [again])
    found.compared(second, again)
    assert not found.proven


def test_later_steps_and_those_that_change_nothing_are_not_proven() -> None:
    found, first, second = notes()
    found.took(OTHER, changed=False)
    found.compared(first, second)
    found.took(OTHER, changed=True)
    assert found.proven == {STEP}
    assert found.called == {STEP, OTHER}


def test_what_workers_show_is_put_together() -> None:
    assert numbered([*numbers({STEP}), *numbers({OTHER})]) == {STEP, OTHER}


def test_what_is_missing_is_named() -> None:
    passing = {function for function in FUNCTIONS if step_name(function) in PASSING}
    assert unproven(passing, FUNCTIONS.keys() - passing) == []
    (line,) = unproven(passing, FUNCTIONS.keys() - passing - {STEP})
    assert line == f"{FUNCTIONS[STEP]}: no test compares a model before and after it"
    assert len(unproven(set(), FUNCTIONS.keys() - passing)) == len(passing)
