"""Notes which steps the tests take, for the one that asks whether every step was taken."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnxruntime as ort
import pytest

from onnxreduce_cli.executor import Executor
from onnxreduce_cli.steps.context import Context
from onnxreduce_cli.steps.registry import STEPS
from tests.steps.taken import CALLED, PROVEN, Function

LAST = "test_every_step_was_taken"

_called: set[Function] = set()
_changed: set[Function] = set()
_runs = 0


def _noting_step(apply: Callable[[Context], None]) -> Callable[[Context], None]:
    @functools.wraps(apply)
    def taken(context: Context) -> None:
        _called.add(apply)
        apply(context)
        if not context.unchanged:
            _changed.add(apply)

    return taken


def _noting_run(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def noted(*args: Any, **options: Any) -> Any:
        global _runs
        _runs += 1
        return run(*args, **options)

    return noted


for _key, _step in list(STEPS.items()):
    if _step.apply is not None:
        STEPS[_key] = dataclasses.replace(_step, apply=_noting_step(_step.apply))
for _executor in (Executor, ort.InferenceSession):
    _executor.run = _noting_run(_executor.run)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """A test that passes proves the steps it took, if it ran models before and after."""
    global _runs
    _runs = 0
    _called.clear()
    _changed.clear()
    yield
    CALLED.update(_called)
    if _runs >= 2:
        PROVEN.update(_changed)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The test that asks comes last, and only where all the others run."""
    asking = [item for item in items if item.name == LAST]
    items[:] = [item for item in items if item.name != LAST]
    files = {path.name for path in Path(__file__).parent.glob("test_*.py")}
    here = {item.path.name for item in items if item.path.parent == Path(__file__).parent}
    if files <= here and not config.option.keyword:
        items += asking
    else:
        config.hook.pytest_deselected(items=asking)
