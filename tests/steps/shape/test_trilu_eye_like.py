"""Trilu below 14, EyeLike below 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import blockers, converts, converts_or_counts, one_node


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool, np.uint8])
def test_trilu(upper: int, k: int | None, dtype: type) -> None:
    x = np.ones((2, 3, 4), dtype)
    if dtype == np.float32:
        x[:, 0, 3], x[:, 2, 0] = np.nan, np.inf
    inputs: dict[str, Any] = {"x": x}
    if k is not None:
        inputs["k"] = np.array(k)
    known = one_node("Trilu", 14, inputs, upper=upper, initializers=("k",))
    shapes = {"x": ["n", "r", "c"]}
    named = one_node("Trilu", 14, inputs, upper=upper, shapes=shapes)
    empty = {**inputs, "x": x[:, :0]}
    for target in (13, 11, 9):
        converts(known, target, inputs, exact=True)
        converts(named, target, inputs, empty, exact=True)
    for target in (8, 7) if dtype == np.float32 else ():
        converts(known, target, inputs, exact=True)


@pytest.mark.parametrize("upper", [0, 1])
def test_trilu_of_unknown_rank(upper: int) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    source = one_node("Trilu", 14, {"x": x, "k": np.array(1)}, upper=upper, hidden=("x",))
    for target in (13, 9, 7):
        feeds = [{"x": x, "k": np.array(k)} for k in (1, -1)]
        converts_or_counts(source, target, *feeds, exact=True)
        converts_or_counts(
            source, target, {"x": x[:, :0], "k": np.array(0)}, exact=True, in_numpy=True
        )


def test_eye_like() -> None:
    x = np.ones((2, 3), np.int32)
    for options in ({}, {"k": 1, "dtype": 1}, {"k": -1}):
        converts_or_counts(one_node("EyeLike", 9, {"x": x}, **options), 8, {"x": x})
        named = one_node(
            "EyeLike", 9, {"x": x}, shapes={"x": ["n", "m"]}, output_shapes=[["n", "m"]], **options
        )
        for target in (8, 7):
            converts_or_counts(named, target, {"x": x}, {"x": np.ones((4, 1), np.int32)})


@pytest.mark.parametrize(
    ("op_type", "opset", "inputs", "options"),
    [
        ("EyeLike", 9, {"x": np.ones((1100, 1000), np.int32)}, {"k": 3}),
        ("Trilu", 14, {"x": np.ones((1100, 1000), np.float32)}, {"upper": 0}),
    ],
)
def test_large_constants_are_not_written_into_the_model(
    op_type: str, opset: int, inputs: dict[str, Any], options: dict[str, Any]
) -> None:
    source = one_node(op_type, opset, inputs, **options)
    assert converts(source, opset - 1, inputs).ByteSize() < 20_000


def test_strings_have_no_zero() -> None:
    source = one_node("Trilu", 14, {"x": np.full((2, 2), "a", object)})
    (blocker,) = blockers(source, 13)
    assert blocker.reason == "its data are strings, for which there is no zero"
