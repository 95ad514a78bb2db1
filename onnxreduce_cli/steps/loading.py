"""Imports the modules that hold an operator's steps, once a node may have to take one.

Most models take the steps of few operators, and importing all modules takes longer than converting
a small model. `index.json` has the modules by operator, and by whether they lead up, down, or stand
for a node that a runtime gets wrong: not kept by hand, but written by
``python -m onnxreduce_cli.report.operators`` from what the modules register.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Literal

from onnxreduce_cli import steps
from onnxreduce_cli.steps.registry import ALTERNATIVES, STEPS, Direction

#: A direction of steps, or what stands for a node in the same opset.
Wanted = Direction | Literal["instead"]

INDEX = Path(__file__).with_name("index.json")


@cache
def load(op_type: str, what: Wanted) -> None:
    """Import the modules that register an operator's steps in one direction, or alternatives."""
    for name in _index().get(op_type, {}).get(what, ()):
        import_module(f"{steps.__name__}.{name}")


@cache
def load_all() -> None:
    """Import every module of the package, whether it is in the index or not."""
    import pkgutil

    for module in pkgutil.walk_packages(steps.__path__, f"{steps.__name__}."):
        import_module(module.name)


@cache
def _index() -> Mapping[str, Mapping[Wanted, list[str]]]:
    found: dict[str, dict[Wanted, list[str]]] = json.loads(INDEX.read_text(encoding="utf-8"))
    return found


def index_text() -> str:
    """What the index has to be, by what all modules register."""
    load_all()
    places: dict[str, dict[Wanted, set[str]]] = {}
    for step in STEPS.values():
        if step.apply is not None:
            own = places.setdefault(step.op_type, {})
            own.setdefault(step.direction, set()).add(step.apply.__module__)
    for op_type, found in ALTERNATIVES.items():
        places.setdefault(op_type, {})["instead"] = {item.apply.__module__ for item in found}
    for step in STEPS.values():
        if step.apply is None and step.op_type in places:
            # A reason why there is no way stands in some module of the operator's others.
            own = places[step.op_type]
            own[step.direction] = set().union(*own.values())
    start = f"{steps.__name__}."
    lines = [
        f'  "{op_type}": '
        + json.dumps(
            {
                what: sorted(name.removeprefix(start) for name in names)
                for what, names in sorted(own.items())
            }
        )
        for op_type, own in sorted(places.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"
