"""The models that are run: single nodes, several of them drawn at random, and whole exports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import ModelProto

from lab.graphs import graph
from lab.matrix import EXPORTS
from lab.measured import load
from lab.models import model
from lab.running import expected, inputs_of


@dataclass(frozen=True)
class Case:
    """A model with its inputs and the outputs that are right."""

    model: ModelProto
    inputs: dict[str, np.ndarray]
    right: list[np.ndarray]


def cases(only: list[str], graphs: int, *, exports: bool) -> dict[str, Case]:
    """The models by their names.

    Args:
        only: what their names begin with; empty for all.
        graphs: how many are drawn.
        exports: whether whole exports are wanted.
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
    for path in sorted(EXPORTS.glob("*.onnx")) if exports else ():
        if _is_wanted(path.stem, only):
            with np.load(path.with_suffix(".npz")) as arrays:
                found[path.stem] = _case(onnx.load(path), dict(arrays))
    return found


def _is_wanted(name: str, only: list[str]) -> bool:
    return not only or any(name.startswith(start) for start in only)


def _case(given: ModelProto, inputs: dict[str, np.ndarray]) -> Case:
    return Case(given, inputs, expected(given, inputs))
