"""Notes which steps the tests take, and fails a whole run of them that leaves one unproven."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxreduce_cli
from onnxreduce_cli import executor
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine import emulation
from onnxreduce_cli.steps.registry import STEPS
from tests import support
from tests.steps.taken import Function, Notes, numbers, report, unproven

_notes = Notes()
_called: set[Function] = set()
_proven: set[Function] = set()


def _noting_step(apply: Callable[[Context], None]) -> Callable[[Context], None]:
    @functools.wraps(apply)
    def taken(context: Context) -> None:
        _notes.took(apply, changed=False)
        apply(context)
        if not context.unchanged:
            _notes.took(apply, changed=True)

    return taken


def _noting_conversion(convert: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(convert)
    def noted(*args: Any, **options: Any) -> Any:
        result = convert(*args, **options)
        _notes.converted(result)
        return result

    return noted


def _noting_run(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def noted(model: Any, *args: Any, **options: Any) -> Any:
        outputs = run(model, *args, **options)
        if isinstance(model, onnx.ModelProto):  # not the path of one
            _notes.ran(model, outputs)
        return outputs

    return noted


def _noting_comparison(compare: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(compare)
    def noted(first: Any, second: Any, *args: Any, **options: Any) -> None:
        compare(first, second, *args, **options)
        _notes.compared(first, second)

    return noted


for _key, _step in list(STEPS.items()):
    if _step.apply is not None:
        STEPS[_key] = _step._replace(apply=_noting_step(_step.apply))
# Before any test imports these by name. Only tests use them: what the package compares while it
# checks a conversion of its own is no proof.
onnxreduce_cli.convert = _noting_conversion(onnxreduce_cli.convert)
support.run = _noting_run(support.run)
support.run_ort = _noting_run(support.run_ort)
executor.run = _noting_run(executor.run)
support.assert_same = _noting_comparison(support.assert_same)
for _name in ("assert_allclose", "assert_array_equal"):
    setattr(np.testing, _name, _noting_comparison(getattr(np.testing, _name)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Only a test that passes proves anything."""
    global _notes
    _notes = Notes()
    yield
    _called.update(_notes.called)
    _proven.update(_notes.proven)


_whole = False
_unproven: list[str] = []


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whether all tests of steps are to run, those of the newest operators too."""
    global _whole
    files = set(Path(__file__).parent.rglob("test_*.py"))
    here = {item.path for item in items}
    option = config.option
    chosen = option.keyword or option.collectonly or option.each or "newest" in option.markexpr
    _whole = files <= here and not chosen and not any("::" in arg for arg in config.args)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if not _whole:
        return
    if hasattr(session.config, "workeroutput"):
        # The process that started this one judges what all of them show: `tests/conftest.py`.
        session.config.workeroutput["steps"] = numbers(_called), numbers(_proven)
    elif not session.testsfailed and not session.shouldstop:
        _unproven.extend(unproven(_called, _proven))
        if _unproven:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    report(terminalreporter, _unproven)


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let replacements have more nodes than `emulation.MOST_NODES`, which block otherwise."""
    monkeypatch.setattr(emulation, "MOST_NODES", 1_000)
