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


#: Where anything that goes wrong is caught: the processes that answer for native code, and the last
#: resorts of the command line, for one model and for one of many.
LAST_RESORTS = {
    "batch/run.py",
    "cli/main.py",
    "verification/sessions.py",
    "worker/server.py",
}

#: The most exceptions that one handler names; more amount to all of them.
NAMED = 4


def wide_handlers(text: str) -> list[int]:
    """The lines of a file that catch exceptions of every kind, by one name or by many.

    What tidies up and raises the exception again catches none.
    """
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler):
            last = node.body[-1]
            if isinstance(last, ast.Raise) and last.exc is None:
                continue
            caught = [node.type]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            caught = list(node.args)
        else:
            continue
        names = [
            "" if item is None else ast.unparse(item).rpartition(".")[2]
            for given in caught
            for item in (given.elts if isinstance(given, ast.Tuple) else [given])
        ]
        if len(names) > NAMED or {"", "Exception", "BaseException"}.intersection(names):
            found.append(node.lineno)
    return found


def test_no_handler_is_too_wide() -> None:
    found = {name: lines for name, text in sources() if (lines := wide_handlers(text))}
    for name in LAST_RESORTS:
        found.pop(name, None)
    assert found == {}, "catch what the call is documented to raise"


def test_what_is_wide() -> None:
    def handled(what: str) -> list[int]:
        return wide_handlers(f"try:\n    f()\nexcept {what}:\n    pass\n")

    assert handled("ValueError") == handled("(ValueError, onnx.SchemaError) as error") == []
    assert handled("") == handled("Exception as error") == [3]
    assert handled("builtins.BaseException") == handled("(ValueError, Exception)") == [3]
    assert handled("(KeyError, IndexError, TypeError, ValueError, AttributeError)") == [3]
    assert wide_handlers("try:\n    f()\nexcept BaseException:\n    g()\n    raise\n") == []
    assert wide_handlers("with suppress(OSError):\n    f()") == []
    assert wide_handlers("with contextlib.suppress(Exception):\n    f()") == [1]
