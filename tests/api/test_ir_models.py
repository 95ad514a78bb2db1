"""A model of the onnx-ir package is converted into another one of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import numpy_helper

import onnxreduce
from onnxreduce import ConversionError, UsageError
from tests.support import model

SOURCE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[2,1] y) <int64[1] axes = {1}> { [first] y = ReduceMax(x, axes) }"""

#: Nothing before opset 13 has a place for bfloat16 reductions.
BLOCKED = """<ir_version: 8, opset_import: ["" : 18]>
g (bfloat16[2,3] x) => (bfloat16[1,1] y) { [first] y = ReduceMax(x) }"""


def test_one_goes_in_and_another_comes_out() -> None:
    source = onnx_ir.from_proto(model(SOURCE))
    made = onnxreduce.convert(source, 13)
    assert isinstance(made, onnx_ir.Model)
    assert (source.graph.opset_imports[""], made.graph.opset_imports[""]) == (18, 13)
    (node,) = made.graph
    assert node.name == "first"
    assert node.attributes["axes"].value == (1,)
    assert onnx_ir.to_proto(made) == onnxreduce.convert(onnx_ir.to_proto(source), 13)


def test_a_plan_of_one() -> None:
    plan = onnxreduce.plan(onnx_ir.from_proto(model(BLOCKED)), 11)
    assert [blocker.node for blocker in plan.blockers] == ["first"]
    with pytest.raises(ConversionError, match="bfloat16"):
        onnxreduce.convert(onnx_ir.from_proto(model(BLOCKED)), 11)


def external(folder: Path) -> onnx_ir.Model:
    """A model whose weights are in a file of their own."""
    given = model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2,3] x) => (float[2,1] y) '
        "<float[3] w = {1, 2, 3}, int64[1] axes = {1}> { s = Mul(x, w) y = ReduceMax(s, axes) }"
    )
    weights = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w")
    next(item for item in given.graph.initializer if item.name == "w").CopyFrom(weights)
    folder.mkdir()
    onnx.save(
        given, folder / "a.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    return onnx_ir.load(folder / "a.onnx")


def test_external_data_stays_where_it_is(tmp_path: Path) -> None:
    made = onnxreduce.convert(external(tmp_path / "a"), 13)
    weights = made.graph.initializers["w"].const_value
    assert isinstance(weights, onnx_ir.ExternalTensor)
    assert Path(weights.path) == tmp_path / "a" / "w.bin"
    assert weights.numpy().tolist() == [1, 2, 3]


def test_external_data_of_several_folders(tmp_path: Path) -> None:
    first, second = external(tmp_path / "a"), external(tmp_path / "b")
    other = second.graph.initializers["w"].const_value
    first.graph.register_initializer(onnx_ir.Value(name="v", const_value=other))
    with pytest.raises(UsageError, match="load_to_model"):
        onnxreduce.convert(first, 13)


def test_none_is_edited_in_place() -> None:
    with pytest.raises(UsageError, match="only a ModelProto can be edited in place"):
        onnxreduce.convert(onnx_ir.from_proto(model(SOURCE)), 13, in_place=True)
