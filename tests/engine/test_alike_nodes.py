"""Nodes are alike as far as what was looked up for the first of them is equal."""

from __future__ import annotations

from onnx import ModelProto

from onnxreduce_cli.emit.node_facts import Lookups
from onnxreduce_cli.engine.alike_nodes import AlikeNodes, alike_nodes
from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.scope import scopes
from tests.support import model

#: Sums of a matrix and one constant or another, which the graph gives, and a sum of two vectors.
SUMS = """<ir_version: 8, opset_import: ["" : 13]>
g (float[2,3] x, float[3] y) => (float[2,3] e)
<float[3] k = {1, 2, 3}, float[3] l = {1, 2, 3}, float[3] m = {1, 2, 4}>
{
  a = Add(x, k) b = Add(x, l) c = Add(x, m) d = Add(y, k) f = Add(x, x) h = Relu(c)
  i = Constant<value_ints=[1]>() j = Constant<value_ints=[1]>() n = Constant<value_ints=[2]>()
  e = Add(h, k)
}"""


def alike(found: ModelProto, op_type: str = "Add") -> list[AlikeNodes]:
    inner = scopes(found)
    facts = Facts(found, inner)
    return [nodes for nodes in alike_nodes(facts, inner[0]) if nodes.op_type == op_type]


def made(groups: list[AlikeNodes] | None) -> list[str]:
    """The names of what nodes that are alike make, together."""
    return ["".join(node.output[0] for node in nodes.nodes) for nodes in groups or []]


def parts(nodes: AlikeNodes, lookups: Lookups) -> list[AlikeNodes] | None:
    found = nodes.parts(lookups)
    return None if found is None else [*found]


def test_what_is_read_twice_and_what_the_graph_gives_stand_apart() -> None:
    assert made(alike(model(SUMS))) == ["abcd", "f", "e"]


def test_equal_constants_are_alike() -> None:
    assert made(alike(model(SUMS), "Constant")) == ["ij", "n"]


def test_nothing_looked_up_tells_nothing_apart() -> None:
    nodes = alike(model(SUMS))[0]
    assert parts(nodes, Lookups()) == [nodes]


def test_types_and_constants_tell_nodes_apart() -> None:
    nodes = alike(model(SUMS))[0]
    assert made(parts(nodes, Lookups(types=True))) == ["abc", "d"]
    assert made(parts(nodes, Lookups(constants={"k"}))) == ["abd", "c"]
    assert made(parts(nodes, Lookups(types=True, constants={"k"}))) == ["ab", "c", "d"]
    assert made([*nodes.in_full()]) == ["ab", "c", "d"]


def test_what_is_asked_of_a_value_that_was_made_is_asked_of_all_that_it_follows_from() -> None:
    nodes = alike(model(SUMS))[0]
    known = Lookups(types=True, shapes={"a_Expand"}, alone=True, made={"a_Expand"})
    assert made(parts(nodes, known)) == ["ab", "c", "d"]


def test_parts_are_told_apart_further_and_found_once() -> None:
    nodes = alike(model(SUMS))[0]
    first, _ = nodes.parts(Lookups(types=True)) or ()
    assert made(parts(first, Lookups(constants={"k"}))) == ["ab", "c"]
    assert parts(nodes, Lookups(types=True)) == parts(nodes, Lookups(types=True, shapes={"x"}))
    assert [*first.in_full()] == [*nodes.in_full()][:2]


def test_more_than_a_node_s_own_values_tells_of_no_other() -> None:
    nodes = alike(model(SUMS))[0]
    for known in (Lookups(more=True), Lookups(constants={"y"}), Lookups(shapes={"h"})):
        assert nodes.parts(known) is None


def test_answers_are_asked_once_of_those_alike() -> None:
    nodes = alike(model(SUMS))[0]
    by_types = [*nodes.answers(lambda node: (node.output[0], Lookups(types=True)))]
    assert by_types == ["a", "d"]
    by_more = [*nodes.answers(lambda node: (node.output[0], Lookups(more=True)))]
    assert by_more == ["a", "b", "c", "d"]
