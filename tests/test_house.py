"""The size of what one has to read at once: files and functions of the package.

How many ways lead through a function is looked after by ruff (C901).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import onnxreduce_cli

PACKAGE = Path(onnxreduce_cli.__file__).parent

#: The most lines of a file, and of a function with its docstring.
FILE, FUNCTION = 400, 50

#: What is longer still. Nothing is added here; what is short enough now is taken out.
LONG_FILES: set[str] = set()
LONG_FUNCTIONS: set[str] = set()


def sources() -> Iterator[tuple[str, str]]:
    """Each file of the package by its path in it, and its text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")


def long_functions(name: str, text: str) -> set[str]:
    """The functions of a file that are too long; decorators do not count."""
    return {
        f"{name}: {found.name}"
        for found in ast.walk(ast.parse(text))
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)
        and (found.end_lineno or 0) - found.lineno + 1 > FUNCTION
    }


def test_no_file_is_too_long() -> None:
    found = {name for name, text in sources() if len(text.splitlines()) > FILE}
    assert found - LONG_FILES == set(), "cut these into files of one subject each"
    assert LONG_FILES - found == set(), "these are short enough: take them out of the list"


def test_no_function_is_too_long() -> None:
    found = set[str]().union(*(long_functions(*source) for source in sources()))
    assert found - LONG_FUNCTIONS == set(), "cut these into functions of one purpose each"
    assert LONG_FUNCTIONS - found == set(), "these are short enough: take them out of the list"


def test_what_is_long() -> None:
    text = "\n".join(["@one", "def f():", *["    1"] * FUNCTION, "def g():", "    pass"])
    assert long_functions("a.py", text) == {"a.py: f"}
    assert long_functions("a.py", text.replace("    1\n", "", 1)) == set()
