"""What steps are written with knows no step."""

from __future__ import annotations

import ast
from pathlib import Path

from onnxreduce_cli import emit

FOLDER = Path(emit.__file__).parent
ALLOWED = tuple(f"onnxreduce_cli.{name}" for name in ("emit", "model", "records", "schemas"))


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found |= {module, *(f"{module}.{item.name}" for item in node.names)}
        elif isinstance(node, ast.Import):
            found |= {item.name for item in node.names}
    return {name for name in found if name.startswith("onnxreduce_cli.")}


def test_emit_imports_the_model_records_and_schemas_alone() -> None:
    found = {path.name: imported(path) for path in FOLDER.glob("*.py")}
    assert found["casts.py"], "it imports its context at least"
    others = {
        f"{file}: {name}"
        for file, names in found.items()
        for name in names
        if not name.startswith(ALLOWED)
    }
    assert others == set()


def test_its_modules_do_not_import_each_other_in_a_circle() -> None:
    left = {
        path.stem: {
            name.removeprefix("onnxreduce_cli.emit.")
            for name in imported(path)
            if name.startswith("onnxreduce_cli.emit.")
            and (FOLDER / f"{name.removeprefix('onnxreduce_cli.emit.')}.py").exists()
        }
        for path in FOLDER.glob("*.py")
    }
    while left:
        ready = {name for name, needs in left.items() if not needs & left.keys()}
        assert ready, f"a circle among {sorted(left)}"
        left = {name: needs for name, needs in left.items() if name not in ready}
