"""RotaryEmbedding below opset 23."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node, op_types

pytestmark = pytest.mark.newest

RNG = np.random.default_rng(5)

PLAIN = ["Split", *["Unsqueeze"] * 2, *["Mul"] * 2, "Sub", *["Mul"] * 2, "Add", "Concat"]


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("opset", [22, 17, 13, 11, 9])
@pytest.mark.parametrize("rotated", [0, 4])
def test_halves_side_by_side(rotated: int, opset: int) -> None:
    half = (rotated or 8) // 2
    inputs = {"x": floats(2, 4, 3, 8), "cos": floats(2, 3, half), "sin": floats(2, 3, half)}
    options = {"rotary_embedding_dim": rotated, "num_heads": 4} if rotated else {}
    result = converts(one_node("RotaryEmbedding", 23, inputs, **options), opset, inputs)
    assert sorted(op_types(result)) == sorted(PLAIN)


@pytest.mark.parametrize("opset", [22, 13])
def test_of_positions(opset: int) -> None:
    inputs = {
        "x": floats(2, 4, 3, 8),
        "cos": floats(10, 4),
        "sin": floats(10, 4),
        "ids": RNG.integers(0, 10, (2, 3)),
    }
    result = converts(one_node("RotaryEmbedding", 23, inputs), opset, inputs)
    assert sorted(op_types(result)) == sorted([*PLAIN, "Gather", "Gather"])


@pytest.mark.parametrize("opset", [22, 13])
def test_other_forms_take_the_function_body(opset: int) -> None:
    inputs = {"x": floats(2, 4, 3, 8), "cos": floats(2, 3, 4), "sin": floats(2, 3, 4)}
    source = one_node("RotaryEmbedding", 23, inputs, interleaved=1)
    assert len(op_types(converts(source, opset, inputs))) > len(PLAIN)
    flat = {**inputs, "x": floats(2, 3, 32)}
    converts(one_node("RotaryEmbedding", 23, flat, num_heads=4), opset, flat)
    shapes = {"x": [2, 4, 3, None]}
    converts(one_node("RotaryEmbedding", 23, inputs, shapes=shapes), opset, inputs)
