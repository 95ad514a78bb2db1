"""Of what steps emitted, taken together, only what is needed is left."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto

import onnxreduce_cli
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine import node_converter
from tests.support import converts, one_node, op_types

pytestmark = pytest.mark.newest

X = np.random.default_rng(1).normal(size=(2, 4, 8)).astype(np.float32)


def test_sizes_that_are_known_are_constants_and_the_last_node_has_the_name() -> None:
    inputs = {"x": X, "w": X[0, :, None, :4]}
    source = one_node("CausalConvWithState", 27, inputs, outputs=2)
    result = converts(source, 13, inputs)
    assert op_types(result) == ["ConstantOfShape", "Concat", "Conv", "Slice"]
    (named,) = (node for node in result.graph.node if node.name == source.graph.node[0].name)
    assert set(named.output) <= set(source.graph.node[0].output)


def test_what_is_computed_twice_is_computed_once() -> None:
    inputs = {
        "x": np.ones((2, 4, 3, 8), np.float32),
        "c": np.ones((50, 4), np.float32),
        "s": np.zeros((50, 4), np.float32),
        "p": np.arange(6).reshape(2, 3),
    }
    result = converts(one_node("RotaryEmbedding", 23, inputs), 9, inputs)
    nodes = [(node.op_type, *node.input) for node in result.graph.node]
    assert len(nodes) == len(set(nodes))
    assert op_types(result).count("Less") == 1


@pytest.mark.parametrize("dtype", [np.uint8])
def test_nothing_is_cast_there_and_back(dtype: type) -> None:
    inputs = {"x": np.array([1, 200, 7], dtype), "y": np.array([1, 2, 9], dtype)}
    result = converts(one_node("BitShift", 28, inputs, direction="RIGHT"), 9, inputs, exact=True)
    made = {node.output[0]: node for node in result.graph.node}
    for node in result.graph.node:
        maker = made.get(node.input[0])
        if node.op_type == "Cast" and maker is not None:
            assert maker.op_type != "Cast"
        assert node.op_type != "Identity"


def test_the_last_node_has_the_metadata_too() -> None:
    inputs = {"x": X[:, :, :6], "n": np.array([3, 4]), "k": np.array([2, 2])}
    source = one_node("Col2Im", 18, inputs)
    source.graph.node[0].metadata_props.add(key="from", value="a module")
    result = converts(source, 13, inputs)
    assert result.graph.node[-1].op_type == "ReduceSum"
    assert [item.value for item in result.graph.node[-1].metadata_props] == ["a module"]
    assert result.graph.node[-1].name == source.graph.node[0].name


def test_what_a_caller_may_override_is_no_constant() -> None:
    """Neither an initializer that is an input too, nor a size that follows from it."""
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,4] x, int64[2] shape) => (float[a,b] y) <int64[2] shape = {2, 4}> {
            [crop] y = CenterCropPad(x, shape)
        }""")
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    default, other = {"x": x}, {"x": x, "shape": np.array([3, 1])}
    for opset in (17, 13, 9):
        result = converts(source, opset, default, other)
        assert "shape" in [item.name for item in result.graph.input]


def test_a_value_of_the_model_keeps_its_name_and_is_read_as_it_is() -> None:
    """What becomes an Identity of an input stays one: nothing else gives the output."""
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,4] x) => (float[2,4] y, float[2,4] z) <int64[2] shape = {2, 4}> {
            y = CenterCropPad(x, shape)
            z = Neg(y)
        }""")
    result = converts(source, 9, {"x": X[0, :2, :4]}, exact=True)
    assert [output.name for output in result.graph.output] == ["y", "z"]


def test_what_was_simplified_is_what_is_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    right = node_converter.simplified

    def wrong(
        context: Context, nodes: Sequence[NodeProto], outputs: Collection[str]
    ) -> list[NodeProto]:
        found = right(context, nodes, outputs)
        for node in found:
            if node.op_type == "Sub":
                node.op_type = "Add"
        return found

    source = one_node("LayerNormalization", 17, {"x": X, "s": X[0, 0] + 3, "b": X[0, 1]})
    onnxreduce_cli.convert(source, 16)
    monkeypatch.setattr(node_converter, "simplified", wrong)
    with pytest.raises(onnxreduce_cli.CheckError):
        onnxreduce_cli.convert(source, 16)


#: The replacements of one node that had the most nodes, at most so many of them now.
LEAN = [
    ("GridSample", 22, {"x": X[None, :, :, :4], "g": X[:1, :3, :2, None] * X[:1, :1, :2]}, {}, 60),
    ("BitwiseXor", 18, {"x": np.uint64([5, 6]), "y": np.uint64([3, 2])}, {}, 20),
    ("BitwiseAnd", 18, {"x": np.int32([5, -6]), "y": np.int32([3, 2])}, {}, 12),
    ("AffineGrid", 20, {"x": X[:, :2, :3], "n": np.array([2, 1, 3, 4])}, {}, 28),
    ("Col2Im", 18, {"x": X[:, :, :6], "n": np.array([3, 4]), "k": np.array([2, 2])}, {}, 46),
    ("RotaryEmbedding", 23, {"x": X[None], "c": X[:1, :, :4], "s": X[1:, :, :4]}, {}, 10),
]


@pytest.mark.parametrize(("op_type", "opset", "inputs", "attributes", "most"), LEAN)
def test_the_largest_replacements_are_lean(
    op_type: str, opset: int, inputs: dict[str, np.ndarray], attributes: dict[str, int], most: int
) -> None:
    result = converts(one_node(op_type, opset, inputs, **attributes), 11, inputs)
    written = [op for op in op_types(result) if op != "Constant"]
    assert len(written) <= most
    made = [(node.op_type, *node.input, *map(str, node.attribute)) for node in result.graph.node]
    assert len(made) == len(set(made))
