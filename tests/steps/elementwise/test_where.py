"""Where below opset 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onnxreduce_cli
from tests.support import blockers, converts, converts_or_counts, model, one_node, op_types, run

WHERE_SHAPES = [
    ((2, 3), (2, 3), (2, 3)),
    ((3,), (2, 1), ()),
    ((2, 0), (2, 0), ()),
    ((), (3,), (2, 1)),
]


@pytest.mark.parametrize("shapes", WHERE_SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.uint8, bool])
def test_where(shapes: tuple[tuple[int, ...], ...], dtype: type) -> None:
    rng = np.random.default_rng(1)
    values = np.array([1, 0, -1, 5, 100] if dtype is not np.uint8 else [1, 2, 255]).astype(dtype)
    if dtype in (np.float32, np.float64):
        values = np.array([1, -0.0, np.nan, np.inf, -np.inf], dtype)
    c, x, y = (
        rng.choice(source, shape)
        for source, shape in zip(([True, False], values, values), shapes, strict=True)
    )
    inputs = {"c": np.asarray(c), "x": np.asarray(x, dtype), "y": np.asarray(y, dtype)}
    source = one_node("Where", 9, inputs)
    flipped = {**inputs, "c": np.array(~inputs["c"])}
    for target in (8, 7):
        converts(source, target, inputs, flipped, exact=True)


@pytest.mark.parametrize("target", [7, 8])
def test_where_of_shapes_known_at_run_time(target: int) -> None:
    inputs = {
        "c": np.arange(6).reshape(2, 3, 1) % 4 > 1,
        "x": np.array([[[1, np.nan]], [[-np.inf, -0.0]]], np.float32),
        "y": np.array([[np.nan, 5], [np.inf, 6], [7, -0.0]], np.float32),
    }
    shapes = {"c": ["a", "b", 1], "x": ["a", 1, "n"], "y": ["b", "n"]}
    source = one_node("Where", 9, inputs, shapes=shapes)
    flipped = {**inputs, "c": ~inputs["c"]}
    nothing = {"c": inputs["c"][:, :0], "x": inputs["x"], "y": inputs["y"][:0]}
    converts_or_counts(source, target, inputs, flipped, nothing, exact=True)


def test_where_of_unknown_rank() -> None:
    x = np.array([[1, np.nan, -0.0], [np.inf, 2, 3]], np.float32)
    for y in (x[:1, ::-1].copy(), np.array(7, np.float32)):
        inputs = {"c": x > 1, "x": x, "y": y}
        for hidden in (("x",), ("y",), ("x", "y")):
            source = one_node("Where", 9, inputs, hidden=hidden, output_shapes=[[None, None]])
            for target in (8, 7):
                converts_or_counts(source, target, inputs, exact=True)
    empty = {"c": np.array(True), "x": x[:0], "y": x[:1]}
    source = one_node("Where", 9, empty, hidden=("x", "y"), output_shapes=[[None, None]])
    converts_or_counts(source, 8, empty, exact=True, in_numpy=True)


#: By dtype, pairs of constants: their difference is exact, rounded, or too large.
PAIRS = [(0.0, -1e4), (-1.5, 4.0), (1.0, 3e-5), (0.1, 1e4), (6e4, -6e4), (0.0, 0.0)]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(WHERE_SHAPES),
    st.sampled_from((np.float16, np.float32, np.float64)),
    st.lists(st.sampled_from(PAIRS), min_size=1, max_size=6),
)
def test_constants_blended(
    shapes: tuple[tuple[int, ...], ...], dtype: type, pairs: list[tuple[float, float]]
) -> None:
    inputs = {"c": np.array(np.arange(np.prod(shapes[0])).reshape(shapes[0]) % 2 == 0)}
    for index, name in ((0, "x"), (1, "y")):
        shape = shapes[index + 1]
        inputs[name] = np.resize(np.array([pair[index] for pair in pairs], dtype), shape)
    source = one_node("Where", 17, inputs, initializers=("x", "y"))
    allowed = ["Add", "Cast", "Mul", "Not"]
    feeds = [{"c": inputs["c"]}, {"c": np.array(~inputs["c"])}]
    result = converts(source, 17, *feeds, exact=True, allow_ops=allowed)
    assert {*op_types(result)} <= {*allowed}
    # Its site's check, which draws what no constant is, finds no difference.
    onnxreduce_cli.convert(source, 17, allow_ops=allowed)


@pytest.mark.parametrize("target", [7, 8, 17])
@pytest.mark.parametrize(
    "pair", [(np.nan, np.inf), (0.0, -np.inf), (-0.0, 5.0), (7, 200), ("a", "é")]
)
def test_one_of_two_numbers(target: int, pair: tuple[Any, Any]) -> None:
    dtype = object if isinstance(pair[0], str) else np.float32
    x, y = (np.array(item, dtype if isinstance(item, (float, str)) else np.uint8) for item in pair)
    c = np.array([[True, False], [False, False]])
    source = one_node("Where", 17, {"c": c, "x": x, "y": y}, initializers=("x", "y"))
    options = {"allow_ops": ["Cast", "Gather"]} if target == 17 else {}
    result = converts(source, target, {"c": c}, exact=True, **options)
    assert op_types(result) == ["Cast", "Gather"]
    (written,) = run(result, {"c": c}).values()
    if dtype is np.float32 and x.dtype == np.float32:
        assert np.array_equal(np.signbit(written), np.signbit(np.where(c, x, y)))


@pytest.mark.parametrize(
    ("x", "y", "constants", "reason"),
    [
        (1.0, 2.0, ("y",), "'x' may hold NaN or an infinity"),
        (1.0, -np.inf, ("x", "y"), "'y' holds NaN or an infinity"),
        (np.nan, 1.0, ("x", "y"), "'x' holds NaN or an infinity"),
        (1.0, -0.0, ("x", "y"), "'y' holds -0"),
    ],
)
def test_what_mul_would_change(x: float, y: float, constants: tuple[str, ...], reason: str) -> None:
    inputs = {"c": np.array([True]), "x": np.float32([x]), "y": np.float32([y])}
    source = one_node("Where", 17, inputs, initializers=constants)
    (found,) = blockers(source, 17, allow_ops=["Add", "Cast", "Mul", "Not"])
    assert f"written as Mul and Add, it fails: {reason}" in found.reason


def test_what_mul_would_change_is_said_rather_than_what_an_older_opset_lacks() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N, 2] x) => (float[N, 2] y) <bool[2] c = {1, 0}, float z = {-9}> {
            y = Where (c, x, z)
        }""")
    (found,) = blockers(source, 17, allow_ops=["Add", "Cast", "Mul", "Not"])
    assert "written as Mul and Add, it fails: 'x' may hold NaN or an infinity" in found.reason
