"""Facts that a conversion extends: what is known of the values that it adds ends with it."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, NodeProto, helper

from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import tensor_type
from tests.model.types.known import facts_of
from tests.support import model

FLOAT, INT64 = 1, 7

SOURCE = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[N,3] x) => (float[N,3] y) <int64[2] given = {1, 2}> { y = Neg(x) }"""


def test_two_conversions_give_one_name_to_different_values() -> None:
    facts, (main,) = facts_of(model(SOURCE))
    for opset, op_type, expected in ((18, "Neg", [-1, -2]), (13, "Identity", [1, 2])):
        conversion = facts.extended()
        node = helper.make_node(op_type, ["given"], ["n_new"])
        conversion.generated.declare(main, node, opset, node.output)
        array = conversion.constant(main, "n_new")
        assert array is not None
        assert array.tolist() == expected
        assert conversion.type(main, "n_new") == tensor_type(INT64, (2,))
        conversion.generated.define(main, "n_one", np.array([opset]), INT64)
        assert conversion.elements(main, "n_one") == (opset,)
    assert facts.type(main, "n_new") is None
    assert facts.constant(main, "n_new") is None
    assert facts.extended().type(main, "n_new") is None
    assert facts.extended().constant(main, "n_new") is None


def test_values_that_equal_those_of_another_scope_follow_from_their_own() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18, "own": 1]>
        g (float[2,3] x, float[4,5] z) => (float[2,3] y, float[4,5] w) { y = own.F(x) w = own.G(z) }
        <domain: "own", opset_import: ["" : 18]> F (a) => (b) { b = Neg(a) }
        <domain: "own", opset_import: ["" : 18]> G (a) => (b) { b = Neg(a) }""")
    facts, (_, first, second) = facts_of(source)
    conversion = facts.extended()
    made, equal = (helper.make_node("Shape", ["a"], [name]) for name in ("n_shape", "m_shape"))
    conversion.generated.declare(first, made, 18, made.output)
    names, nodes = {"n_shape": "m_shape"}, {id(made): equal}
    conversion.generated.repeat(second, first, names, nodes)
    assert conversion.elements(first, "n_shape") == (2, 3)
    assert conversion.elements(second, "m_shape") == (4, 5)
    assert conversion.generated.node(first, "m_shape") is None


def test_what_follows_from_the_model_and_from_generated_values() -> None:
    facts, (main,) = facts_of(model(SOURCE))
    conversion = facts.extended()
    conversion.generated.define(main, "n_axes", np.array([0]), INT64)
    nodes = [
        helper.make_node("Shape", ["x"], ["n_shape"]),
        helper.make_node("Unsqueeze", ["y", "n_axes"], ["n_wide"]),
        helper.make_node("Shape", ["n_wide"], ["n_sizes"]),
    ]
    for node in nodes:
        conversion.generated.declare(main, node, 18, node.output)
    assert conversion.type(main, "n_wide") == tensor_type(FLOAT, (1, "N", 3))
    assert conversion.kind(main, "n_wide") == "tensor(float)"
    assert conversion.elements(main, "n_sizes") == (1, None, 3)
    assert conversion.elements(main, "n_shape") == (None, 3)
    assert conversion.kept_dims(main, "n_shape", "x") == (True, False)
    assert conversion.kept_dims(main, "n_sizes", "x") == (False, False, False)


def test_values_of_generated_graphs_are_told_apart_by_their_graph() -> None:
    facts, (main,) = facts_of(model(SOURCE))
    conversion = facts.extended()
    kept = []
    for value in range(20):
        # Graphs that come and go: another may stand where one stood in memory.
        tensor = helper.make_tensor("n_held", INT64, [1], [value])
        graph = helper.make_graph([], "g", [], [], [tensor])
        found = conversion.constant(inner_scope(graph, main), "n_held")
        kept.append(None if found is None else found.tolist())
    assert kept == [[value] for value in range(20)]
    assert facts.constant(main, "n_held") is None


def inner_scope(graph: GraphProto, main: Scope) -> Scope:
    return Scope(graph, main, 18, "generated", subgraph=True)


def test_branches_of_a_generated_if_read_values_around_them() -> None:
    facts, (main,) = facts_of(model(SOURCE))
    conversion = facts.extended()
    branches = {
        name: helper.make_graph(
            [helper.make_node(op_type, ["x"], [f"n_{name}"])],
            name,
            [],
            [helper.make_tensor_value_info(f"n_{name}", FLOAT, None)],
        )
        for name, op_type in (("then_branch", "Neg"), ("else_branch", "Transpose"))
    }
    node = helper.make_node("If", ["n_condition"], ["n_out"], **branches)
    conversion.generated.declare(main, node, 18, node.output)
    values = [f"n_{name}" for name in branches] + ["y"]
    before = [conversion.generated.node(main, name) for name in values]
    assert [found and found[1].op_type for found in before] == ["Neg", "Transpose", None]
    assert conversion.type(main, "n_out") == tensor_type(FLOAT, (None, None))
    assert [conversion.generated.node(main, name) for name in values] == before


def test_branches_of_the_model_that_a_new_if_takes_over_stay_the_models() -> None:
    facts, (main, then, _) = facts_of(
        model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N,3] x, bool c) => (float[A,B] y) {
            y = If (c) <
                then_branch = t () => (float[D,E] p) { p = Neg(x) },
                else_branch = f () => (float[G,H] q) { q = Transpose(x) }
            >
        }""")
    )
    conversion = facts.extended()
    node = NodeProto()
    node.CopyFrom(main.nodes[0])
    node.output[0] = "n_out"
    conversion.generated.declare(main, node, 13, node.output)
    assert conversion.type(main, "n_out") == tensor_type(FLOAT, (None, None))
    assert conversion.generated.node(then, "p") is None
    assert conversion.type(then, "p") == facts.type(then, "p")
