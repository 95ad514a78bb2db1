"""Attention across its boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli import convert
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


def test_nonpad_lengths() -> None:
    source, _ = attention(24, MASKS["whole"])
    source.graph.node[0].input.extend(["", "", "lengths"])
    source.graph.input.add(name="lengths").type.tensor_type.elem_type = 7
    source.graph.input[-1].type.tensor_type.shape.dim.add(dim_value=2)
    (blocker,) = blockers(source, 23)
    assert "nonpad_kv_seqlen" in blocker.reason
