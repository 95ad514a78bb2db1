"""Running the command line in this process."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings

from onnxreduce_cli.cli import main as command_line
from onnxreduce_cli.steps.loading import load_all
from tests import contract, share

# Tests look into the registry, and some change it; `steps/test_loading.py` is about the rest.
load_all()
contract.watch()
from tests.steps import taken  # noqa: E402 - it lists what is registered

# A run is judged by what changed since the last: `tests.random_graphs` and `tests.fuzz` draw anew.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")

# What runs the tests may say how wide its own terminal is, which is not that of the command.
os.environ.pop("COLUMNS", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="all of each matrix, as each night")
    parser.addoption("--each", type=int, metavar="N", help="of each test N of its parameters")


def pytest_configure(config: pytest.Config) -> None:
    share.whole = config.getoption("--whole")


@pytest.hookimpl(trylast=True)  # Of those that a mark leaves.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if each := config.getoption("--each"):

        def test(item: pytest.Item) -> str:
            return item.nodeid.partition("[")[0]

        chosen = share.share(items, test, each=each, name=lambda item: item.nodeid)
        config.hook.pytest_deselected(items=list({*items} - {*chosen}))
        items[:] = chosen


#: By worker of pytest-xdist: the steps that its tests took, and those that they proved.
_shown: list[tuple[list[int], list[int]]] = []
_unproven: list[str] = []


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Note what the tests of steps showed in one worker."""
    if steps := getattr(node, "workeroutput", {}).get("steps"):
        _shown.append(steps)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a whole run of the tests of steps that leaves one unproven; no worker had them all."""
    if _shown and not session.testsfailed and not session.shouldstop:
        called, proven = (
            taken.numbered(itertools.chain(*found)) for found in zip(*_shown, strict=True)
        )
        _unproven.extend(taken.unproven(called, proven))
        if _unproven:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    taken.report(terminalreporter, _unproven)


@dataclass(frozen=True)
class Result:
    """How a run of the command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def onnxreduce(monkeypatch, capsys) -> Callable[..., Result]:
    """Call ``onnxreduce`` with arguments; what it prints never holds a traceback."""

    def call(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["onnxreduce", *map(str, arguments)])
        code = 0
        try:
            command_line.main()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Result(code, out, err)

    return call
