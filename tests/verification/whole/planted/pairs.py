"""Pairs of models: how one is written in text, with weights that depend on its name alone."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto, numpy_helper

Array = npt.NDArray[Any]
Weights = dict[str, Array]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models of one interface.

    Attributes:
        name: of the pair.
        interface: inputs and outputs, as ``float[N] x => float[N] y``.
        body: the nodes of the first model.
        other: the nodes of the second; empty for the same.
        weights: the shapes of float weights, by name, as ``W[8,4] b[4]``, or arrays.
        edit: changes the second model's weights in place.
        functions: the functions of both, and of the second where they differ.
        opsets: the imported opsets.
    """

    name: str
    interface: str
    body: str
    other: str = ""
    weights: str | Mapping[str, Array] = ""
    edit: Callable[[Weights], object] = field(default=lambda weights: None)
    functions: tuple[str, str] = ("", "")
    opsets: str = '"" : 18, "local" : 1, "ai.onnx.ml" : 3'

    def models(self) -> tuple[ModelProto, ModelProto]:
        """Return both models."""
        changed = {name: array.copy() for name, array in self._weights().items()}
        self.edit(changed)
        return (
            self._model(self.body, self._weights(), self.functions[0]),
            self._model(self.other or self.body, changed, self.functions[1]),
        )

    def _weights(self) -> Weights:
        if not isinstance(self.weights, str):
            return dict(self.weights)
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        found: Weights = {}
        for name, dims in re.findall(r"(\w+)\[([\d,]*)\]", self.weights):
            shape = tuple(map(int, filter(None, dims.split(","))))
            found[name] = rng.standard_normal(shape).astype(np.float32)
        return found

    def _model(self, body: str, weights: Weights, functions: str) -> ModelProto:
        inputs, outputs = self.interface.split(" => ")
        head = f"<ir_version: 8, opset_import: [{self.opsets}]>"
        model = onnx.parser.parse_model(
            f"{head} g ({inputs}) => ({outputs}) {{ {body} }} {functions}"
        )
        used = {name for node in model.graph.node for name in node.input}
        used |= set(re.findall(r"\w+", body))
        model.graph.initializer.extend(
            numpy_helper.from_array(array, name) for name, array in weights.items() if name in used
        )
        return model
