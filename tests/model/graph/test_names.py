"""Names of values."""

from __future__ import annotations

import pytest
from onnx.parser import parse_graph

from onnxreduce_cli.model.graph.names import Names, without_absent_last
from onnxreduce_cli.model.graph.scope import Scope


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        (["x", "", "axes", "", ""], ["x", "", "axes"]),
        (["", ""], []),
        ([], []),
        (["", "y"], ["", "y"]),
    ],
)
def test_only_those_at_the_end_are_left_out(inputs: list[str], found: list[str]) -> None:
    assert without_absent_last(iter(inputs)) == found


def test_a_fresh_name_is_none_of_the_scopes_and_none_given_before() -> None:
    graph = parse_graph("g (float[N] x) => (float[N] y) { x_1 = Relu(x)  y = Relu(x_1) }")
    names = Names([Scope(graph, None, 18, "")])
    assert [names.fresh(base) for base in ("x", "z", "z", "x")] == ["x_2", "z", "z_1", "x_3"]
