"""Graphs within graphs."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import ModelProto, TensorProto, helper

import onnxreduce_cli
from onnxreduce_cli.cli.main import cli
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.file.document import load, nesting_depth
from onnxreduce_cli.model.graph.scope import scopes


def _field(number: int, content: bytes) -> bytes:
    """A message or text as protobuf writes it: what nests too deep cannot be made otherwise."""
    length, size = b"", len(content)
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def nested(levels: int, *, opset: int = 13) -> bytes:
    """A model whose reduction over x is within so many Ifs on c."""
    made = helper.make_node("ReduceMean", ["x"], [f"y{levels}"], name="reduce", axes=[1])
    graph = _field(1, made.SerializeToString())
    for level in reversed(range(levels)):
        inner = graph + _field(2, b"inner") + _field(12, _field(1, f"y{level + 1}".encode()))
        other = helper.make_graph(
            [helper.make_node("Identity", ["x"], ["e"])],
            "other",
            [],
            [helper.make_empty_tensor_value_info("e")],
        )
        kind = bytes([20 << 3 & 127 | 128, 1, onnx.AttributeProto.GRAPH])
        then_branch = _field(1, b"then_branch") + _field(6, inner) + kind
        else_branch = _field(1, b"else_branch") + _field(6, other.SerializeToString()) + kind
        node = _field(1, b"c") + _field(2, f"y{level}".encode()) + _field(3, f"if{level}".encode())
        node += _field(4, b"If") + _field(5, then_branch) + _field(5, else_branch)
        graph = _field(1, node)
    around = helper.make_graph(
        [],
        "main",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [helper.make_empty_tensor_value_info("y0")],
    )
    imports = helper.make_opsetid("", opset).SerializeToString()
    content = graph + around.SerializeToString()
    return bytes([1 << 3, 8]) + _field(7, content) + _field(8, imports)


@pytest.mark.parametrize("levels", [1, 30, 32])
def test_a_model_nested_deep_is_converted(levels: int, tmp_path: Path) -> None:
    source, target = tmp_path / "deep.onnx", tmp_path / "out.onnx"
    source.write_bytes(nested(levels))
    done = CliRunner().invoke(cli, ["convert", str(source), "--opset", "18", "-o", str(target)])
    assert done.exit_code == 0, done.output
    assert "1 node, all checked" in done.output
    innermost = scopes(load(target).model)[-levels - 1 :]
    assert any("ReduceMean" in scope.op_types for scope in innermost)
    shown = CliRunner().invoke(cli, ["inspect", str(target)])
    assert shown.exit_code == 0
    dry = CliRunner().invoke(cli, ["convert", str(target), "--opset", "13", "--dry-run"])
    assert dry.exit_code == 0, dry.output
    shown_in_lines = " ".join(dry.output.split())
    assert "ReduceMean: axes [1] → attribute: reduce in if0.then_branch" in shown_in_lines


@pytest.mark.newest  # ONNX Runtime 1.23 takes twice as long to load each graph within another.
def test_a_deep_model_computes_the_same() -> None:
    found = ModelProto.FromString(nested(32))
    there = onnxreduce_cli.convert(found, 18)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for condition in (True, False):
        inputs = {"x": x, "c": np.array(condition)}
        before, after = onnxreduce_cli.run(found, inputs), onnxreduce_cli.run(there, inputs)
        np.testing.assert_array_equal(before["y0"], after["y0"])
    assert onnxreduce_cli.verify(found, there).exit_code == 0


def test_depth() -> None:
    found = nested(7)
    # Model, graph, and node, attribute, graph for each If; then a node and its attribute.
    assert nesting_depth(found) == 2 + 3 * 7 + 2
    assert nesting_depth(b"\x3a\x7f") == 1, "cut off"


@pytest.mark.parametrize("levels", [33, 400, 2000])
def test_deeper_than_protobuf_reads_is_refused(levels: int, tmp_path: Path) -> None:
    path = tmp_path / "bomb.onnx"
    path.write_bytes(nested(levels))
    with pytest.raises(
        InvalidModelError, match="its graphs or types nest deeper than protobuf reads"
    ):
        load(path)


def test_what_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\x3a\x05\x0a\x7f")
    with pytest.raises(InvalidModelError, match="no ONNX model in protobuf form"):
        load(path)
