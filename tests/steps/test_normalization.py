"""BatchNormalization, InstanceNormalization and GroupNormalization across their boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from onnxreduce_cli import convert
from tests.support import assert_same, blockers, converts, one_node, op_types, run

RANDOM = np.random.default_rng(5)


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def batch(
    opset: int, x: np.ndarray, *, dtypes: tuple[type, type] = (np.float32, np.float32), **more: Any
) -> tuple[ModelProto, Any]:
    """A BatchNormalization for inference: scale and bias, mean and variance in these dtypes."""
    shape = (1,) if x.ndim == 1 else x.shape[1:2] if more.get("spatial", 1) else x.shape[1:]
    feeds = {
        "x": x,
        "scale": normal(*shape, dtype=dtypes[0]),
        "b": normal(*shape, dtype=dtypes[0]),
        "mean": normal(*shape, dtype=dtypes[1]),
        "var": np.abs(normal(*shape, dtype=dtypes[1])),
    }
    shapes = more.pop("shapes", None)
    found = one_node(
        "BatchNormalization", opset, feeds, shapes=shapes, output_shapes=[[None] * x.ndim], **more
    )
    return found, feeds


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_batch_in_every_rank(rank: int) -> None:
    x = normal(*range(2, rank + 2))
    x.flat[0], x.flat[1] = np.inf, np.nan
    source, feeds = batch(17, x, training_mode=0, epsilon=1e-3)
    for opset in (14, 13, 9, 8, 7):
        result = converts(source, opset, feeds)
        if rank > 1:
            assert op_types(result) == ["BatchNormalization"]
    before = convert(source, 6)
    older = next(node for node in before.graph.node if node.op_type == "BatchNormalization")
    assert any(a.name == "is_test" and a.i == 1 for a in older.attribute)
    # ONNX Runtime has no kernel below 7: what goes down to 5 must come up again the same.
    for opset in (6, 5):
        older_model = convert(source, opset)
        onnx.checker.check_model(older_model)
        newer = convert(older_model, 17)
        assert_same(run(source, feeds)["y0"], run(newer, feeds)["y0"])
    assert "consumed_inputs" in str(convert(source, 5))
    assert "consumed_inputs" not in str(convert(convert(source, 5), 6))


def test_unknown_rank() -> None:
    shapes = {"x": None}
    source, _ = batch(9, normal(2, 3, 4), shapes=shapes)
    assert op_types(convert(source, 7)) == ["BatchNormalization"]
    (blocker,) = blockers(source, 5)
    assert "rank" in blocker.reason
    source, _ = batch(9, normal(4), shapes=shapes)
    (blocker,) = blockers(source, 7)
    assert "rank" in blocker.reason


def test_spatial() -> None:
    x = normal(2, 3, 4, 5)
    source, feeds = batch(7, x, spatial=1)
    converts(source, 21, feeds)
    source, feeds = batch(7, x, spatial=0)
    result = converts(source, 9, feeds)
    assert "Flatten" in op_types(result)
    converts(source, 21, feeds)
    (blocker,) = blockers(source, 6)
    assert "spatial=0" in blocker.reason
    source, _ = batch(6, x, spatial=0, is_test=1)
    (blocker,) = blockers(source, 7)
    assert "spatial=0" in blocker.reason


def test_training() -> None:
    x = normal(2, 3, 4, 5)
    source, _ = batch(15, x, outputs=3, training_mode=1)
    (blocker,) = blockers(source, 13)
    assert "training_mode=1" in blocker.reason
    source, _ = batch(9, x, outputs=5)
    (blocker,) = blockers(source, 14)
    assert "training" in blocker.reason
    source, _ = batch(6, x, is_test=0)
    (blocker,) = blockers(source, 7)
    assert "is_test=0" in blocker.reason


@pytest.mark.parametrize(
    ("x", "dtypes"),
    [
        (np.float16, (np.float32, np.float32)),
        (np.float16, (np.float16, np.float32)),
        (np.float32, (np.float32, np.float16)),
    ],
)
def test_dtypes(x: type, dtypes: tuple[type, type]) -> None:
    """ONNX Runtime has no kernel for dtypes apart: the truth is the same in float."""
    source, feeds = batch(15, normal(2, 3, 4, dtype=x), dtypes=dtypes)
    for opset in (14, 13):
        result = convert(source, opset)
        onnx.checker.check_model(result, full_check=True)
        if opset == 13 or dtypes == (np.float32, np.float32):
            truth, _ = batch(15, feeds["x"].astype(np.float32))
            wide = {name: array.astype(np.float32) for name, array in feeds.items()}
            expected = run(truth, wide)["y0"].astype(x)
            assert_same(expected, run(result, feeds)["y0"])


def test_dtypes_that_float_does_not_hold() -> None:
    source, _ = batch(15, normal(2, 3), dtypes=(np.float64, np.float64))
    (blocker,) = blockers(source, 14)
    assert "double, float" in blocker.reason


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
    assert "consumed_inputs" not in str(convert(older, 6))


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


def test_group_up_needs_the_channels() -> None:
    feeds = {"x": normal(2, 6, 5), "scale": normal(3), "bias": normal(3)}
    source = group(18, feeds, shapes={"x": ["n", "c", "l"]}, num_groups=3)
    (blocker,) = blockers(source, 21)
    assert "channels" in blocker.reason
