"""Tensors of more dimensions than an array of NumPy has: converted, and never drawn."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import onnxreduce_cli
from onnxreduce_cli.api.checks import check_conversion
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.verification.whole.equivalence import verify

DIMS = [1] * 69 + [2]

DEEP = helper.make_tensor("deep", TensorProto.FLOAT, [1] * 70, [2.0])


def of(*nodes: NodeProto, initializers: tuple[TensorProto, ...] = ()) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, DIMS)],
        [helper.make_empty_tensor_value_info("y")],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


MODELS = {
    "reduced": of(helper.make_node("ReduceMax", ["x"], ["y"], axes=[69])),
    "an initializer": of(
        helper.make_node("Add", ["x", "deep"], ["a"]),
        helper.make_node("ReduceMean", ["a"], ["y"], axes=[-1]),
        initializers=(DEEP,),
    ),
    "a constant": of(
        helper.make_node("Constant", [], ["c"], value=DEEP),
        helper.make_node("Mul", ["x", "c"], ["a"]),
        helper.make_node("ReduceMin", ["a"], ["y"], axes=[-1]),
    ),
}


@pytest.mark.parametrize("opset", [6, 18])
@pytest.mark.parametrize("name", MODELS)
def test_they_are_converted_and_what_cannot_be_tried_is_said(name: str, opset: int) -> None:
    conversion = Conversion(MODELS[name], opset, Options(emulate=True))
    assert conversion.blockers == ()
    if conversion.rewrites_nodes:
        report = check_conversion(conversion, strict=False)
        assert report is not None
        said = [str(item) for item in report.unchecked]
        assert all("dimensions, and an array of NumPy has 64 at most" in item for item in said)
    assert onnxreduce_cli.convert(MODELS[name], opset, check=False).opset_import[0].version == opset


def test_nothing_is_known_of_what_they_compute() -> None:
    with pytest.raises(onnxreduce_cli.InputError, match="'x' has 70 dimensions") as caught:
        verify(MODELS["reduced"], trials=1)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("dims", ["0, 4611686018427387904, 4", "2, 0" + ", 4" * 40])
@pytest.mark.parametrize("dtype", ["float", "int8", "bool", "string", "complex128"])
def test_no_elements_and_sizes_that_no_array_has(dims: str, dtype: str) -> None:
    found = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 16]>
        g ({dtype}[{dims}] x) => ({dtype}[n] y) {{ y = Identity(x) }}""")
    with pytest.raises(onnxreduce_cli.InputError, match="'x' has no elements, and") as caught:
        verify(found, trials=1)
    assert caught.value.exit_code == 3
