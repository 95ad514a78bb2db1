"""Col2Im below opset 18."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

from tests.support import blockers, converts, converts_or_counts, one_node, op_types

RANDOM = np.random.default_rng(18)


def count(image: int, block: int, begin: int, end: int, dilation: int, stride: int) -> int:
    return (image + begin + end - (block - 1) * dilation - 1) // stride + 1


def blocks(
    image: list[int], block: list[int], run_time: bool = False, dtype: Any = np.float32, **more: Any
) -> tuple[ModelProto, dict[str, np.ndarray]]:
    axes = len(image)
    strides, dilations = (more.get(name, [1] * axes) for name in ("strides", "dilations"))
    pads = more.get("pads", [0] * (2 * axes))
    each = zip(image, block, pads[:axes], pads[axes:], dilations, strides, strict=True)
    shape = [2, 3 * int(np.prod(block)), int(np.prod([count(*one) for one in each]))]
    x = RANDOM.integers(-100, 100, shape).astype(dtype)
    if x.dtype.kind == "f":
        x.flat[0], x.flat[-1] = np.inf, np.nan
    inputs = {"x": x, "image": np.array(image), "block": np.array(block)}
    if run_time:
        more["shapes"] = {"x": [None] * 3}
    else:
        more["initializers"] = ("image", "block")
    return one_node("Col2Im", 18, inputs, output_shapes=[[None] * (2 + axes)], **more), inputs


@pytest.mark.parametrize("target", [17, 9, 7])
@pytest.mark.parametrize("run_time", [False, True])
@pytest.mark.parametrize(
    ("image", "block", "more"),
    [
        ([5, 6], [2, 3], {}),
        ([5, 6], [1, 3], {"strides": [1, 3]}),
        ([5, 7], [3, 2], {"strides": [2, 2], "pads": [1, 0, 1, 2]}),
        ([7, 5], [2, 3], {"strides": [3, 1], "dilations": [2, 1], "pads": [0, 1, 0, 1]}),
        ([3, 4, 5], [2, 1, 3], {"strides": [1, 1, 2]}),
    ],
)
def test_col2im(image, block, more, run_time, target):
    source, inputs = blocks(image, block, run_time, **more)
    # ONNX Runtime 1.23 gets more than two axes wrong.
    converts_or_counts(source, target, inputs, in_numpy=len(image) > 2)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.int64, np.uint32])
def test_col2im_of_other_dtypes(dtype):
    source, inputs = blocks([5, 6], [2, 3], dtype=dtype)
    converts(source, 17, inputs, in_numpy=True)


def test_col2im_of_what_cannot_be_added():
    source, inputs = blocks([4, 6], [2, 3], dtype=np.bool_, strides=[2, 3])
    assert "ReduceSum" not in op_types(converts(source, 17, inputs, in_numpy=True))
    source, _ = blocks([5, 6], [2, 3], dtype=np.bool_)
    (blocker,) = blockers(source, 17)
    assert "adds up elements of dtype bool" in blocker.reason
    source, _ = blocks([5, 6], [2, 3], run_time=True)
    for value in source.graph.input[1:]:
        value.type.tensor_type.shape.dim[0].ClearField("dim_value")
    (blocker,) = blockers(source, 17)
    assert "the number of its spatial axes is not known" in blocker.reason


@pytest.mark.parametrize("target", [17, 8])
def test_size_0(target: int) -> None:
    source, inputs = blocks([4, 5], [2, 2], shapes={"x": ["n", "c", "l"]})
    converts(source, target, {"x": inputs["x"][:0]}, {"x": inputs["x"]})


@pytest.mark.parametrize(
    ("image", "block", "reason"),
    [([5, 6], [2], "has 1 numbers, not 2"), ([-1 << 62, 6], [2, 3], "is negative")],
)
def test_sizes_that_cannot_be(image: list[int], block: list[int], reason: str) -> None:
    source, _ = blocks([5, 6], [2, 3], shapes={"x": ["n", "c", "l"]})
    for name, sizes in (("image", image), ("block", block)):
        tensor = next(item for item in source.graph.initializer if item.name == name)
        tensor.CopyFrom(numpy_helper.from_array(np.array(sizes), name))
    source.graph.input[0].type.tensor_type.ClearField("shape")
    source.graph.node[0].attribute.append(helper.make_attribute("strides", [1, 1]))
    (blocker,) = blockers(source, 17)
    assert reason in blocker.reason
