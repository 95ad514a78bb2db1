"""Random models, converted there and back: nothing wrong, nothing invalid."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import ModelProto, helper

import onnxreduce_cli
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine.contraction import Contraction
from tests.random_graphs.__main__ import WRONG, search
from tests.random_graphs.family import REDUCTIONS
from tests.random_graphs.graphs import cases
from tests.random_graphs.whole_model import near_misses, whole_model_cases


def test_a_sample() -> None:
    counts = search(30, 0, cases())
    assert counts["converted"] > 10


def test_a_sample_with_options_for_the_whole_model() -> None:
    counts = search(40, 0, whole_model_cases())
    assert counts["converted"] > 10


def test_what_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversion that turns keepdims, which some drawn models have, into its opposite."""
    convert = onnxreduce_cli.convert

    def wrong(model: ModelProto, opset: int, **options: Any) -> ModelProto:
        found = convert(model, opset, **options)
        for node in found.graph.node:
            if node.op_type in REDUCTIONS:
                node.attribute.append(helper.make_attribute("keepdims", 0))
                del node.attribute[:-1]
        return found

    monkeypatch.setattr(onnxreduce_cli, "convert", wrong)
    assert search(100, 0, cases(), each_one=True)[WRONG]


def test_a_wrong_idiom_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Softplus in place of others, whose nodes stay as the check tells them apart."""
    emit = Contraction.emit

    def wrong(self: Contraction, context: Context) -> None:
        emit(self, context)
        for node, _ in context.emitted:
            if node.op_type in ("HardSwish", "Mish"):
                node.op_type = "Softplus"

    monkeypatch.setattr(Contraction, "emit", wrong)
    assert search(150, 0, near_misses(), each_one=True)[WRONG]
