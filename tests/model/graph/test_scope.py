"""Scopes and names: every graph of a model once, and names that nobody has."""

from __future__ import annotations

import onnx
from onnx import helper

from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import scopes
from tests.support import model


def nested() -> onnx.ModelProto:
    found = model("""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x, bool c) => (float[a] y) <float[2] w = {1, 2}> {
            [pick] y = If (c) <
                then_branch = t () => (float[b] o) {
                    o = If (c) <
                        then_branch = tt () => (float[b1] p) { p = Add(x, w) },
                        else_branch = te () => (float[b2] p) { p = local.F(x) }
                    >
                },
                else_branch = e () => (float[b3] o) { o = Abs(x) }
            >
        }
        <domain: "local", opset_import: ["" : 17]>
        F (a) => (b) { b = Neg(a) }""")
    return found


def test_every_scope_once_and_after_the_one_around_it() -> None:
    found = nested()
    graph = onnx.parser.parse_graph("step () => (float[2] z) { z = Neg(x) }")
    found.training_info.add().algorithm.CopyFrom(graph)
    all_scopes = scopes(found)
    assert [scope.label for scope in all_scopes] == [
        "",
        "pick.then_branch",
        "pick.then_branch > If.then_branch",
        "pick.then_branch > If.else_branch",
        "pick.else_branch",
        "training_info[0].algorithm",
        "function local.F",
    ]
    assert [scope.opset for scope in all_scopes] == [18, 18, 18, 18, 18, 18, 17]
    for scope in all_scopes:
        assert scope.parent is None or all_scopes.index(scope.parent) < all_scopes.index(scope)
    training, function = all_scopes[-2:]
    assert training.resolve("x") is all_scopes[0]
    assert function.resolve("x") is None
    assert function.function is found.functions[0]
    assert all_scopes[2].resolve("w") is all_scopes[0]
    assert all_scopes[2].resolve("p") is all_scopes[2]
    assert all_scopes[4].resolve("p") is None


def test_nesting_deeper_than_python_recurses() -> None:
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "bottom", [], [])
    for _ in range(30):
        node = helper.make_node("Loop", ["n"], ["y"], body=graph)
        graph = helper.make_graph([node], "around", [], [])
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    assert len(scopes(found)) == 31


def test_graphs_of_other_domains_are_scopes_too() -> None:
    inner = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "inner", [], [])
    node = helper.make_node("Op", ["x"], ["z"], domain="org.example", bodies=[inner, inner])
    graph = helper.make_graph([node], "g", [], [])
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    assert [scope.label for scope in scopes(found)] == ["", "Op.bodies[0]", "Op.bodies[1]"]


def test_how_nodes_are_called_in_messages() -> None:
    (scope,) = scopes(helper.make_model(helper.make_graph([], "g", [], [])))
    assert scope.describe(helper.make_node("A", [], ["y"], name="n")) == "n"
    assert scope.describe(helper.make_node("A", [], ["", "y"])) == "making 'y'"
    assert scope.describe(helper.make_node("A", [], [""])) == "without a name"


def test_names_are_fresh_in_the_whole_tree() -> None:
    found = nested()
    values = helper.make_tensor("sparse", 1, [1], [1.0])
    indices = helper.make_tensor("", 7, [1], [0])
    found.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    found.graph.value_info.append(helper.make_tensor_value_info("stale", 1, [3]))
    found.graph.quantization_annotation.add(tensor_name="annotated")
    tree = [scope for scope in scopes(found) if scope.function is None]
    names = Names(tree)
    for taken in ("x", "c", "y", "o", "p", "w", "pick", "sparse", "stale", "annotated"):
        assert names.fresh(taken) == f"{taken}_1"
    assert names.fresh("x") == "x_2"
    assert names.fresh("new") == "new"
    assert names.fresh("new") == "new_1"
    assert names.fresh("b") == "b", "a function's names are its own"
