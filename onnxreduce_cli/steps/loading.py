"""The import of the modules with an operator's steps, done once a node may need one.

Most models take few steps, and importing all modules takes longer than converting a small model.
`index.json` has the modules by operator: of its steps up and down, by boundary, and of its
alternatives for runtimes. It is not kept by hand, but written by
``python -m onnxreduce_cli.report.operators`` from what the modules register.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from onnxreduce_cli import steps
from onnxreduce_cli.steps.registry import ALTERNATIVES, STEPS, Direction

INDEX = Path(__file__).with_name("index.json")


@cache
def load_step(op_type: str, boundary: int, direction: Direction) -> None:
    """Import the module that registers an operator's step across a boundary, if any does."""
    _import(_index().get(op_type, {}).get(direction, {}).get(str(boundary), ()))


@cache
def load_alternatives(op_type: str) -> None:
    """Import the modules that register alternatives to an operator at the same opset."""
    _import(_index().get(op_type, {}).get("instead", ()))


def _import(names: Iterable[str]) -> None:
    for name in names:
        import_module(f"{steps.__name__}.{name}")


@cache
def load_all() -> None:
    """Import every module of the package, whether it is in the index or not."""
    import pkgutil

    for module in pkgutil.walk_packages(steps.__path__, f"{steps.__name__}."):
        import_module(module.name)


@cache
def _index() -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(INDEX.read_text(encoding="utf-8"))
    return found


def steps_index_text() -> str:
    """Return the text of the index, by what all modules register."""
    load_all()
    start = f"{steps.__name__}."
    found: dict[str, dict[str, Any]] = {}
    for op_type, others in ALTERNATIVES.items():
        modules = {item.apply.__module__.removeprefix(start) for item in others}
        found[op_type] = {"instead": sorted(modules)}
    for step in STEPS.values():
        if step.apply is not None:
            crossing = found.setdefault(step.op_type, {}).setdefault(step.direction, {})
            crossing[str(step.boundary)] = [step.apply.__module__.removeprefix(start)]
    for step in STEPS.values():
        if step.apply is None and step.op_type in found:
            # An impossible step is registered in a module with other steps of the operator.
            own = found[step.op_type]
            modules = {*own.get("instead", ())}
            for direction in ("up", "down"):
                modules.update(*own.get(direction, {}).values())
            own.setdefault(step.direction, {})[str(step.boundary)] = sorted(modules)
    lines = [
        f'  "{op_type}": {json.dumps(own, sort_keys=True)}'
        for op_type, own in sorted(found.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"
