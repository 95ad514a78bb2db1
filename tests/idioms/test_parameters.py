"""What an operator asks of its inputs: shapes, and values."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from onnx import NodeProto, helper

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms import parameters
from onnxreduce_cli.idioms.matching import NoMatchError
from onnxreduce_cli.model.graph.values import ValueType, tensor_type


class _Facts:
    """Nodes by what they make; constants, sizes and dimensions by name."""

    def __init__(self, nodes: list[NodeProto] | None = None, **known: Any) -> None:
        self._nodes = {node.output[0]: node for node in nodes or []}
        self._known = known

    def producer(self, name: str) -> NodeProto | None:
        return self._nodes.get(name)

    def constant(self, name: str) -> Any:
        found = self._known.get(name)
        return found if isinstance(found, np.ndarray) else None

    def elements(self, name: str) -> Any:
        found = self._known.get(name)
        return found if isinstance(found, list) else None

    def kept_dims(self, sizes: str, data: str) -> tuple[bool, ...]:
        found = self.elements(sizes) or []
        return tuple(size == -7 for size in found)

    def type(self, name: str) -> ValueType | None:
        found = self._known.get(name)
        return tensor_type(1, found) if isinstance(found, tuple) else None


def facts(nodes: list[NodeProto] | None = None, **known: Any) -> NodeFacts:
    return cast(NodeFacts, _Facts(nodes, **known))


@pytest.mark.parametrize(
    ("given", "dims", "fits"),
    [
        ((8,), (8,), True),
        ((1, 1, 8), (8,), True),
        ((3, 1, 1), (3, 1, 1), True),
        ((1, 3, 1, 1), (3, 1, 1), True),
        (("n",), ("n",), True),
        ((2, 8), (8,), False),
        ((1,), (8,), False),
        ((9,), (8,), False),
        ((7,), (8,), False),
        ((None,), (None,), False),
        ((None, 8), (8,), False),
        ((1,), (3, 1), False),
        ((), (8,), False),
    ],
)
def test_a_parameter_has_the_shape_of_what_it_is_for(
    given: tuple[Any, ...], dims: tuple[Any, ...], fits: bool
) -> None:
    if fits:
        parameters.require_shape(facts(p=given), "scale", "p", dims, 4)
        return
    with pytest.raises(NoMatchError, match="its scale 'p' may not have the shape"):
        parameters.require_shape(facts(p=given), "scale", "p", dims, 4)


def test_a_parameter_of_a_higher_rank_than_the_data() -> None:
    parameters.require_shape(facts(p=(1, 1, 8)), "scale", "p", (8,), 3)
    with pytest.raises(NoMatchError, match="its scale 'p' has a higher rank than its data"):
        parameters.require_shape(facts(p=(1, 1, 8)), "scale", "p", (8,), 2)


def test_a_rank_that_is_not_known() -> None:
    with pytest.raises(NoMatchError, match="the rank of 'p' is not known"):
        parameters.require_dims(facts(), "p")


@pytest.mark.parametrize(
    ("array", "filled"),
    [([1.0, 1.0], True), ([1.0, 2.0], False), ([2.0, 2.0], False), ([], True), (1.0, True)],
)
def test_a_tensor_of_one_value(array: Any, filled: bool) -> None:
    node = helper.make_node("Expand", ["a", "shape"], ["y"])
    known = facts([node], a=np.array(array))
    assert parameters.is_filled(known, "a", 1.0) is filled
    assert parameters.is_filled(known, "y", 1.0) is filled
    assert not parameters.is_filled(known, "unknown", 1.0)
    node = helper.make_node("Add", ["a", "a"], ["y"])
    assert not parameters.is_filled(facts([node], a=np.array(array)), "y", 1.0)


@pytest.mark.parametrize(
    ("op_type", "read", "attributes", "same"),
    [
        ("Shape", "x", {}, True),
        ("Shape", "z", {}, False),
        ("Shape", "x", {"start": 1}, False),
        ("Size", "x", {}, False),
        ("Expand", "x", {}, False),
    ],
)
@pytest.mark.parametrize("casts", [0, 1, 2])
def test_what_computes_a_shape(
    op_type: str, read: str, attributes: dict[str, int], same: bool, casts: int
) -> None:
    nodes = [helper.make_node(op_type, [read], ["v0"], **attributes)]
    nodes += [
        helper.make_node("Cast", [f"v{level}"], [f"v{level + 1}"], to=7) for level in range(casts)
    ]
    known = facts(nodes, x=(2, "n", None))
    assert parameters.is_shape_of(known, f"v{casts}", "x") is same


@pytest.mark.parametrize(
    ("dims", "sizes", "same"),
    [
        ((2, 3), [2, 3], True),
        ((2, 3), [2, 4], False),
        ((2, 3), [3, 3], False),
        ((2, 3), [2, 3, 1], False),
        ((2, 3), [2], False),
        ((2, "n"), [2, -7], True),
        ((2, "n"), [2, 3], False),
        ((2, None), [2, None], False),
        ((2, None), [2, -7], True),
        ((), [], True),
        (None, [2], False),
        ((2,), None, False),
    ],
)
def test_what_holds_a_shape(dims: Any, sizes: Any, same: bool) -> None:
    """Of a size of -7 the fake says that it is the one of the data."""
    assert parameters.is_shape_of(facts(s=sizes, x=dims), "s", "x") is same
