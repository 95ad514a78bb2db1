"""Types that the user states of values."""

from __future__ import annotations

import pytest
from onnx import ModelProto, TensorProto, helper

import onnxreduce_cli
from onnxreduce_cli.errors import ConversionError, UsageError
from onnxreduce_cli.model.types.stating import parse_type
from tests.support import model


def behind_custom() -> ModelProto:
    found = model("""<ir_version: 8, opset_import: ["" : 18, "my.ops" : 1]>
    g (float[2,3] x) => (float[N,M] z) { y = my.ops.Foo(x) a = Relu(y) n = Mish(x) z = Abs(n) }""")
    found.graph.output.append(helper.make_empty_tensor_value_info("a"))
    return found


@pytest.mark.parametrize(
    ("text", "elem_type", "dims"),
    [
        ("float", TensorProto.FLOAT, None),
        ("float32", TensorProto.FLOAT, None),
        ("float64[]", TensorProto.DOUBLE, ()),
        ("uint8[N, 3,?]", TensorProto.UINT8, ("N", 3, None)),
        ("string[0]", TensorProto.STRING, (0,)),
    ],
)
def test_types_as_text(
    text: str, elem_type: int, dims: tuple[int | str | None, ...] | None
) -> None:
    assert parse_type(text) == helper.make_tensor_type_proto(elem_type, dims)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uint9", "no dtype 'uint9'; did you mean uint"),
        ("undefined", "no dtype 'undefined'"),
        ("", "is no type; give one like float"),
        ("float[", "is no type"),
        ("float[-1]", "'-1' in 'float\\[-1\\]' is no dimension"),
        ("float[2,]", "'' in 'float\\[2,\\]' is no dimension"),
        ("float[99999999999999999999]", "no dimension"),
    ],
)
def test_what_is_no_type_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_type(text)


def test_what_is_stated_is_in_the_result() -> None:
    source = behind_custom()
    before = source.SerializeToString()
    with pytest.raises(ConversionError, match=r"types=\{'y': 'float'\}"):
        onnxreduce_cli.convert(source, 13)
    result = onnxreduce_cli.convert(source, 13, types={"y": "float[2,K]"}, check=False)
    assert source.SerializeToString() == before
    (info,) = [info for info in result.graph.value_info if info.name == "y"]
    assert info.type == helper.make_tensor_type_proto(TensorProto.FLOAT, (2, "K"))


def test_an_output_without_a_type_gets_it_in_place() -> None:
    result = onnxreduce_cli.convert(behind_custom(), 13, types={"a": "double"}, check=False)
    assert result.graph.output[1].type.tensor_type.elem_type == TensorProto.DOUBLE
    assert [info.name for info in result.graph.value_info] == []


def test_types_alone_are_written_too() -> None:
    result = onnxreduce_cli.convert(behind_custom(), 18, types={"y": "float"})
    assert [info.name for info in result.graph.value_info] == ["y"]
    assert result.ir_version == 8


def test_the_model_is_as_it_was_where_nothing_comes_of_it() -> None:
    source = behind_custom()
    before = source.SerializeToString()
    with pytest.raises(UsageError, match="opset 99"):
        onnxreduce_cli.convert(source, 99, types={"y": "float", "a": "float"}, in_place=True)
    source.graph.node[1].op_type = "Mish"
    before = source.SerializeToString()
    with pytest.raises(ConversionError, match="rank of 'y'"):
        onnxreduce_cli.convert(source, 6, types={"y": "float", "a": "float"}, in_place=True)
    assert source.SerializeToString() == before
    assert onnxreduce_cli.plan(source, 13, types={"y": "float"}).types == ("y=float",)
    assert source.SerializeToString() == before


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"yy": "float"}, "types yy: no graph of the model has such a value; did you mean y"),
        ({"": "float"}, "no graph of the model has such a value"),
        ({"y": "bool"}, "types y: it cannot be a tensor\\(bool\\); what makes and reads it takes"),
        ({"n": "double"}, "types n: it is known to be float\\[2,3\\]"),
        ({"n": "float[2,4]"}, "types n: it is known to be float\\[2,3\\]"),
        ({"x": "float[2]"}, "types x: it is known to be float\\[2,3\\]"),
        ({"y": "float", "a": "double"}, "types a: it is known to be float"),
    ],
)
def test_what_cannot_be_is_refused(types: dict[str, str], message: str) -> None:
    source = behind_custom()
    before = source.SerializeToString()
    with pytest.raises(UsageError, match=message):
        onnxreduce_cli.plan(source, 13, types=types)
    assert source.SerializeToString() == before


def test_what_is_known_stays_known() -> None:
    """A type with fewer dimensions takes none away."""
    result = onnxreduce_cli.convert(behind_custom(), 13, types={"n": "float[?,K]", "y": "float"})
    (info,) = [info for info in result.graph.value_info if info.name == "n"]
    assert info.type == helper.make_tensor_type_proto(TensorProto.FLOAT, (2, 3))


def test_a_value_of_a_graph_within_is_stated_there() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18, "my.ops" : 1]>
    g (float[2,3] x, bool s) => (float[2,3] z) {
      z = If(s) <then_branch = one () => (float[2,3] u) { y = my.ops.Foo(x) r = Mish(y)
                                                           u = Add(r, x) },
                 else_branch = two () => (float[2,3] w) { w = Mish(x) }> }""")
    result = onnxreduce_cli.convert(source, 17, types={"y": "float[2,3]"}, check=False)
    branch = result.graph.node[-1].attribute[0].g
    assert "y" in [info.name for info in branch.value_info]
    assert not result.graph.value_info
