"""BatchNormalization, InstanceNormalization and GroupNormalization across their boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from onnxreduce_cli import convert
from tests.support import assert_same, converts, converts_or_counts, one_node, op_types, run

RANDOM = np.random.default_rng(5)


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_instance(rank: int) -> None:
    x = normal(*range(2, rank + 2))
    feeds = {"x": x, "scale": normal(3), "b": normal(3)}
    source = one_node("InstanceNormalization", 21, feeds, epsilon=1e-3)
    for opset in (11, 7, 6):
        converts(source, opset, feeds)
    older = convert(source, 5)
    onnx.checker.check_model(older)
    newer = convert(older, 21)
    assert_same(run(source, feeds)["y0"], run(newer, feeds)["y0"])
    for node in older.graph.node:
        if node.op_type == "InstanceNormalization":
            node.attribute.append(helper.make_attribute("consumed_inputs", [0, 0, 0]))
    newer = convert(older, 6)
    assert "consumed_inputs" not in str(newer)
    assert_same(run(older, feeds)["y0"], run(newer, feeds)["y0"])


def group(opset: int, feeds: Any, **more: Any) -> ModelProto:
    """A GroupNormalization; the tools of onnx refuse to look at the older one."""
    found = one_node(
        "GroupNormalization", 21, feeds, output_shapes=[[None] * feeds["x"].ndim], **more
    )
    found.opset_import[0].version = opset
    return found


@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_down(rank: int, groups: int) -> None:
    x = normal(*(2, 4, 5, 3)[:rank])
    feeds = {"x": x, "scale": normal(4), "bias": normal(4)}
    source = group(21, feeds, num_groups=groups, epsilon=1e-2)
    for opset in (20, 17, 13, 9):
        result = converts(source, opset, feeds)
        assert "InstanceNormalization" in op_types(result)


def test_group_of_halves() -> None:
    x = normal(2, 4, 5, dtype=np.float16)
    feeds = {"x": x, "scale": normal(4, dtype=np.float16), "bias": normal(4, dtype=np.float16)}
    converts(group(21, feeds, num_groups=2), 20, feeds)
    converts(group(21, feeds, num_groups=2, stash_type=TensorProto.FLOAT), 20, feeds)


@pytest.mark.parametrize("constant", [True, False])
def test_group_up(constant: bool) -> None:
    feeds = {"x": normal(2, 6, 5), "scale": normal(3), "bias": normal(3)}
    constants = ("scale", "bias") if constant else ()
    source = group(18, feeds, initializers=constants, num_groups=3)
    result = convert(source, 21)
    onnx.checker.check_model(result, full_check=True)
    grouped = feeds["x"].reshape(2, 3, -1).astype(np.float64)
    grouped = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(
        grouped.var(2, keepdims=True) + 1e-5
    )
    expected = grouped * feeds["scale"][:, None] + feeds["bias"][:, None]
    assert_same(expected.reshape(2, 6, 5).astype(np.float32), run(result, feeds)["y0"])
    assert result.graph.node[-1].attribute[-1].i == TensorProto.FLOAT


@pytest.mark.newest
def test_group_up_of_unknown_channels() -> None:
    feeds = {"x": normal(2, 6, 5), "scale": normal(3), "bias": normal(3)}
    expected = run(convert(group(18, feeds, num_groups=3), 21), feeds)["y0"]
    for source in (
        group(18, feeds, shapes={"x": ["n", "c", "l"]}, num_groups=3),
        group(18, feeds, hidden=("x",), num_groups=3),
    ):
        assert_same(expected, run(convert(source, 21), feeds)["y0"])


@pytest.mark.newest
def test_group_down_of_unknown_rank() -> None:
    feeds = {"x": normal(2, 6, 5, 2), "scale": normal(6), "bias": normal(6)}
    for target in (20, 17, 10, 7):
        converts_or_counts(group(21, feeds, hidden=("x",), num_groups=3), target, feeds)
