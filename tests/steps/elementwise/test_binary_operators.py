"""Binary operators across opset 7, where they began to broadcast as NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import blockers, converts, model, of_unknown_rank, one_node, op_types

ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Pow")
COMPARING = ("Greater", "Less")
LOGICAL = ("And", "Or", "Xor")


def data(op_type: str, *shape: int) -> np.ndarray[Any, Any]:
    values = np.random.default_rng(len(shape)).integers(1, 4, shape)
    return values > 1 if op_type in LOGICAL else values.astype(np.float32)


@pytest.mark.parametrize("op_type", [*ARITHMETIC, *COMPARING, *LOGICAL])
@pytest.mark.parametrize(
    ("first", "second", "given"),
    [
        ((2, 3, 4), (2, 3, 4), {}),
        ((2, 3, 4), (4,), {"broadcast": 1}),
        ((2, 3, 4), (), {"broadcast": 1}),
        ((2, 3, 4), (1,), {"broadcast": 1}),
        ((2, 3, 4), (3,), {"broadcast": 1, "axis": 1}),
        ((2, 3, 4), (2, 3), {"broadcast": 1, "axis": 0}),
        ((2, 3, 4), (3, 4), {"broadcast": 1, "axis": 1}),
        ((2, 0, 4), (0,), {"broadcast": 1, "axis": 1}),
    ],
)
def test_up_and_down_again(op_type: str, first: Any, second: Any, given: Any) -> None:
    feeds = {"a": data(op_type, *first), "b": data(op_type, *second)}
    source = one_node(op_type, 6, feeds, output_shapes=(first,), **given)
    if op_type in (*COMPARING, *LOGICAL):
        source.graph.output[0].type.tensor_type.elem_type = 9
    up = converts(source, 7, feeds, in_numpy=True)
    assert not up.graph.node[-1].attribute
    converts(up, 6, feeds, in_numpy=True)


@pytest.mark.parametrize("op_type", ARITHMETIC)
@pytest.mark.parametrize(
    ("first", "second"),
    [((2, 3, 4), (1, 3, 1)), ((2, 3, 4), (1, 1, 4)), ((2, 3, 4), (2, 1, 1)), ((2, 3), (1, 1))],
)
def test_dimensions_of_one_going_down(op_type: str, first: Any, second: Any) -> None:
    feeds = {"a": data(op_type, *first), "b": data(op_type, *second)}
    converts(one_node(op_type, 7, feeds), 6, feeds, in_numpy=True)


@pytest.mark.parametrize("op_type", [*ARITHMETIC, *COMPARING, *LOGICAL])
@pytest.mark.parametrize(("first", "second"), [((5,), (1, 1)), ((), (1,)), ((2, 3), (1, 1, 1, 1))])
def test_one_element_of_more_dimensions(op_type: str, first: Any, second: Any) -> None:
    feeds = {"a": data(op_type, *first), "b": data(op_type, *second)}
    converts(one_node(op_type, 7, feeds), 6, feeds, in_numpy=True)


def test_the_smaller_first_input_swaps_where_that_is_the_same() -> None:
    feeds = {"a": data("Add", 4), "b": data("Add", 2, 3, 4)}
    for op_type, turned in (("Add", "Add"), ("Less", "Greater"), ("Greater", "Less")):
        low = converts(one_node(op_type, 7, feeds), 6, feeds, in_numpy=True)
        assert op_types(low) == [turned]
        assert list(low.graph.node[0].input) == ["b", "a"]
    low = converts(one_node("Sub", 7, feeds), 6, feeds, in_numpy=True, ir_version=4)
    assert op_types(low) == ["Unsqueeze", "Tile", "Sub"]


SHAPES = [
    ((4, 1), (1, 4)),
    ((2, 1, 4), (1, 3, 4)),
    ((2, 3, 4), (2, 1, 4)),
    ((2, 1, 4), (2, 3, 4)),
    ((4,), (2, 3, 4)),
    ((1,), (3,)),
    ((), (1, 2)),
    ((1, 1), (0, 3)),
    ((0, 1), (1, 3)),
    ((2, 3), (1, 1, 3)),
    ((), ()),
]


@pytest.mark.parametrize("op_type", ["Sub", "Less", "And"])
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_what_the_older_version_cannot_is_repeated(op_type: str, first: Any, second: Any) -> None:
    feeds = {"a": data(op_type, *first), "b": data(op_type, *second)}
    named = {"a": [f"a{i}" for i, _ in enumerate(first)]}
    either = {**named, "b": [None] * len(second)}
    for shapes in ({}, named, either):
        source = one_node(op_type, 7, feeds, shapes=shapes)
        converts(source, 6, feeds, in_numpy=True)


def test_sizes_known_at_run_time_need_integer_arithmetic() -> None:
    feeds = {"a": data("Sub", 4, 1), "b": data("Sub", 1, 4)}
    source = one_node("Sub", 7, feeds, shapes={"a": ["m", "n"], "b": ["k", "l"]})
    converts(source, 6, feeds, in_numpy=True)
    (blocker,) = blockers(source, 5)
    assert blocker.reason == (
        "what takes its place needs Sub of tensor(int64), which came with opset 6"
    )
    assert blocker.advice == "choose opset 6 or later"


@pytest.mark.parametrize("names", [("a",), ("b",), ("a", "b")])
def test_an_unknown_rank_blocks(names: tuple[str, ...]) -> None:
    feeds = {"a": data("Sub", 2, 3), "b": data("Sub", 1)}
    source, _ = of_unknown_rank(one_node("Sub", 7, feeds), feeds, *names)
    (blocker,) = blockers(source, 6)
    assert "is not known, and before opset 7 broadcasting depends on it" in blocker.reason


def test_a_scalar_needs_no_rank() -> None:
    feeds = {"a": data("Sub", 2, 3), "b": data("Sub")}
    source, fed = of_unknown_rank(one_node("Sub", 7, feeds), feeds, "a")
    assert op_types(converts(source, 6, fed, in_numpy=True)) == ["Reshape", "Sub"]


def test_constants_are_repeated_at_conversion() -> None:
    feeds = {"a": data("Sub", 4), "b": data("Sub", 2, 3, 4)}
    source = one_node("Sub", 7, feeds, initializers=("a",))
    assert op_types(converts(source, 6, feeds, in_numpy=True)) == ["Sub"]


def test_symbolic_dimensions() -> None:
    feeds = {"a": data("Sub", 2, 3), "b": data("Sub", 2, 3)}
    same = one_node("Sub", 7, feeds, shapes={"a": ["N", "M"], "b": ["N", "M"]})
    assert op_types(converts(same, 6, feeds, in_numpy=True)) == ["Sub"]
    other = one_node("Sub", 7, feeds, shapes={"a": ["N", "M"], "b": ["N", "K"]})
    single = {"a": data("Sub", 2, 1), "b": data("Sub", 2, 3)}
    converts(other, 6, feeds, single, {"a": single["b"], "b": single["a"]}, in_numpy=True)


def test_a_value_with_itself_whatever_its_rank() -> None:
    feeds = {"x": data("Mul", 2, 3)}
    source, fed = of_unknown_rank(
        model("""<ir_version: 8, opset_import: ["" : 7]>
        g (float[2,3] x) => (float[a,b] y) { y = Mul(x, x) }"""),
        feeds,
        "x",
    )
    assert op_types(converts(source, 6, fed, in_numpy=True)) == ["Reshape", "Mul"]


@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("names", [("a",), ("b",), ("a", "b")])
def test_unknown_ranks_going_up(axis: int, names: tuple[str, ...]) -> None:
    shape = (3,) if axis % 3 == 1 else (2, 3)
    feeds = {"a": data("Sub", 2, 3, 4), "b": data("Sub", *shape)}
    source = one_node("Sub", 6, feeds, broadcast=1, axis=axis, output_shapes=(["k", "l", "m"],))
    unknown, fed = of_unknown_rank(source, feeds, *names)
    for opset in (7, 13):
        converts(unknown, opset, fed, in_numpy=opset == 7)
