"""Nodes that are out of order."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.graph import order
from tests.support import run

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def casts_at_the_end(middle: str = "b = Neg(a)") -> ModelProto:
    """What converters to float16 leave that keep a model's inputs and outputs in float."""
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x, bool c) => (float[k,3] y) <int64[1] axes = {{0}}> {{
            {middle}
            s = ReduceMax(b, axes)
            a = Cast<to = 10>(x)
            y = Cast<to = 1>(s)
        }}"""
    )


def names(found: ModelProto) -> list[str]:
    return [node.output[0] for node in found.graph.node]


@pytest.mark.parametrize("target", [21, 17, 13, 9])
def test_casts_at_the_end(target: int) -> None:
    source = casts_at_the_end()
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(source)
    result = onnxreduce_cli.convert(source, target)
    onnx.checker.check_model(result, full_check=True)
    assert [name for name in names(result) if name in "abs y"] == ["a", "b", "s", "y"]
    expected = -X[:1].astype(np.float16)
    assert np.array_equal(run(result, {"x": X, "c": np.array(True)})["y"], expected)
    said = [change.edits[-1] for change in onnxreduce_cli.plan(source, target).changes]
    assert sum("nodes of its graph are put in order" in words for words in said) == 1


def test_at_its_own_opset_it_stays() -> None:
    source = casts_at_the_end()
    assert onnxreduce_cli.convert(source, 18).SerializeToString() == source.SerializeToString()


def test_where_no_node_changes() -> None:
    source = casts_at_the_end()
    del source.graph.node[1]
    source.graph.node[-1].input[0] = "b"
    result = onnxreduce_cli.convert(source, 17)
    assert names(result) == ["a", "b", "y"]
    onnx.checker.check_model(result, full_check=True)


def test_what_a_branch_reads() -> None:
    """Where the branch's own names are those of values around it."""
    source = casts_at_the_end(
        """b = If (c) <
            then_branch = t () => (float16[2,3] b) { o = Neg(a)  b = Neg(o) },
            else_branch = e () => (float16[2,3] o) { o = Neg(m)  m = Neg(a) }
        >"""
    )
    result = onnxreduce_cli.convert(source, 17)
    onnx.checker.check_model(result, full_check=True)
    feeds = {"x": X, "c": np.array(False)}
    assert np.array_equal(run(result, feeds)["y"], X[1:].astype(np.float16))


def test_a_cycle() -> None:
    source = casts_at_the_end("b = Add(a, d)  d = Neg(b)")
    with pytest.raises(InvalidModelError, match="needs its own result"):
        onnxreduce_cli.convert(source, 17)


def test_few_are_looked_at_where_all_is_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [onnx.helper.make_node("Neg", [f"v{n}"], [f"v{n + 1}"]) for n in range(1000)]
    monkeypatch.setattr(order, "_first_early", None)
    assert order.misplaced(nodes, {"v1000"}) is None


def test_in_order_is_left_alone() -> None:
    nodes = [onnx.helper.make_node("Neg", [f"v{n}"], [f"v{n + 1}"]) for n in range(1000)]
    assert order.in_order(nodes) == nodes
    assert order.in_order(nodes[::-1]) == nodes
    assert order.misplaced(nodes[::-1], {"v1000"}) is nodes[-1]
