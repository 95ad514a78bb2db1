"""Sizes and numbers that nodes compute: how far, and how often, they are looked up."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from onnx import NodeProto, helper

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.sizes import Sizes, number
from onnxreduce_cli.model.values import ValueType, tensor_type


class _Facts:
    """Nodes by what they make, constants by name; it counts how often a constant is asked for."""

    def __init__(self, nodes: list[NodeProto], ranks: dict[str, int] | None = None) -> None:
        self._nodes = {node.output[0]: node for node in nodes}
        self._ranks = ranks or {}
        self.asked = 0

    def producer(self, name: str) -> NodeProto | None:
        return self._nodes.get(name)

    def constant(self, name: str) -> Any:
        self.asked += 1
        return np.float32(int(name)) if name.isdigit() else None

    def type(self, name: str) -> ValueType | None:
        rank = self._ranks.get(name)
        return None if rank is None else tensor_type(1, (None,) * rank)

    def rank(self, name: str) -> int | None:
        return self._ranks.get(name)


def _number(facts: _Facts, name: str) -> float | None:
    return number(cast(NodeFacts, facts), name)


def test_a_scale_that_nodes_compute() -> None:
    facts = _Facts(
        [helper.make_node("Sqrt", ["64"], ["root"]), helper.make_node("Div", ["1", "root"], ["y"])]
    )
    assert _number(facts, "y") == 0.125


@pytest.mark.parametrize("op_type", ["Div", "Add", "Concat"])
def test_a_chain_that_doubles_is_not_followed_each_way(op_type: str) -> None:
    count = 100 if op_type == "Concat" else 2
    nodes = [
        helper.make_node(op_type, [f"v{level - 1}"] * count, [f"v{level}"]) for level in range(40)
    ]
    facts = _Facts(nodes)
    assert _number(facts, "v39") is None
    assert facts.asked < 100


def test_a_tensor_of_rank_0_has_no_dimension_to_follow() -> None:
    facts = _Facts([helper.make_node("Transpose", ["x"], ["y"])], {"x": 0, "y": 0})
    assert Sizes(cast(NodeFacts, facts)).of("y", 0) == ("y", 0)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_product_has_the_rows_of_its_first_factor_alone(axis: int) -> None:
    facts = _Facts([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": 3, "w": 2, "y": 3})
    sizes = Sizes(cast(NodeFacts, facts))
    assert (sizes.of("y", axis) == sizes.of("x", axis)) is (axis < 2)
