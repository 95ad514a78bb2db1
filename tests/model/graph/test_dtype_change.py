"""One dtype in place of another, wherever a model may name it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, TypeProto, helper, numpy_helper

from onnxreduce_cli.model.graph.dtype_change import DtypeChange, recoding

FLOAT, DOUBLE, INT64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64
HEAD = '<ir_version: 10, opset_import: ["" : {opset}, "f" : 1]> '


def model(text: str, opset: int = 18) -> ModelProto:
    return onnx.parser.parse_model(HEAD.format(opset=opset) + text)


def change(found: ModelProto, *kept: str) -> DtypeChange:
    return DtypeChange(found, FLOAT, DOUBLE, kept)


def tensor(elem_type: int) -> TypeProto:
    return helper.make_tensor_type_proto(elem_type, [2])


@pytest.mark.parametrize(
    "around",
    [
        lambda inner: inner,
        helper.make_sequence_type_proto,
        helper.make_optional_type_proto,
        lambda inner: helper.make_optional_type_proto(helper.make_sequence_type_proto(inner)),
    ],
    ids=["tensor", "sequence", "optional", "optional sequence"],
)
def test_types_of_any_depth(around: Any) -> None:
    found = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    for name in ("other", "kept"):
        found.graph.input.append(helper.make_value_info(name, around(tensor(FLOAT))))
    found.graph.input.append(helper.make_value_info("int", around(tensor(INT64))))
    change(found, "kept")
    types = {info.name: info.type for info in (*found.graph.input, *found.graph.output)}
    assert types == {
        "x": tensor(DOUBLE),
        "y": tensor(DOUBLE),
        "other": around(tensor(DOUBLE)),
        "kept": around(tensor(FLOAT)),
        "int": around(tensor(INT64)),
    }


def test_maps_keep_their_dtype() -> None:
    found = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    of_floats = helper.make_map_type_proto(INT64, tensor(FLOAT))
    found.graph.input.append(helper.make_value_info("m", of_floats))
    change(found)
    assert found.graph.input[1].type == of_floats


def test_sparse_types_and_tensors() -> None:
    found = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    info = helper.make_value_info("s", helper.make_sparse_tensor_type_proto(FLOAT, [2]))
    found.graph.input.append(info)
    values = numpy_helper.from_array(np.float32([5]), "p")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.int64([1])), [3])
    found.graph.sparse_initializer.append(sparse)
    node = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    found.graph.node.append(node)
    done = change(found)
    assert found.graph.input[1].type.sparse_tensor_type.elem_type == DOUBLE
    assert [item.name for item in done.tensors] == ["p", "p"]
    assert list(done.edits.values()) == [["sparse_value rewritten"]]


def test_what_a_cast_names() -> None:
    """By its number, or before opset 6 by its name."""
    found = model("g (float[2] x) => (y, z) { y = Cast<to = 1>(x)  z = Cast<to = 7>(x) }")
    done = change(found)
    assert [node.attribute[0].i for node in found.graph.node] == [DOUBLE, INT64]
    assert list(done.edits.values()) == [["to 1 → 11"]]
    found = model(
        'g (float[2] x) => (y, z) { y = Cast<to = "FLOAT">(x) z = Cast<to="INT64">(x) }', 5
    )
    done = change(found)
    assert [node.attribute[0].s for node in found.graph.node] == [b"DOUBLE", b"INT64"]
    assert list(done.edits.values()) == [['to "FLOAT" → "DOUBLE"']]


FUNCTIONS = """<domain: "f", opset_import: ["" : 18, "f" : 1]>
F <kind : int = 1, other : int = 1> (a) => (b, c) {
    b = Cast<to : int = @kind>(a)  c = Concat<axis : int = @other>(a, a)
}
<domain: "f", opset_import: ["" : 18, "f" : 1]>
G <inner : int = 1> (a) => (b) { b, c = f.F<kind : int = @inner, other = 1>(a) }"""


def test_attributes_of_functions_that_come_to_name_a_dtype() -> None:
    """At calls and as defaults, however many functions hand them on; a 1 of another kind stays."""
    found = model(
        "g (float[2] x) => (y, z, v, w) { y, z = f.F<kind = 1, other = 1>(x)  v = f.G<inner = 1>(x)"
        "  w = f.G<inner = 7>(x) }" + FUNCTIONS
    )
    change(found)
    given = [{item.name: item.i for item in node.attribute} for node in found.graph.node]
    assert given == [{"kind": DOUBLE, "other": 1}, {"inner": DOUBLE}, {"inner": INT64}]
    defaults = [{item.name: item.i for item in f.attribute_proto} for f in found.functions]
    assert defaults == [{"kind": DOUBLE, "other": 1}, {"inner": DOUBLE}]


@pytest.mark.parametrize(
    ("node", "attribute"),
    [
        ("RandomNormal<shape = [2]>()", "dtype"),
        ("RandomUniform<shape = [2]>()", "dtype"),
        ("HannWindow(n)", "output_datatype"),
    ],
)
def test_what_makes_floats_without_saying_so_says_it(node: str, attribute: str) -> None:
    found = model(f"g (int64 n) => (y) {{ y = {node} }}")
    change(found)
    values = {item.name: item.i for item in found.graph.node[0].attribute}
    assert values[attribute] == DOUBLE


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("Constant<value_float = 2.5>()", np.float32(2.5)),
        ("Constant<value_floats = [2.5, 1]>()", np.float32([2.5, 1])),
        ("ConstantOfShape(n)", np.float32([0])),
    ],
)
def test_floats_of_attributes_become_tensors(node: str, expected: Any) -> None:
    found = model(f"g (int64[1] n) => (y) {{ y = {node} }}")
    done = change(found)
    (held,) = done.tensors
    assert held is found.graph.node[0].attribute[0].t
    array = numpy_helper.to_array(held)
    assert (array.shape, array.tolist()) == (np.shape(expected), expected.tolist())


def test_what_refers_to_a_function_s_attribute_is_left_to_that() -> None:
    found = model(
        "g (float x) => (y) { y = f.F<v = 2.5>(x) }"
        '<domain: "f", opset_import: ["" : 18]> F <v> (a) => (b) '
        "{ b = Constant<value_float : float = @v>() }"
    )
    change(found)
    (attribute,) = found.functions[0].node[0].attribute
    assert (attribute.name, attribute.ref_attr_name) == ("value_float", "v")


def test_constants_that_are_kept() -> None:
    """Those that the caller names, and those that only take the old dtype where they are read."""
    found = model(
        """g (float[1, 1, 2] x) => (y, k) {
            s = Constant<value = float[3] {1, 1, 2}>()  y = Resize(x, , s)
            k = Constant<value = float {5}>()  c = Constant<value = float {7}>() }"""
    )
    done = change(found, "k")
    kept = [numpy_helper.to_array(item).item() for item in done.tensors]
    assert kept == [7]


def test_lists_of_types_and_tensors() -> None:
    found = model("g (float[2] x) => (y) { y = other.Op(x) }")
    node = found.graph.node[0]
    node.attribute.append(
        AttributeProto(name="types", type=AttributeProto.TYPE_PROTOS, type_protos=[tensor(FLOAT)])
    )
    weights = numpy_helper.from_array(np.float32([1]), "w")
    node.attribute.append(
        AttributeProto(name="tensors", type=AttributeProto.TENSORS, tensors=[weights])
    )
    done = change(found)
    assert node.attribute[0].type_protos[0] == tensor(DOUBLE)
    assert list(done.edits.values()) == [["tensors rewritten"]]


def test_bytes_of_another_dtype() -> None:
    given = np.array([1.5, -2, np.inf, 1e38], np.float32)
    made = np.frombuffer(recoding(FLOAT, TensorProto.FLOAT16)(given.tobytes()), np.float16)
    np.testing.assert_array_equal(made, np.float16([1.5, -2, np.inf, np.inf]))
