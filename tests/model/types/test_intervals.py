"""Intervals of integer values: they hold whatever the executor computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onnxreduce_cli.executor.run import run
from onnxreduce_cli.model.types.intervals import INT32, INT64, Interval, Intervals
from tests.model.types.known import facts_of

HEAD = '<ir_version: 10, opset_import: ["" : 18]>'

#: Nodes from `a` and `b`, int64 of [2, 3], to `y` of int64, at any range of these.
NODES = (
    "y = Add (a, b)",
    "y = Sub (a, b)",
    "y = Mul (a, b)",
    "y = Mul (a, a)",
    "k = Constant <value_int = 2> () y = Pow (a, k)",
    "k = Constant <value_int = 3> () y = Pow (a, k)",
    "y = Div (a, b)",
    "y = Mod (a, b)",
    "y = Mod <fmod = 1> (a, b)",
    "y = Neg (a)",
    "y = Abs (a)",
    "y = Sign (a)",
    "y = Max (a, b)",
    "y = Min (a, b)",
    "k = Constant <value_int = -3> () m = Constant <value_int = 5> () y = Clip (a, k, m)",
    "m = Constant <value_int = -7> () y = Clip (a, , m)",
    "c = Less (a, b) y = Where (c, a, b)",
    "c = Less (a, b) y = Cast <to = 7> (c)",
    "i = Cast <to = 3> (a) y = Cast <to = 7> (i)",
    "i = Cast <to = 6> (a) y = Cast <to = 7> (i)",
    "y = Concat <axis = 0> (a, b)",
    "y = CumSum <exclusive = 1> (a, k1)",
    "y = CumSum (a, k0)",
    "y = Pad (a, pads)",
    "y = Pad (a, pads, k1)",
    'y = Pad <mode = "edge"> (a, pads)',
    "y = ReduceSum <keepdims = 0> (a)",
    "y = ReduceSum (a, axes)",
    "y = ReduceSum <noop_with_empty_axes = 1> (a)",
    "y = Trilu (a)",
    "y = Unique (a)",
    "u, y = Unique (a)",
    "u, v, w, y = Unique <axis = 1> (a)",
    "y = ReduceProd (a)",
    "y = ReduceProd <keepdims = 0> (a, axes)",
    "y = ReduceMax (a, axes)",
    "y = ReduceMin (a)",
    "y = ArgMax (a)",
    "y = ArgMin <axis = -1> (a)",
    "y = NonZero (a)",
    "t, y = TopK (a, axes)",
    "y, t = TopK (a, axes)",
    "y = Shape (a)",
    "y = Shape <start = 1> (a)",
    "y = Size (a)",
    "y = Gather (a, k1)",
    "y = Transpose (a)",
    "y = Tile (a, twice)",
    "y = Slice (a, k0s, axes)",
    "p, y = Split <num_outputs = 2> (a)",
    "y = ScatterND (a, place, row)",
    "y = ConstantOfShape <value = int64[1] {-4}> (twice)",
    "y = OneHot (a, k1, offon)",
    "s = Add (a, b) t = Mul (s, b) u = Sub (t, a) y = ReduceSum (u)",
    "i = ReduceMin <keepdims = 0> (a) j = ReduceMax <keepdims = 0> (b) y = Range (i, j, k1)",
)

CONSTANTS = """int64 k0 = {0}, int64 k1 = {1}, int64[1] axes = {1}, int64[2] twice = {2, 2},
    int64[1] k0s = {0}, int64[4] pads = {1, 0, 0, 1}, int64[1, 1] place = {1},
    int64[1, 3] row = {9, -9, 4}, int64[2] offon = {-2, 6}"""

#: Numbers about the ends of dtypes, small ones, and any.
NUMBERS = st.one_of(
    st.integers(-9, 9),
    st.sampled_from([end + by for end in (*INT32, *INT64, 127, 255) for by in (-1, 0, 1)]),
    st.integers(*INT64),
).map(lambda number: min(max(number, INT64.low), INT64.high))


def model(nodes: str) -> onnx.ModelProto:
    text = f"{HEAD} g (int64[2, 3] a, int64[2, 3] b) => (int64 y) <{CONSTANTS}> {{ {nodes} }}"
    found = onnx.parser.parse_model(text)
    found.graph.output[0].type.tensor_type.ClearField("shape")
    return found


def interval_of(nodes: str, **assumed: tuple[int, int]) -> Interval | None:
    facts, found = facts_of(model(nodes))
    known = {(id(found[0]), name): Interval(*ends) for name, ends in assumed.items()}
    return Intervals(facts, known).of(found[0], "y")


@st.composite
def ranged(draw: Any) -> tuple[Interval, Any]:
    """An interval, and an array in it that holds its ends."""
    low, high = sorted((draw(NUMBERS), draw(NUMBERS)))
    inner = draw(st.lists(st.integers(low, high), min_size=4, max_size=4))
    order = draw(st.permutations([low, high, *inner]))
    return Interval(low, high), np.array(order, np.int64).reshape(2, 3)


@pytest.mark.parametrize("nodes", NODES)
@settings(max_examples=40, deadline=None)
@given(a=ranged(), b=ranged())
def test_the_executor_stays_within(
    nodes: str, a: tuple[Interval, Any], b: tuple[Interval, Any]
) -> None:
    found = interval_of(nodes, a=a[0], b=b[0])
    assume(found is not None)
    assert found is not None
    if "Range" in nodes:
        assume(b[0].high - a[0].low < 1000)
    result = run(model(nodes), {"a": a[1], "b": b[1]})["y"]
    assert isinstance(result, np.ndarray)
    for item in result.ravel().tolist():
        assert found.low <= item <= found.high


@pytest.mark.parametrize("nodes", NODES)
def test_each_is_known_of_small_inputs(nodes: str) -> None:
    assert interval_of(nodes, a=(-5, 5), b=(2, 4)) is not None


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("y = Add (a, b)", (-3, 9)),
        ("y = Sub (a, b)", (-9, 3)),
        ("y = Mul (a, b)", (-20, 20)),
        ("y = Div (a, b)", (-2, 2)),
        ("y = Neg (a)", (-5, 5)),
        ("y = ReduceSum (a, axes)", (-15, 15)),
        ("y = ReduceProd (a, axes)", (-125, 125)),
        ("y = ReduceProd (b, axes)", (0, 64)),
        ("y = ArgMax (a)", (0, 1)),
        ("y = Shape (a)", (2, 3)),
        ("y = Size (a)", (6, 6)),
    ],
)
def test_ends_are_exact(nodes: str, expected: tuple[int, int]) -> None:
    assert interval_of(nodes, a=(-5, 5), b=(2, 4)) == expected


@pytest.mark.parametrize(
    ("nodes", "a", "b"),
    [
        ("y = Add (a, b)", (0, INT64.high), (0, 1)),
        ("y = Mul (a, b)", (0, 2**40), (0, 2**40)),
        ("y = Neg (a)", (INT64.low, 0), (0, 0)),
        ("y = Div (a, b)", (INT64.low, 0), (-1, -1)),
        ("y = Div (a, b)", (0, 5), (0, 2)),
        ("y = Mod (a, b)", (0, 5), (-1, 2)),
        ("y = ReduceSum (a)", (0, 2**62), (0, 0)),
    ],
)
def test_nothing_is_claimed_of_what_may_wrap_or_fail(
    nodes: str, a: tuple[int, int], b: tuple[int, int]
) -> None:
    assert interval_of(nodes, a=a, b=b) is None


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("y = Shape (x)", (2, 7)),
        ("y = Size (x)", (4, 14)),
        ("y = ArgMax (x)", (0, 6)),
        ("y = NonZero (x)", (0, 6)),
        ("b = Cast <to = 7> (c) y = ReduceSum (b)", (0, 14)),
        ("b = Cast <to = 7> (c) y = ReduceMax (b)", (0, 1)),
    ],
)
def test_sizes_may_be_known_by_their_dimension(nodes: str, expected: tuple[int, int]) -> None:
    text = f"{HEAD} g (float[N, 2] x, bool[N, 2] c) => (int64 y) {{ {nodes} }}"
    facts, found = facts_of(onnx.parser.parse_model(text))
    assert Intervals(facts).of(found[0], "y") is None
    assert Intervals(facts, None, {"N": Interval(2, 7)}).of(found[0], "y") == expected
    if "ReduceMax" in nodes:
        assert Intervals(facts, None, {"N": Interval(0, 7)}).of(found[0], "y") is None


def test_an_input_has_none_unless_it_is_stated() -> None:
    assert interval_of("y = Identity (a)") is None
    assert interval_of("y = Gather (row, a)") == (-9, 9)


def test_a_chain_of_any_length_is_followed() -> None:
    length = 5000
    chain = " ".join(f"x{n + 1} = Add (x{n}, k1)" for n in range(length))
    nodes = f"x0 = Identity (a) {chain} y = Identity (x{length})"
    assert interval_of(nodes, a=(0, 1)) == (length, length + 1)
