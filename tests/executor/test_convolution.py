"""Convolutions take memory in proportion to their data, and give the same in pieces."""

from __future__ import annotations

import tracemalloc

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper

from onnxreduce_cli.executor import Executor, linear
from tests.executor.models import model, value


def _conv(groups: int = 1) -> Executor:
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], group=groups)
    return Executor(model([node], [value("x"), value("w")], ["y"], 13))


def test_windows_are_not_all_in_memory_at_once() -> None:
    x = np.ones((1, 32, 160, 160), np.float32)
    executor = _conv()
    tracemalloc.start()
    try:
        executor.run({"x": x, "w": np.ones((4, 32, 3, 3), np.float32)})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The padded data, and windows of 4 MB; all windows would be nine times the data.
    assert most < 4 * x.nbytes


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("most", [1, 700, 1 << 20])
def test_pieces_of_a_convolution_are_the_whole(monkeypatch, groups: int, most: int) -> None:
    monkeypatch.setattr(linear, "_MOST_COPIED", most)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 4, 7, 5)).astype(np.float32)
    w = rng.standard_normal((6, 4 // groups, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], group=groups)
    found = model([node], [value("x"), value("w")], ["y"], 13)
    found.ir_version = 8
    session = ort.InferenceSession(found.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x, "w": w})
    np.testing.assert_allclose(_conv(groups).run({"x": x, "w": w})["y"], expected, atol=1e-5)
