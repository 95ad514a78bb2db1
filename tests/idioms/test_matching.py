"""Numbers that constants of a model must be, to stand for those of an idiom."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

from onnxreduce_cli.idioms import matching
from onnxreduce_cli.idioms.tracing import Pattern


@pytest.mark.parametrize(
    ("constant", "expected", "same"),
    [
        (np.array(2), 2.0, True),
        (np.array(3), 2.0, False),
        (np.array([1]), 2.0, False),
        (np.float32(np.sqrt(2)), float(np.sqrt(2)), True),
        (np.float32(1.4143), float(np.sqrt(2)), False),
        (np.float16(0.7978), 0.7978845608, True),
        (np.float64(np.float32(0.7978845608) + 1e-4), 0.7978845608, False),
        (np.float64(1 + 2**-51), 1.0, True),
        (np.float64(1 + 3 * 2**-52), 1.0, False),
        (np.float64(-1 + 3 * 2**-52), -1.0, False),
        (np.float32(-1.7), -1.7, True),
        (np.float32(-2), 2.0, False),
        (np.float32(0), 0.0, True),
        (np.float32(1e-9), 0.0, False),
        (ml_dtypes.bfloat16(1 + 2**-6), 1.0, True),
        (ml_dtypes.bfloat16(1 + 3 * 2**-7), 1.0, False),
        (np.uint8(2), 2.0, True),
    ],
)
def test_a_constant_is_a_number_as_its_dtype_can_hold_it(
    constant: Any, expected: float, same: bool
) -> None:
    assert matching._is(np.asarray(constant), expected) is same


@pytest.mark.parametrize(("first", "second"), [("1", "2"), ("2", "1")])
def test_constants_of_one_attribute_must_agree(first: str, second: str) -> None:
    pattern = Pattern(("x",), {}, {"number alpha": "alpha"}, {}, "y")
    names = frozenset({("number alpha", first), ("number alpha", second)})
    around = cast(matching.SearchedScope, _Around(13))
    with pytest.raises(matching.NoMatchError, match="two constants stand for alpha"):
        matching._numbers(matching.PatternMatch(pattern, constants=names), around, 0)
    names = frozenset({("number alpha", first)})
    found = matching._numbers(matching.PatternMatch(pattern, constants=names), around, 0)
    assert found == {"alpha": float(first)}


class _Around:
    """A scope of an opset, with constants."""

    def __init__(self, opset: int) -> None:
        self.opset = opset

    def constant(self, name: str) -> Any:
        known = {"two": np.array([[1, 2]]), "none": np.zeros(0, np.int64)}
        return np.array(float(name)) if name.isdigit() else known.get(name)


@pytest.mark.parametrize(
    ("op_type", "inputs", "own", "opset", "rank", "expected"),
    [
        ("GlobalAveragePool", "x", {}, 13, 4, (2, 3)),
        ("GlobalAveragePool", "x", {}, 13, 2, ()),
        ("GlobalAveragePool", "x", {}, 13, None, "rank of what GlobalAveragePool reads"),
        ("Softmax", "x", {"axis": 1}, 13, None, (1,)),
        ("Softmax", "x", {"axis": 1}, 18, None, (1,)),
        ("Softmax", "x", {"axis": 1}, 12, 3, (1, 2)),
        ("Softmax", "x", {"axis": -2}, 12, 3, (1, 2)),
        ("Softmax", "x", {"axis": -1}, 12, None, (-1,)),
        ("Softmax", "x", {"axis": 1}, 12, None, "rank of what Softmax reads"),
        ("Softmax", "x", {"axis": 0}, 11, 1, (0,)),
        ("Softmax", "x", {"axis": 0}, 11, 0, ()),
        ("ReduceSum", "x", {"axes": [0, -1]}, 12, None, (0, -1)),
        ("ReduceSum", "x two", {}, 13, None, (1, 2)),
        ("ReduceSum", "x none", {}, 13, None, ()),
        ("ReduceSum", "x none", {"noop_with_empty_axes": 1}, 13, None, "reduces nothing"),
        ("ReduceSum", "x two", {"noop_with_empty_axes": 1}, 13, None, (1, 2)),
        ("ReduceSum", "x other", {}, 13, None, "only known at run time"),
        ("ReduceSum", "x", {}, 13, None, ()),
    ],
)
def test_axes(
    op_type: str, inputs: str, own: dict[str, Any], opset: int, rank: int | None, expected: Any
) -> None:
    node = helper.make_node(op_type, inputs.split(), ["y"])
    around = cast(matching.SearchedScope, _Around(opset))
    if isinstance(expected, str):
        with pytest.raises(matching.NoMatchError, match=expected):
            matching._axes(node, own, around, rank)
    else:
        assert matching._axes(node, own, around, rank) == expected
    if inputs == "x" and op_type == "ReduceSum":
        node.input.append("")
        assert matching._axes(node, own, around, rank) == expected
