"""Facts of one conversion: what is known of the values that it adds ends with it."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, helper

from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import tensor_type
from onnxreduce_cli.model.types.conversion_facts import ConversionFacts
from tests.model.types.known import facts_of
from tests.support import model

FLOAT, INT64 = 1, 7

SOURCE = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[N,3] x) => (float[N,3] y) <int64[2] given = {1, 2}> { y = Neg(x) }"""


def test_two_conversions_give_one_name_to_different_values() -> None:
    facts, (main,) = facts_of(model(SOURCE))
    for opset, op_type, expected in ((18, "Neg", [-1, -2]), (13, "Identity", [1, 2])):
        conversion = ConversionFacts(facts)
        node = helper.make_node(op_type, ["given"], ["n_new"])
        conversion.declare(main, node, opset, node.output)
        array = conversion.constant(main, "n_new")
        assert array is not None
        assert array.tolist() == expected
        assert conversion.type(main, "n_new") == tensor_type(INT64, (2,))
        conversion.define(main, "n_one", np.array([opset]), INT64)
        assert conversion.elements(main, "n_one") == (opset,)
    assert facts.type(main, "n_new") is None
    assert facts.constant(main, "n_new") is None
    assert ConversionFacts(facts).type(main, "n_new") is None
    assert ConversionFacts(facts).constant(main, "n_new") is None


def test_what_follows_from_the_model_and_from_generated_values() -> None:
    facts, (main,) = facts_of(model(SOURCE))
    conversion = ConversionFacts(facts)
    conversion.define(main, "n_axes", np.array([0]), INT64)
    nodes = [
        helper.make_node("Shape", ["x"], ["n_shape"]),
        helper.make_node("Unsqueeze", ["y", "n_axes"], ["n_wide"]),
        helper.make_node("Shape", ["n_wide"], ["n_sizes"]),
    ]
    for node in nodes:
        conversion.declare(main, node, 18, node.output)
    assert conversion.type(main, "n_wide") == tensor_type(FLOAT, (1, "N", 3))
    assert conversion.kind(main, "n_wide") == "tensor(float)"
    assert conversion.elements(main, "n_sizes") == (1, None, 3)
    assert conversion.elements(main, "n_shape") == (None, 3)
    assert conversion.kept_dims(main, "n_shape", "x") == (True, False)
    assert conversion.kept_dims(main, "n_sizes", "x") == (False, False, False)


def test_values_of_generated_graphs_are_told_apart_by_their_graph() -> None:
    facts, (main,) = facts_of(model(SOURCE))
    conversion = ConversionFacts(facts)
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
    conversion = ConversionFacts(facts)
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
    conversion.declare(main, node, 18, node.output)
    assert conversion.type(main, "n_out") == tensor_type(FLOAT, (None, None))
