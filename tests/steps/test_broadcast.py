"""Binary operators across opset 7, where they began to broadcast as NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import blockers, converts, model, one_node

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
    converts(one_node("Add", 7, feeds), 6, feeds, in_numpy=True)
    (blocker,) = blockers(one_node("Sub", 7, feeds), 6)
    assert "shapes [4] and [2, 3, 4]" in blocker.reason


@pytest.mark.parametrize(
    ("first", "second"), [((2, 1, 4), (1, 3, 4)), ((2, 3, 4), (2, 1, 4)), ((1,), (3,))]
)
def test_what_the_older_version_cannot_blocks(first: Any, second: Any) -> None:
    feeds = {"a": data("Sub", *first), "b": data("Sub", *second)}
    (blocker,) = blockers(one_node("Sub", 7, feeds), 6)
    assert "before opset 7 are not known to broadcast" in blocker.reason


def test_symbolic_dimensions() -> None:
    feeds = {"a": data("Sub", 2, 3), "b": data("Sub", 2, 3)}
    same = one_node("Sub", 7, feeds, shapes={"a": ["N", "M"], "b": ["N", "M"]})
    converts(same, 6, feeds, in_numpy=True)
    other = one_node("Sub", 7, feeds, shapes={"a": ["N", "M"], "b": ["N", "K"]})
    assert blockers(other, 6)


def test_a_value_with_itself_whatever_its_rank() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 7]>
        g (float[2,3] x, int64[k] s) => (float[a,b] y) { r = Reshape(x, s) y = Mul(r, r) }""")
    converts(source, 6, {"x": data("Mul", 2, 3), "s": np.array([3, 2])}, in_numpy=True)


def test_an_unknown_rank_blocks() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 7]>
        g (float[2,3] x, int64[k] s) => (float[a,b] y) { r = Reshape(x, s) y = Mul(r, x) }""")
    (blocker,) = blockers(source, 6)
    assert "the rank of 'r' is not known" in blocker.reason
