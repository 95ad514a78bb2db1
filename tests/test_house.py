"""What holds of every file of the package, beside what ruff, mypy and import-linter check."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

import onnxreduce_cli

PACKAGE = Path(onnxreduce_cli.__file__).parent


def sources() -> Iterator[tuple[str, str]]:
    """Each file of the package by its path in it, and its text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")


def module_name(path: str) -> str:
    """Return the dotted name of a file of the package, such as ``onnxreduce_cli.cli.main``."""
    parts = [PACKAGE.name, *path.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(text: str, modules: Container[str]) -> set[str]:
    """Return the modules that a file imports: within functions and for type checkers, too."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in modules else node.module)
    return {name for name in found if name in modules}


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return modules that import each other, if there are any, as a path that ends as it began."""
    finished = set[str]()
    for start in graph:
        path: list[str] = []
        stack = [(start, iter(graph[start]))] if start not in finished else []
        while stack:
            module, following = stack[-1]
            if len(path) < len(stack):
                path.append(module)
            new = next(following, None)
            if new is None:
                finished.add(module)
                stack.pop()
                path.pop()
            elif new in path:
                return [*path[path.index(new) :], new]
            elif new not in finished:
                stack.append((new, iter(graph[new])))
    return []


def test_no_modules_import_each_other() -> None:
    texts = {module_name(path): text for path, text in sources()}
    assert cycle({name: imports(text, texts) for name, text in texts.items()}) == []


def test_what_a_cycle_is() -> None:
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    assert cycle({"d": {"a"}, "a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    late = "def f():\n    if TYPE_CHECKING:\n        from p.b import C\n    import p.a"
    assert imports(late, {"p", "p.a", "p.b"}) == {"p.a", "p.b"}


#: Where anything that goes wrong is caught: the processes that answer for native code, and the last
#: resorts of the command line, for one model and for one of many.
LAST_RESORTS = {
    "batch/run.py",
    "cli/main.py",
    "verification/running/sessions.py",
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


def test_advice_says_what_to_mend() -> None:
    found = [
        f"{name}: {rest}"
        for name, text in sources()
        for rest in re.findall(r"mend the model(?!: |'s )[^\n]*", text)
    ]
    assert found == [], "say what to add or to change: mend the model: ..."


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


#: The fields that hold the value of an attribute, all of them empty in a reference.
VALUES = {"f", "floats", "i", "ints", "s", "strings"}

#: Where the attributes of a model's nodes are read by what is asked of them.
BY_VALUE = ("containers/", "emit/", "idioms/", "steps/", "targets/")


def raw_values(text: str) -> list[int]:
    """The lines of a file that read an attribute's value from the message itself."""
    tree = ast.parse(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in VALUES and id(node) not in called
    ]


def test_attributes_are_read_where_references_are_resolved() -> None:
    found = {
        name: lines
        for name, text in sources()
        if name.startswith(BY_VALUE) and (lines := raw_values(text))
    }
    # Sequences are written out in graphs alone, once functions are inlined.
    for name in ("containers/operators.py", "containers/splitting.py"):
        assert found.pop(name, None), f"{name} needs no exception"
    assert found == {}, "ask NodeFacts.value or NodeFacts.known_value"


def test_what_is_raw() -> None:
    assert raw_values("axes = node.attribute('axes').ints\n") == [1]
    assert raw_values("op.ints(1)\n") == []
