"""Changes the code in small ways and looks whether its tests notice: mutation testing.

    nox -s mutation -- [--count 300] [--minutes 60] [--seed 0] [PATH...]

Cosmic Ray's operators say what may be changed: a comparison, a number, a condition. Of all such
mutants so many are drawn, and each is tried with those tests that reach the changed line, in a fork
of a process that has imported what takes long. What survives is printed, with its difference.
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

#: What is changed, and its own tests.
OWN_TESTS = {
    "onnxreduce_cli/verification/compare.py": ["tests/verification/test_compare.py"],
    "onnxreduce_cli/idioms": ["tests/idioms"],
    "onnxreduce_cli/steps/reduction": [
        "tests/steps/reduction",
        "tests/engine/test_family_for_runtimes.py",
    ],
}

#: The seconds that the tests of one mutant may take: some never end.
SECONDS = 120

#: Annotations, decorators and what is imported are no behaviour; docstrings are left alone anyway.
LEFT_OUT = ("core/RemoveDecorator", "core/ReplaceBinaryOperator_BitOr")

KILLED, SURVIVED, UNTESTED = "killed", "survived", "reached by no test"


@dataclass(frozen=True)
class Mutant:
    """A change to a file.

    Attributes:
        path: the file, relative to the root.
        operator: what Cosmic Ray calls the kind of change.
        occurrence: which of those in the file.
        line: where.
    """

    path: str
    operator: str
    occurrence: int
    line: int


def files(paths: list[str]) -> Iterator[str]:
    """The Python files of what is changed."""
    for path in paths:
        found = ROOT / path
        for file in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            yield file.relative_to(ROOT).as_posix()


def mutants(path: str) -> Iterator[Mutant]:
    """All changes to a file."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast

    tree = get_ast((ROOT / path).read_text(encoding="utf-8"))
    for name in plugins.operator_names():
        kind = plugins.get_operator(name)
        if name.startswith(LEFT_OUT) or kind.arguments():
            continue
        operator = kind()
        spots = (spot for node in ast_nodes(tree) for spot in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(spots):
            yield Mutant(path, name, occurrence, start[0])


def mutated(mutant: Mutant) -> str:
    """The file with the change."""
    from cosmic_ray import mutating, plugins

    code = (ROOT / mutant.path).read_text(encoding="utf-8")
    changed: str | None = mutating.mutate_code(
        code, plugins.get_operator(mutant.operator)(), mutant.occurrence
    )
    assert changed is not None
    return changed


def reach(folder: Path, paths: list[str]) -> dict[tuple[str, int], set[str]]:
    """The tests that run each line, by file and number of the line.

    Args:
        folder: where what is measured is kept; it is not measured anew.
        paths: keys of `OWN_TESTS`.
    """
    data = folder / "coverage"
    if not data.exists():
        source = [f"--cov={Path(path).parent if path.endswith('.py') else path}" for path in paths]
        tests = [test for path in paths for test in OWN_TESTS[path]]
        options = ["--cov-context=test", "--cov-report=", "-q", "-p", "no:cacheprovider"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *source, *options, *tests],
            check=True,
            cwd=ROOT,
            env={**os.environ, "COVERAGE_FILE": str(data)},
        )
    found: dict[tuple[str, int], set[str]] = {}
    query = "select path, context, numbits from line_bits join file on file.id = file_id "
    with sqlite3.connect(data) as connection:
        rows = connection.execute(query + "join context on context.id = context_id").fetchall()
    for path, context, bits in rows:
        test = context.partition("|")[0]
        name = path[path.rindex("onnxreduce_cli/") :]
        for byte, eight in enumerate(bits):
            for bit in range(8):
                if eight >> bit & 1:
                    found.setdefault((name, 8 * byte + bit), set()).add(test)
    return found


