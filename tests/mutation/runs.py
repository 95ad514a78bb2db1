"""Runs of tests in this process: to note what they reach, and to try mutants with them."""

from __future__ import annotations

import importlib
import pkgutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

import coverage
import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.mutants import ROOT, Part

#: The seconds that a test may take on top of ten times what it usually takes: of the processor,
#: and of the clock, in which it may wait for what never comes.
_SECONDS, _WAITING = 5, 120


@dataclass
class Reach:
    """Which tests run what.

    Attributes:
        tests: those that run each line, by file and number of the line.
        seconds: how long each takes.
        imported: the lines that run when modules are imported.
    """

    tests: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    imported: set[tuple[str, int]] = field(default_factory=set)


class _Loop:
    """Lets pytest collect tests, and then do something with them instead of running them."""

    def __init__(self, work: Callable[[list[pytest.Item]], Any]) -> None:
        self._work = work
        self.given: Any = None

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("tests cannot be collected")
        self.given = self._work(session.items)
        return True


def collected(tests: Sequence[str], work: Callable[[list[pytest.Item]], Any]) -> Any:
    """What a function gives for some tests, once they are collected.

    Raises:
        ImportError: they cannot be collected.
    """
    loop = _Loop(work)
    options = ["-q", "--no-header", "--no-summary", "--capture=sys", "-p", "no:cacheprovider"]
    code = pytest.main([*options, *tests], plugins=[loop])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise ImportError("tests cannot be collected")
    return loop.given


def import_all() -> None:
    """Import the whole package: what is imported later would not be changed."""
    package = importlib.import_module("onnxreduce_cli")
    for module in pkgutil.walk_packages(package.__path__, "onnxreduce_cli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def first_failure(items: Sequence[pytest.Item], seconds: dict[str, float]) -> str | None:
    """Run tests until one fails; its name. One that does not end ends this process."""
    for item in items:
        usual = 10 * seconds.get(item.nodeid, 1.0)
        signal.setitimer(signal.ITIMER_PROF, _SECONDS + usual)
        signal.setitimer(signal.ITIMER_REAL, _WAITING + usual)
        if any(report.failed for report in runtestprotocol(item, nextitem=None, log=False)):
            return item.nodeid
    for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
        signal.setitimer(timer, 0)
    return None


def reach(files: Sequence[str], tests: Sequence[str]) -> Reach:
    """Note what tests run of some files, in this process, which has not imported them."""
    found = Reach()
    paths = {str(ROOT / path): path for path in files}
    tracer = coverage.Coverage(data_file=None, include=list(paths), config_file=False)

    def note(items: list[pytest.Item]) -> None:
        import_all()
        from onnxreduce_cli.idioms.registry import IDIOMS

        for item in items:
            tracer.switch_context(item.nodeid)
            for idiom in IDIOMS:  # Else the first test alone would seem to trace its forms.
                vars(idiom).pop("patterns", None)
            start = time.process_time()
            if first_failure([item], {}) is not None:
                raise SystemExit(f"{item.nodeid} fails where nothing is changed")
            found.seconds[item.nodeid] = time.process_time() - start
        tracer.switch_context("")

    tracer.start()
    collected(tests, note)
    tracer.stop()
    for full, path in paths.items():
        for line, contexts in tracer.get_data().contexts_by_lineno(full).items():
            found.tests[path, line] = set(contexts) - {""}
            if "" in contexts:
                found.imported.add((path, line))
    return found


def import_changed(part: Part, text: str) -> None:
    """Let the file of a part be imported with another text of it."""
    changed = str(ROOT / part.path)
    usual = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        if loader.path != changed:
            return usual(loader, name)
        return compile(part.before + text + part.after, changed, "exec", dont_inherit=True)

    assert not any(name.startswith("onnxreduce_cli") for name in sys.modules)
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
