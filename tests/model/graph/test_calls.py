"""Calls of functions, and what they give for attributes."""

from __future__ import annotations

import onnx

from onnxreduce_cli.model.graph.calls import UNKNOWN
from tests.model.types.known import facts_of
from tests.support import model


def test_attributes_of_functions() -> None:
    found = model("""<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x) => (float[2] y, float[2] z) {
            y = local.F<same = 3, other = 1>(x)
            z = local.F<same = 3, other = 2, more = 5>(x)
        }
        <domain: "local", opset_import: ["" : 18]>
        F <same, other, none, more : int = 5> (a) => (b) { b = Neg(a) }""")
    facts, (_, function) = facts_of(found)

    def resolved(name: str) -> object:
        reference = onnx.AttributeProto(name="k", ref_attr_name=name, type=onnx.AttributeProto.INT)
        return facts.calls.resolve_attribute(function, reference)

    assert resolved("same") == 3
    assert resolved("other") is UNKNOWN
    assert resolved("none") is None
    assert resolved("more") == 5
    assert facts.calls.resolve_attribute(function, None, 7) == 7
    none = onnx.AttributeProto(name="k", ref_attr_name="none", type=onnx.AttributeProto.INT)
    assert facts.calls.resolve_attribute(function, none, 7) == 7


def test_an_attribute_that_refers_to_one_that_no_call_sets() -> None:
    found = model("""<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x) => (float[2] y) { y = local.F(x) }
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        F <outer> (a) => (b) { b = local.G<inner : int = @outer>(a) }
        <domain: "local", opset_import: ["" : 18]>
        G <inner : int = 5> (a) => (b) { b = Neg(a) }""")
    facts, (_, _, function) = facts_of(found)
    reference = onnx.AttributeProto(name="k", ref_attr_name="inner", type=onnx.AttributeProto.INT)
    assert facts.calls.resolve_attribute(function, reference) == 5


def test_attributes_that_calls_of_calls_set_together() -> None:
    found = model("""<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x) => (float[2] y, float[2] z, float[2] w) {
            y = local.F<p = 1, q = 2>(x) z = local.F<p = 2, q = 1>(x) w = local.F<p = 1, q = 2>(x)
        }
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        F <p, q> (a) => (b) {
            c = local.G<r : int = @p, s : int = @q>(a) b = local.G<r : int = @q, s = 7>(c) }
        <domain: "local", opset_import: ["" : 18]>
        G <r, s, t : int = 5> (a) => (b) { b = Neg(a) }""")
    facts, (_, _, scope) = facts_of(found)
    function = scope.function
    assert function is not None
    combinations = facts.calls.values_of_calls(function, ("r", "s", "t"))
    assert combinations == [(1, 2, 5), (2, 1, 5), (2, 7, 5), (1, 7, 5)]
    reference = onnx.AttributeProto(name="k", ref_attr_name="s", type=onnx.AttributeProto.INT)
    assert facts.calls.possible_values(scope, reference) == [2, 1, 7]
    assert facts.calls.resolve_attribute(scope, reference) is UNKNOWN


def test_an_attribute_left_out_has_the_default_of_whoever_asks() -> None:
    found = model("""<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x) => (float[2] y, float[2] z) { y = local.F<p = 1>(x) z = local.F(x) }
        <domain: "local", opset_import: ["" : 18]>
        F <p> (a) => (b) { b = Neg(a) }""")
    facts, (_, scope) = facts_of(found)
    reference = onnx.AttributeProto(name="k", ref_attr_name="p", type=onnx.AttributeProto.INT)
    assert facts.calls.possible_values(scope, reference) == [1, None]
    assert facts.calls.resolve_attribute(scope, reference, 1) == 1


def test_too_many_combinations_are_not_known() -> None:
    calls = "".join(f"y{number} = local.F<p = {number}>(x) " for number in range(300))
    found = model(f"""<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x) => (float[2] y0) {{ {calls} }}
        <domain: "local", opset_import: ["" : 18]>
        F <p> (a) => (b) {{ b = Neg(a) }}""")
    facts, (_, scope) = facts_of(found)
    assert scope.function is not None
    assert facts.calls.values_of_calls(scope.function, ("p",)) is None
    assert facts.calls.values_of_calls(scope.function, ("q",)) == [(None,)]
