"""Axes in functions and branches: references, and what calls have in common."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

import onnxreduce_cli
from tests.support import converts, model, op_types

X = np.array([[[1.5, -2.0, 0.25], [3.0, 4.0, 7.0]]], np.float32)


def calling(opset: int, body: str, *all_axes: str) -> ModelProto:
    """Calls of a function whose attribute `dims` is set as given."""
    calls = " ".join(f"y{i} = local.F<dims : ints = {axes}>(x)" for i, axes in enumerate(all_axes))
    outputs = ", ".join(f"float[a{i},b{i},c{i}] y{i}" for i, _ in enumerate(all_axes))
    return model(f"""<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>
        g (float[1,2,3] x) => ({outputs}) {{ {calls} }}
        <domain: "local", opset_import: ["" : {opset}]>
        F <dims> (a) => (b) {{ {body} }}""")


ATTRIBUTE = "[n] b = ReduceMax<axes : ints = @dims>(a)"
CONSTANT = "ax = Constant<value_ints : ints = @dims>() [n] b = ReduceMax(a, ax)"
BOTH = "[n] t = ReduceMax<axes : ints = @dims>(a) [m] b = ReduceMin<axes : ints = @dims>(t)"


def references(found: ModelProto) -> list[str]:
    return [a.ref_attr_name for n in found.functions[0].node for a in n.attribute]


def test_one_constant_for_equal_references() -> None:
    result = converts(calling(17, BOTH, "[1]", "[0, 2]"), 18, {"x": X}, exact=True)
    assert [n.op_type for n in result.functions[0].node] == ["Constant", "ReduceMax", "ReduceMin"]
    assert references(result) == ["dims"]


@pytest.mark.parametrize("target", [17, 13, 12, 11, 10, 7])
def test_a_constant_reference_becomes_an_attribute_reference(target: int) -> None:
    result = converts(calling(18, CONSTANT, "[1]", "[0, 2]"), target, {"x": X}, exact=True)
    assert [n.op_type for n in result.functions[0].node] == ["ReduceMax"]
    assert references(result) == ["dims"]


def test_negative_ones_that_all_calls_share_are_resolved() -> None:
    result = converts(calling(18, CONSTANT, "[-1]", "[-1]"), 10, {"x": X}, exact=True)
    (node,) = result.functions[0].node
    assert [list(a.ints) for a in node.attribute if a.name == "axes"] == [[2]]


def test_negative_ones_that_differ_are_specialised() -> None:
    result = converts(calling(18, CONSTANT, "[-1]", "[1]"), 10, {"x": X}, exact=True)
    assert len(result.functions) == 2


def test_empty_lists_with_and_without_noop() -> None:
    for noop in (0, 1):
        body = CONSTANT.replace("ReduceMax", f"ReduceSumSquare<noop_with_empty_axes = {noop}>")
        source = calling(18, body, "[]")
        for target in (17, 12, 9):
            converts(source, target, {"x": X}, exact=True, in_numpy=True)
    # Whether the list is empty decides what the node does, so calls that differ get their own.
    converts(calling(18, body, "[]", "[1]"), 9, {"x": X}, exact=True, in_numpy=True)


def test_equal_axes_of_different_scopes_are_constants_of_each() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,2,3] x, bool c) => (float[1,1,3] y, float[1,1,3] z) {
            z = ReduceMin<axes = [1]>(x)
            y = If (c) <
                then_branch = t () => (float[1,1,3] o) {
                    a = ReduceMax<axes = [1]>(x)
                    o = ReduceMin<axes = [1]>(a)
                },
                else_branch = e () => (float[1,1,3] o) { o = ReduceMax<axes = [1]>(x) }
            >
        }""")
    feeds = [{"x": X, "c": np.array(flag)} for flag in (True, False)]
    result = converts(source, 18, *feeds, exact=True)
    graphs = [result.graph, *(a.g for a in result.graph.node[1].attribute)]
    assert [len(graph.initializer) for graph in graphs] == [1, 1, 1]
    assert len({graph.initializer[0].name for graph in graphs}) == 3


def test_axes_at_ir_version_3_are_constants_not_inputs() -> None:
    source = model("""<ir_version: 3, opset_import: ["" : 8]>
        g (float[1,2,3] x) => (float[1,1,3] y) { y = ReduceSum<axes = [1]>(x) }""")
    result = converts(source, 13, {"x": X}, exact=True)
    assert result.ir_version == 3
    assert [value.name for value in result.graph.input] == ["x"]
    assert op_types(result) == ["Constant", "ReduceSum"]


def test_the_plan_says_what_is_done() -> None:
    (change,) = onnxreduce_cli.plan(calling(17, ATTRIBUTE, "[1]"), 18).changes
    assert change.scope == "function local.F"
    assert change.edits == ("axes @dims → input",)
