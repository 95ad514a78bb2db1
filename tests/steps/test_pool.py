"""AveragePool, MaxPool, LpPool and GlobalLpPool across their boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from onnxreduce_cli import convert
from tests.support import blockers, converts, one_node

RANDOM = np.random.default_rng(9)


def pool(op_type: str, opset: int, x: np.ndarray, **more: Any) -> ModelProto:
    return one_node(op_type, opset, {"x": x}, **more)


def image(*shape: int) -> np.ndarray:
    x = RANDOM.standard_normal(shape).astype(np.float32)
    x.flat[0], x.flat[-1] = np.inf, -np.inf
    return x


@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool", "LpPool"])
@pytest.mark.parametrize("length", range(5, 10))
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("pads", [(0, 0), (1, 1), (0, 1), (1, 0)])
def test_ceil_mode(
    op_type: str, length: int, stride: int, kernel: int, pads: tuple[int, int]
) -> None:
    x = image(1, 2, length, 6)
    options = {
        "kernel_shape": [kernel, 2],
        "strides": [stride, 1],
        "pads": [pads[0], 0, pads[1], 0],
    }
    source = pool(op_type, 22, x, ceil_mode=1, **options)
    for opset in (21, 18, 17, 11, 8):
        converts(source, opset, {"x": x})
    below = pool(op_type, 18, x, ceil_mode=1, **options)
    last = -(-(length + sum(pads) - kernel) // stride) * stride
    if last >= length + pads[0]:
        (blocker,) = blockers(below, 22)
        assert "starts in the padding" in blocker.reason
    else:
        converts(below, 22, {"x": x})


def test_indices_of_a_max_pool() -> None:
    x = RANDOM.permutation(49).astype(np.float32).reshape(1, 1, 7, 7)
    options = {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    source = pool("MaxPool", 22, x, outputs=2, ceil_mode=1, dilations=[1, 1], **options)
    for opset in (21, 11, 9, 8):
        converts(source, opset, {"x": x}, exact=True)
    (blocker,) = blockers(source, 7)
    assert "opset 8" in blocker.reason


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("outputs", [1, 2])
def test_small_integers(dtype: type, outputs: int) -> None:
    limits = np.iinfo(dtype)
    x = RANDOM.integers(limits.min, limits.max, (1, 2, 6, 6), dtype=dtype, endpoint=True)
    options = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    source = pool("MaxPool", 12, x, outputs=outputs, **options)
    for opset in (11, 8):
        converts(source, opset, {"x": x}, exact=True)


def test_unknown_sizes() -> None:
    x, dynamic = image(1, 2, 7, 7), {"x": ["n", "c", "h", "w"]}
    safe = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 0, 0]}
    source = pool("MaxPool", 22, x, shapes=dynamic, ceil_mode=1, **safe)
    converts(converts(source, 10, {"x": x}), 22, {"x": x})
    (blocker,) = blockers(source, 9)
    assert "ceil_mode=1 stands for" in blocker.reason
    unsafe = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    for here, there in ((22, 21), (21, 22)):
        source = pool("MaxPool", here, x, shapes=dynamic, ceil_mode=1, **unsafe)
        (blocker,) = blockers(source, there)
        assert "spatial axis 0 is not known" in blocker.reason
    same = {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"}
    converts(pool("MaxPool", 22, x, shapes=dynamic, ceil_mode=1, **same), 21, {"x": x})
    valid = {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "VALID"}
    converts(pool("MaxPool", 22, x, shapes=dynamic, ceil_mode=1, **valid), 21, {"x": x})


def test_valid_reads_two_ways() -> None:
    options = {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "VALID", "ceil_mode": 1}
    x = image(1, 1, 6, 4)
    converts(pool("MaxPool", 18, x, **options), 9, {"x": x})
    (blocker,) = blockers(pool("MaxPool", 18, image(1, 1, 5, 4), **options), 9)
    assert "VALID" in blocker.reason


@pytest.mark.parametrize(("op_type", "target"), [("MaxPool", 9), ("MaxPool", 7), ("LpPool", 17)])
@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 1]])
def test_dilations(pads: list[int], ceil_mode: int, op_type: str, target: int) -> None:
    x = image(1, 2, 8, 7)
    options = {"kernel_shape": [2, 3], "dilations": [3, 2], "strides": [2, 1]}
    source = pool(op_type, 18, x, ceil_mode=ceil_mode, pads=pads, **options)
    converts(source, target, {"x": x}, check=True)
    source.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "h"
    (blocker,) = blockers(source, target)
    assert "dilations=[3, 2]" in blocker.reason


def test_dilations_with_indices() -> None:
    options = {"kernel_shape": [2], "dilations": [2]}
    (blocker,) = blockers(pool("MaxPool", 18, image(1, 1, 5), outputs=2, **options), 9)
    assert "indices" in blocker.reason


@pytest.mark.newest
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 1, 1]])
def test_count_include_pad(pads: list[int]) -> None:
    options = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1}
    for size in (6, 7, 8):
        x = RANDOM.standard_normal((1, 1, size, size)).astype(np.float32)
        for target in (9, 7):
            converts(pool("AveragePool", 18, x, pads=pads, **options), target, {"x": x})


@pytest.mark.parametrize("op_type", ["LpPool", "GlobalLpPool"])
def test_p_before_2(op_type: str) -> None:
    x = image(1, 2, 4, 4)
    options = {"kernel_shape": [2, 2]} if op_type == "LpPool" else {}
    for given in ({}, {"p": 3}):
        source = pool(op_type, 5, x, **options, **given)
        older = convert(source, 1)
        onnx.checker.check_model(older)
        (p,) = (a for a in older.graph.node[0].attribute if a.name == "p")
        assert p.f == given.get("p", 2)
        (p,) = (a for a in convert(older, 5).graph.node[0].attribute if a.name == "p")
        assert p.i == given.get("p", 2)


def test_p_that_is_not_whole() -> None:
    x = image(1, 2, 4, 4)
    source = pool("GlobalLpPool", 1, x, p=2.5, output_shapes=[[1, 2, 1, 1]])
    (blocker,) = blockers(source, 2)
    assert "p=2.5" in blocker.reason
    source = pool("LpPool", 1, x, output_shapes=[[1, 2, 1, 1]])
    (blocker,) = blockers(source, 2)
    assert "kernel_shape" in blocker.reason
