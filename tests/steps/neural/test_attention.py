"""Attention across its boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from onnxreduce_cli import convert
from onnxreduce_cli.engine.conversion import Conversion
from tests.support import assert_same, blockers, converts, one_node, op_types, run

RANDOM = np.random.default_rng(4)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def attention(
    opset: int, mask: np.ndarray | None, *, past: int = 0, dynamic: bool = False
) -> tuple[ModelProto, dict[str, Any]]:
    feeds: dict[str, Any] = {
        "q": normal(2, 3, 4, 8),
        "k": normal(2, 3, 6, 8),
        "v": normal(2, 3, 6, 8),
        "mask": mask,
    }
    if past:
        feeds |= {"past_key": normal(2, 3, past, 8), "past_value": normal(2, 3, past, 8)}
    shapes = {"mask": [4, "l"]} if dynamic and mask is not None else None
    outputs = 3 if past else 1
    source = one_node("Attention", opset, feeds, outputs=outputs, shapes=shapes)
    return source, {name: array for name, array in feeds.items() if array is not None}


MASKS = {
    "none": None,
    "whole": normal(4, 6),
    "bool": RANDOM.random((4, 6)) > 0.4,
}


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("dynamic", [True, False])
def test_masks_of_full_length(kind: str, dynamic: bool) -> None:
    source, feeds = attention(23, MASKS[kind], dynamic=dynamic)
    newer = converts(source, 24, feeds)
    converts(newer, 23, feeds)
    if not dynamic:
        assert op_types(newer) == ["Attention"]


@pytest.mark.parametrize("past", [0, 2])
@pytest.mark.parametrize("dynamic", [True, False])
def test_a_column_is_broadcast_before_24(past: int, dynamic: bool) -> None:
    mask = normal(4, 1)
    source, feeds = attention(23, mask, past=past, dynamic=dynamic)
    whole, _ = attention(23, np.repeat(mask, 6 + past, 1), past=past)
    feeds_of_whole = {**feeds, "mask": np.repeat(mask, 6 + past, 1)}
    expected = run(whole, feeds_of_whole)["y0"]
    newer = convert(source, 24)
    assert "Expand" in op_types(newer)
    assert_same(expected, run(newer, feeds)["y0"])


@pytest.mark.parametrize("dtype", [np.float32, np.bool_])
@pytest.mark.parametrize("past", [0, 2])
@pytest.mark.parametrize("dynamic", [True, False])
def test_a_short_mask_is_padded(dtype: type, past: int, dynamic: bool) -> None:
    mask = normal(4, 4) if dtype is np.float32 else RANDOM.random((4, 4)) > 0.3
    mask[:, 0] = 1
    source, feeds = attention(24, mask, past=past, dynamic=dynamic)
    missing = np.full((4, 2 + past), -np.inf if dtype is np.float32 else False, dtype)
    padded = np.concatenate([mask, missing], 1)
    whole, _ = attention(23, padded, past=past)
    expected = run(whole, {**feeds, "mask": padded})["y0"]
    older = convert(source, 23)
    assert "Pad" in op_types(older)
    assert_same(expected, run(older, feeds)["y0"])


def expected_of(feeds: dict[str, Any], seen: np.ndarray) -> np.ndarray:
    """Attention by its definition, of what is seen: [batch or 1, 1, queries, keys]."""
    keys, values = (
        np.concatenate([feeds[name] for name in names if name in feeds], 2)
        for names in (("past_key", "k"), ("past_value", "v"))
    )
    bias = np.where(seen, 0.0, -np.inf)
    mask = feeds.get("mask")
    if mask is not None:
        mask = np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask
        missing = keys.shape[2] - mask.shape[-1]
        bias = bias + np.pad(
            mask, [(0, 0)] * (mask.ndim - 1) + [(0, missing)], constant_values=-np.inf
        )
    scores = feeds["q"] @ keys.swapaxes(2, 3) / np.sqrt(keys.shape[3]) + bias
    highest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(highest), highest, 0.0))
    total = weights.sum(-1, keepdims=True)
    # What sees nothing gives zeros.
    return np.asarray(weights / np.where(total == 0, 1, total) @ values, np.float32)


@pytest.mark.newest
@pytest.mark.parametrize(
    ("kind", "causal", "window", "dynamic"),
    [
        ("none", 0, None, False),
        ("none", 1, None, True),
        ("none", 1, (2, -1), False),
        ("short", 0, None, True),
        ("short", 1, (2, -1), False),
        ("short", 0, (0, 0), True),
        ("bool", 0, None, False),
        ("bool", 0, (-1, 1), True),
        ("bool", 1, (1, 1), False),
        ("each batch", 1, None, False),
        ("each batch", 0, (-1, 1), False),
        ("each batch", 1, (2, 0), True),
    ],
)
def test_nonpad_lengths(
    kind: str, causal: int, window: tuple[int, int] | None, dynamic: bool
) -> None:
    mask = {
        "none": None,
        "short": normal(4, 5),
        "bool": MASKS["bool"],
        "each batch": normal(2, 1, 4, 6),
    }[kind]
    lengths = np.array([5, 2])
    feeds = {
        "q": normal(2, 3, 4, 8),
        "k": normal(2, 3, 6, 8),
        "v": normal(2, 3, 6, 8),
        "mask": mask,
        "past_key": None,
        "past_value": None,
        "lengths": lengths,
    }
    sizes = {}
    position = lengths[:, None, None, None] - 4 + np.arange(4)[:, None]
    key = np.arange(6)
    seen = key < lengths[:, None, None, None]
    if causal:
        seen = seen & (key <= position)
    if window is not None:
        sizes = dict(zip(("left_window_size", "right_window_size"), window, strict=True))
        left, right = window
        seen = seen & ((position - key <= left) | (left < 0))
        seen = seen & ((key - position <= right) | (right < 0))
    opset = 24 if window is None else 25
    shapes = {"q": ["b", "h", "s", 8], "k": ["b", "h", "t", 8]} if dynamic else None
    source = one_node("Attention", opset, feeds, shapes=shapes, is_causal=causal, **sizes)
    given = {name: array for name, array in feeds.items() if array is not None}
    wanted = expected_of(given, seen)
    for target in (24, 23, 20)[25 - opset :]:
        result = convert(source, target, check=False)
        assert ("Attention" in op_types(result)) == (target >= 23)
        assert_same(wanted, run(result, given)["y0"])


@pytest.mark.newest
@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("kind", MASKS)
def test_windows_in_mask(past: int, kind: str) -> None:
    mask = MASKS[kind]
    if mask is not None and past:
        mask = np.concatenate([mask[:, :past], mask], 1)
    _, feeds = attention(25, mask, past=past)
    given = {**dict.fromkeys(("q", "k", "v", "mask")), **feeds}
    source = one_node("Attention", 25, given, outputs=3 if past else 1, left_window_size=2)
    position, key = past + np.arange(4)[:, None], np.arange(6 + past)
    wanted = expected_of(feeds, position - key <= 2)
    for target in (24, 23, 18):
        assert_same(wanted, run(convert(source, target, check=False), feeds)["y0"])


@pytest.mark.newest
def test_an_open_window_is_dropped() -> None:
    _, feeds = attention(25, None)
    open_sides = {"left_window_size": -1, "right_window_size": -1}
    source = one_node("Attention", 25, feeds, **open_sides)
    (node,) = convert(source, 24, check=False).graph.node
    assert not node.attribute
    assert len(node.input) == 3


def test_a_mask_of_unknown_dtype_blocks() -> None:
    source, _ = attention(24, MASKS["whole"], dynamic=True)
    source.graph.node[0].input[3] = "odd"
    source.graph.node.insert(0, helper.make_node("Odd", ["mask"], ["odd"], domain="own"))
    source.opset_import.add(domain="own", version=1)
    (blocker,) = blockers(source, 23)
    assert "the type of 'odd', which it gives as a node of domain 'own', is not" in blocker.reason


def test_a_past_key_of_a_rank_that_it_does_not_take() -> None:
    source, _ = attention(24, normal(4, 4))
    source.graph.node[0].input.append("lengths")
    lengths = helper.make_tensor_value_info("lengths", TensorProto.INT64, [2])
    source.graph.input.append(lengths)
    (found,) = Conversion(source, 23).blockers
    assert "input 4 has rank 1" in found.reason
