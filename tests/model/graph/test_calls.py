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
