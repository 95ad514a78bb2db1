"""Functions that differ in their names alone, and are called in the same ways."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import FunctionProto, TensorProto, helper

from onnxreduce_cli.model.alike_functions import body_key
from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.scope import scopes
from tests.support import model


def function(name: str, **more: Any) -> FunctionProto:
    nodes = [helper.make_node("Relu", ["a"], ["b"])]
    opset = [helper.make_opsetid("", 18)]
    return helper.make_function("f", name, ["a"], ["b"], nodes, opset, **more)


def key(found: FunctionProto) -> bytes:
    return body_key(found, found.overload)


@pytest.mark.parametrize(
    "other",
    [
        function("G"),
        function("Longer"),
        function("é"),
        function("F", overload="one"),
        function("G", overload="other"),
    ],
    ids=lambda item: f"{item.name}:{item.overload}",
)
def test_names_and_overloads_do_not_count(other: FunctionProto) -> None:
    assert key(other) == key(function("F"))


def test_all_else_counts() -> None:
    different = [function("F"), function("F", attributes=["x"]), function("F", doc_string="d")]
    different += [function("F") for _ in range(4)]
    different[-1].node[0].name = "n"
    different[-2].domain = "g"
    different[-3].opset_import[0].version = 17
    different[-4].value_info.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [1]))
    assert len({key(item) for item in different}) == len(different)


def test_names_too_long_to_leave_out_count() -> None:
    assert key(function("F" * 128)) != key(function("G" * 128))
    assert key(function("F", overload="o" * 128)) != key(function("F", overload="p" * 128))
    assert key(function("F" * 127)) == key(function("G"))


def test_an_overload_is_left_out_before_metadata_only_where_it_comes_last() -> None:
    found = function("F", overload="o")
    found.metadata_props.add(key="k", value="v")
    assert key(found) != key(function("F"))


ALIKE = """<ir_version: 10, opset_import: ["" : 18, "f" : 1]>
    g (float[2] x, float[2] y, float[3] z) => (float[n] o) {
        a = f.F(x) b = f.G(y) c = f.H(z) d = f.I(x) e = f.I(z) o = f.J<v = 1.0>(x)
    }
    <domain: "f", opset_import: ["" : 18]> F (a) => (b) { b = Relu(a) }
    <domain: "f", opset_import: ["" : 18]> G (a) => (b) { b = Relu(a) }
    <domain: "f", opset_import: ["" : 18]> H (a) => (b) { b = Relu(a) }
    <domain: "f", opset_import: ["" : 18]> I (a) => (b) { b = Relu(a) }
    <domain: "f", opset_import: ["" : 18]> J <v> (a) => (b) { b = Relu(a) }
    <domain: "f", opset_import: ["" : 18]> K (a) => (b) { b = Relu(a) }
    <domain: "f", opset_import: ["" : 18]> L (a) => (b) { b = Relu(a) }"""


def test_those_called_with_the_same_types_are_alike() -> None:
    found = model(ALIKE)
    facts = Facts(found, scopes(found))
    names = {id(scope): scope.label[-1:] for scope in facts.scopes}
    alike = {names[key]: names[id(scope)] for key, scope in facts.alike_functions.items()}
    # H has another type, I two, J an attribute more; nobody calls K and L.
    assert alike == {"G": "F", "L": "K"}


def test_where_callers_may_override_values_none_are() -> None:
    found = model(ALIKE)
    found.graph.initializer.append(helper.make_tensor("x", TensorProto.FLOAT, [2], [1, 2]))
    assert not Facts(found, scopes(found)).alike_functions
