"""Imports the modules that hold an operator's steps, once a node may have to take one.

Most models take the steps of few operators, and importing all modules takes longer than converting
a small model. `index.json` has the modules by operator: not kept by hand, but written by
``python -m onnxreduce_cli.report.operators`` from what the modules register.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

from onnxreduce_cli import steps
from onnxreduce_cli.steps.registry import ALTERNATIVES, STEPS

INDEX = Path(__file__).with_name("index.json")


@cache
def load(op_type: str) -> None:
    """Import the modules that register steps of an operator, or what else stands for its nodes."""
    for name in _index().get(op_type, ()):
        import_module(f"{steps.__name__}.{name}")


@cache
def load_all() -> None:
    """Import every module of the package, whether it is in the index or not."""
    for module in pkgutil.walk_packages(steps.__path__, f"{steps.__name__}."):
        import_module(module.name)


@cache
def _index() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = json.loads(INDEX.read_text(encoding="utf-8"))
    return found


def index_text() -> str:
    """What the index has to be, by what all modules register."""
    load_all()
    places: dict[str, set[str]] = {}
    for step in STEPS.values():
        if step.apply is not None:
            places.setdefault(step.op_type, set()).add(step.apply.__module__)
    for op_type, found in ALTERNATIVES.items():
        places.setdefault(op_type, set()).update(item.apply.__module__ for item in found)
    lines = [
        f'  "{op_type}": {json.dumps([name.removeprefix(f"{steps.__name__}.") for name in names])}'
        for op_type, names in sorted((op_type, sorted(names)) for op_type, names in places.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"