def reaching(mutant: Mutant, known: dict[tuple[str, int], set[str]]) -> list[str]:
    """The tests that run a mutant's line; of what runs when a file is imported, all of the file."""
    found = known.get((mutant.path, mutant.line), set()) - {""}
    if not found:
        found = {
            test for (path, _), tests in known.items() if path == mutant.path for test in tests
        }
    return sorted(found - {""})


def tried(mutant: Mutant, tests: list[str], copy: Path) -> str:
    """What becomes of a mutant: its tests run in a fork, in a copy of the code.

    Args:
        mutant: the change.
        tests: those that reach it, the quickest to fail first.
        copy: the copy, in which the file is changed meanwhile.
    """
    file = copy / mutant.path
    code = file.read_text(encoding="utf-8")
    try:
        _write(file, mutated(mutant))
        return KILLED if _fails(tests, copy) else SURVIVED
    finally:
        _write(file, code)


def _write(file: Path, code: str) -> None:
    """Change a file; what was compiled of it may be as long and of the same second."""
    file.write_text(code, encoding="utf-8")
    for stale in file.parent.glob(f"__pycache__/{file.stem}.*"):
        stale.unlink()


def _fails(tests: list[str], copy: Path) -> bool:
    """Whether tests fail, or do not end, in a fork of this process."""
    import pytest

    child = os.fork()
    if not child:
        code = 99
        try:
            os.setpgid(0, 0)
            os.chdir(copy)
            sys.path.insert(0, str(copy))
            # This module's own package is not that of the copy, where its tests are.
            for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
                del sys.modules[name]
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
        finally:
            os._exit(code)
    limit = time.monotonic() + SECONDS
    while time.monotonic() < limit:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status != 0
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _some(drawn: list[Mutant], known: dict[tuple[str, int], set[str]]) -> Iterator[list[str]]:
    """The tests of the first few mutants that are reached by any."""
    found = (tests for mutant in drawn if (tests := reaching(mutant, known)))
    return islice(found, 3)


def difference(mutant: Mutant) -> str:
    """The change as a reader sees it."""
    before = (ROOT / mutant.path).read_text(encoding="utf-8").splitlines()
    lines = difflib.unified_diff(before, mutated(mutant).splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _prepare() -> None:
    """Import what takes long and is not changed."""
    sys.path[:] = [path for path in sys.path if path not in ("", str(ROOT))]
    for name in ("hypothesis", "onnx", "onnxruntime", "ml_dtypes", "onnx.reference"):
        __import__(name)
    assert not any(name.startswith("onnxreduce_cli") for name in sys.modules)


def main() -> int:
    """Draw mutants, try them, and say how many were killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", default=list(OWN_TESTS), help=", ".join(OWN_TESTS))
    parser.add_argument("--count", type=int, default=300, help="how many mutants are drawn")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", help="keeps what reaches what for the next run")
    options: Any = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        known = reach(folder, options.paths)
        drawn = [item for path in files(options.paths) for item in mutants(path)]
        random.Random(options.seed).shuffle(drawn)
        copy = Path(temporary, "copy")
        ignored = shutil.ignore_patterns(".git", ".*", "__pycache__", "build")
        shutil.copytree(ROOT, copy, ignore=ignored)
        _prepare()
        if any(_fails(tests, copy) for tests in _some(drawn, known)):
            raise SystemExit("tests fail where nothing is changed: no mutant can be judged")
        fates: dict[str, int] = {}
        for mutant in drawn[: options.count]:
            if time.monotonic() > end:
                break
            tests = reaching(mutant, known)
            fate = tried(mutant, tests, copy) if tests else UNTESTED
            fates[fate] = fates.get(fate, 0) + 1
            if fate != KILLED:
                place = f"{mutant.path}:{mutant.line} {mutant.operator}: {fate}"
                print(f"{place}\n{difference(mutant)}\n", flush=True)
    told = ", ".join(f"{count} {fate}" for fate, count in sorted(fates.items()))
    share = fates.get(KILLED, 0) / max(1, sum(fates.values()))
    print(f"{sum(fates.values())} of {len(drawn)} mutants: {told}; {share:.0%} killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
