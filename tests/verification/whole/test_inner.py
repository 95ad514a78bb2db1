"""Values within a model, of one of large weights too."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxreduce_cli.verification.running.isolated import IsolatedRunner, open_isolated
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole import divergence
from onnxreduce_cli.verification.whole.divergence import InnerRunner
from onnxreduce_cli.worker.process import end_current
from tests.support import model

#: More than a file may have that is parsed as it is.
ROWS, WIDTH = 17_000, 1 << 10

CHAIN = model(
    """<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[2] y) {
        a = Neg(x)
        b = Identity(a)
        y = Relu(b)
    }"""
)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 70 MB of weights, of which it takes some rows."""
    rng = np.random.default_rng(0)
    array = rng.standard_normal((ROWS, WIDTH), np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["w", "i"], ["rows"]),
            helper.make_node("ReduceMax", ["rows"], ["y"], axes=[-1]),
        ],
        "g",
        [helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 1])],
        [numpy_helper.from_array(array, "w")],
    )
    path = tmp_path_factory.mktemp("weights") / "w.onnx"
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(found, path)
    return path


def rows(source: ModelSource, executor: str) -> tuple[Any, int]:
    """The rows that a model takes, and by how many bytes the worker has grown."""
    end_current()
    before = open_isolated(ModelSource(CHAIN, "m"), executor).worker.memory
    runner = open_isolated(source, executor, extra=["rows"])
    found = runner.run({"i": np.array([3, ROWS - 1])}, ["rows"])["rows"]
    return found, runner.worker.memory - before


@pytest.mark.parametrize("executor", ["onnxruntime", "numpy"])
@pytest.mark.parametrize("given", ["file", "link", "link to no text", "external", "memory"])
def test_inner_values(weights: Path, tmp_path: Path, given: str, executor: str) -> None:
    if given == "link to no text" and sys.platform != "linux":
        pytest.skip("names of files are text there")
    path, whole = weights, onnx.load(weights)
    if given == "link":
        path = tmp_path / "linked.onnx"
        path.symlink_to(weights)
    if given == "link to no text":
        path = tmp_path / "linked.onnx"
        named = os.fsencode(tmp_path) + b"/\xff.onnx"
        os.link(weights, named)
        path.symlink_to(os.fsdecode(named))
        assert ModelSource(path, "m").in_place is None
    if given == "external":
        path = tmp_path / "external.onnx"
        onnx.save(whole, path, save_as_external_data=True, location="w.bin")
        whole = onnx.load(weights)
    found, grown = rows(ModelSource(whole if given == "memory" else path, "m"), executor)
    assert np.array_equal(found, numpy_helper.to_array(whole.graph.initializer[0])[[3, -1]])
    if executor == "onnxruntime" and given not in ("memory", "link to no text"):
        assert grown < 4 * ROWS * WIDTH / 2, "the weights are mapped"


def test_a_model_with_weights_elsewhere_too_is_as_it_is(weights: Path, tmp_path: Path) -> None:
    assert ModelSource(weights, "m").in_place is not None
    whole = onnx.load(weights)
    constant = helper.make_node("Constant", [], ["c"], value=whole.graph.initializer[0])
    whole.graph.node.insert(0, constant)
    onnx.save(whole, tmp_path / "constant.onnx")
    assert ModelSource(tmp_path / "constant.onnx", "m").in_place is None
    del whole.graph.node[0]
    small = numpy_helper.from_array(np.zeros((2, 2), np.float32), "small")
    small.data_location = onnx.TensorProto.EXTERNAL
    small.external_data.add(key="location", value="small.bin")
    small.ClearField("raw_data")
    (tmp_path / "small.bin").write_bytes(bytes(16))
    whole.graph.initializer.append(small)
    onnx.save(whole, tmp_path / "both.onnx")
    source = ModelSource(tmp_path / "both.onnx", "m")
    assert source.in_place is None
    found, _ = rows(source, "onnxruntime")
    assert found.shape == (2, WIDTH)
    assert ModelSource(whole, "m").in_place is None


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The values beside outputs of each model that is opened."""
    found: list[list[str]] = []

    def count(source: ModelSource, executor: str, *, extra: Sequence[str]) -> IsolatedRunner:
        found.append(list(extra))
        return open_isolated(source, executor, extra=extra)

    monkeypatch.setattr(divergence, "open_isolated", count)
    return found


def test_a_model_stays_open_for_the_same_values(opened: list[list[str]]) -> None:
    inner = InnerRunner((ModelSource(CHAIN, "m"), "onnxruntime"))
    for number in range(3):
        x = np.array([number, -number], np.float32)
        found = inner.values(["a", "y"], {"x": x})
        assert np.array_equal(found["a"], -x)
        assert np.array_equal(found["y"], np.maximum(-x, 0))
    assert opened == [["a", "y"]]


def test_what_no_run_can_give_is_left_out_and_not_asked_for_again(opened: list[list[str]]) -> None:
    inner = InnerRunner((ModelSource(CHAIN, "m"), "onnxruntime"))
    x = np.array([1, -1], np.float32)
    assert set(inner.values(["a", "nowhere", "b"], {"x": x})) == {"a", "b"}
    assert opened == [["a", "nowhere", "b"], ["a"], ["nowhere", "b"], ["nowhere"], ["b"]]
    opened.clear()
    assert set(inner.values(["a", "nowhere", "b"], {"x": -x})) == {"a", "b"}
    assert opened == [["a", "b"]]
