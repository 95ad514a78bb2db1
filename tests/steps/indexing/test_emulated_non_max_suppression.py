"""NonMaxSuppression below opset 10."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import converts, model, one_node, op_types

NAMED = {"boxes": ["b", "n", 4], "scores": ["b", "c", "n"]}


def drawn(batch: int, classes: int, count: int, seed: int = 1) -> dict[str, Any]:
    """Boxes that overlap, with scores of which some are the same."""
    random = np.random.default_rng(seed)
    return {
        "boxes": random.integers(0, 6, (batch, count, 4)).astype(np.float32),
        "scores": (random.integers(-2, 9, (batch, classes, count)) / 8).astype(np.float32),
        "count": np.array([3]),
        "iou": np.array([0.3], np.float32),
        "score": np.array([0.1], np.float32),
    }


def node(inputs: dict[str, Any], opset: int = 10, **more: Any) -> Any:
    return one_node("NonMaxSuppression", opset, inputs, output_shapes=[[None, 3]], **more)


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("shapes", [{}, NAMED])
def test_non_max_suppression(center: int, shapes: Any) -> None:
    inputs = drawn(2, 3, 12)
    more = [
        {**inputs, "count": np.array([0])},
        {**inputs, "count": np.array([2**62]), "iou": np.array([1.0], np.float32)},
        {**inputs, "score": np.array([9.0], np.float32)},
        {**inputs, "iou": np.array([0.0], np.float32), "scores": drawn(2, 3, 12, 7)["scores"]},
    ]
    if shapes:
        more += [drawn(1, 1, 1), drawn(1, 2, 30)]
    source = node(inputs, 11, center_point_box=center, shapes=shapes)
    for target in (9, 8, 7):
        converts(source, target, inputs, *more)
    if shapes:
        for sizes in ((2, 3, 0), (0, 3, 2), (2, 0, 2)):
            nothing = {**drawn(*sizes), "count": np.array([3])}
            converts(source, 9, nothing)
            converts(node(nothing, 11), 9, nothing, in_numpy=True)


@pytest.mark.parametrize("absent", [("score",), ("iou",), ("iou", "score"), ("count",)])
def test_non_max_suppression_of_few_inputs(absent: tuple[str, ...]) -> None:
    inputs = drawn(2, 2, 9)
    inputs["scores"][0, 0, :3] = -np.inf
    for center in (0, 1):
        given = {name: None if name in absent else array for name, array in inputs.items()}
        feeds = {name: array for name, array in given.items() if array is not None}
        source = node(given, center_point_box=center)
        result = converts(source, 9, feeds)
        assert ("Loop" in op_types(result)) == ("count" not in absent)


def test_non_max_suppression_with_constants() -> None:
    inputs = drawn(1, 2, 20)
    inputs["boxes"][0, 0], inputs["boxes"][0, 1] = np.nan, np.inf
    for name in ("count", "iou", "score"):
        inputs[name] = inputs[name].reshape(())
    source = node(inputs, initializers=("count", "iou", "score"))
    for target in (9, 7):
        converts(source, target, inputs)


def test_non_max_suppression_of_unknown_rank() -> None:
    source = model(
        '<ir_version: 5, opset_import: ["" : 10]> g (float[n] b, int64[r] bs, float[m] s, '
        "int64[t] ss, int64 count, float iou) => (int64[k, 3] y) { boxes = Reshape (b, bs) "
        "scores = Reshape (s, ss) y = NonMaxSuppression (boxes, scores, count, iou) }"
    )
    given = drawn(2, 3, 12)
    feeds = {"b": given["boxes"].reshape(-1), "s": given["scores"].reshape(-1)}
    feeds |= {"bs": np.array([2, 12, 4]), "ss": np.array([2, 3, 12])}
    feeds |= {"count": np.array(3), "iou": np.array(0.3, np.float32)}
    for target in (9, 7):
        converts(source, target, feeds)
