"""The models that are run: single nodes, several of them drawn at random, and whole ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

from lab.graphs import graph
from lab.measured import load
from lab.models import model
from lab.running import expected, inputs_of
from lab.shipped import SHIPPED, shipped

#: Whole models as PyTorch and scikit-learn export them, with inputs.
EXPORTS = Path(__file__).parent.parent / "tests" / "data" / "exports"


@dataclass(frozen=True)
class Case:
    """A model with its inputs and the outputs that are right."""

    model: ModelProto
    inputs: dict[str, np.ndarray]
    right: list[np.ndarray]


def cases(only: list[str], graphs: int) -> dict[str, Case]:
    """The small models by their names.

    Args:
        only: what their names begin with; empty for all.
        graphs: how many are drawn.
    """
    found = {}
    for name, said in load()["sources"].items():
        if _is_wanted(name, only):
            given = model(name, said["source_opset"])
            found[name] = _case(given, inputs_of(given))
    for name in (f"graph_{seed}" for seed in range(graphs)):
        if _is_wanted(name, only):
            given = graph(int(name.removeprefix("graph_")))
            found[name] = _case(given, inputs_of(given))
    return found


def whole_cases(only: list[str]) -> Iterator[tuple[str, Case]]:
    """The whole models with their names: exports, and what packages ship.

    Args:
        only: what their names begin with; empty for all.
    """
    for path in sorted(EXPORTS.glob("*.onnx")):
        if _is_wanted(path.stem, only):
            with np.load(path.with_suffix(".npz")) as arrays:
                yield path.stem, _case(onnx.load(path), dict(arrays))
    for name in SHIPPED:
        if _is_wanted(name, only):
            yield name, _case(*shipped(name))


def _is_wanted(name: str, only: list[str]) -> bool:
    return not only or any(name.startswith(start) for start in only)


def _case(given: ModelProto, inputs: dict[str, np.ndarray]) -> Case:
    return Case(given, inputs, expected(given, inputs))
