"""The Reduce family across the boundaries of its dtypes: 12, 13, 20 and 28."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import onnxreduce_cli
from onnxreduce_cli.schemas import REDUCE, newest_opset
from tests.support import blockers, converts, one_node, op_types


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (3, 0), (), (4,), (1, 2)])
@pytest.mark.parametrize("target", [11, 10, 6, 1])
def test_small_integers(op_type: str, dtype: Any, shape: tuple[int, ...], target: int) -> None:
    info = np.iinfo(dtype)
    size = int(np.prod(shape))
    x = np.linspace(info.min, info.max, size).astype(dtype).reshape(shape)
    source = one_node(op_type, 12, {"x": x}, keepdims=0)
    result = converts(source, target, {"x": x}, exact=True, in_numpy=0 in shape)
    clipped = "Clip" in op_types(result)
    assert clipped == (0 in shape)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize(
    "x",
    [
        np.array([[True, False], [False, False]]),
        np.zeros((0, 2), bool),
        np.zeros((2, 0), bool),
        np.array(True),
    ],
)
@pytest.mark.parametrize("target", [19, 17, 12, 11, 5])
def test_booleans(op_type: str, x: np.ndarray[Any, Any], target: int) -> None:
    axes = {} if x.ndim == 0 else {"axes": np.array([0])}
    source = one_node(op_type, 20, {"x": x, **axes}, initializers=("axes",), keepdims=0)
    converts(source, target, {"x": x}, exact=True, in_numpy=0 in x.shape)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.uint32, np.uint64])
def test_what_is_no_boolean_stays(op_type: str, dtype: Any) -> None:
    x = np.array([[300, 2], [0, 1000]]).astype(dtype)
    source = one_node(op_type, 20, {"x": x})
    assert op_types(converts(source, 18, {"x": x}, exact=True, in_numpy=True)) == [op_type]


@pytest.mark.parametrize("op_type", ["ReduceLogSum", "ReduceLogSumExp"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_integer_logarithms(op_type: str, dtype: Any) -> None:
    x = np.array([[1, 2, 3], [40, 50, 60]], dtype)
    source = one_node(op_type, 18, {"x": x, "axes": np.array([1])}, initializers=("axes",))
    if newest_opset() < 28:
        with pytest.raises(ValueError, match="there is no opset 28"):
            onnxreduce_cli.convert(source, 28)
        return
    result = converts(source, 28, {"x": x}, exact=True)
    assert op_types(result) == ["Cast", op_type, "Cast"]


@pytest.mark.parametrize("op_type", REDUCE)
def test_bfloat16_below_13_blocks(op_type: str) -> None:
    x = np.ones((2, 3), ml_dtypes.bfloat16)
    (blocker,) = blockers(one_node(op_type, 13, {"x": x}), 12)
    assert blocker.reason == (
        "it has a tensor(bfloat16), which came with opset 13: no operator before knows it"
    )
    assert blocker.advice == (
        "choose opset 13 or later, or change it throughout the model: --dtype bfloat16=float"
    )


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceLogSum", "ReduceMax"])
def test_bfloat16_below_13_blocks_the_elementwise_part_too(op_type: str) -> None:
    x = np.ones((2, 3), ml_dtypes.bfloat16)
    assert blockers(one_node(op_type, 18, {"x": x}, noop_with_empty_axes=1), 12)
