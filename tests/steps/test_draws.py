"""Bernoulli and Multinomial below the opset they came with: shapes, dtypes and shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxreduce_cli import convert
from tests.support import assert_same, one_node, run_ort


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("to", [None, "float32", "int64", "bool"])
def test_bernoulli(dtype: Any, to: str | None) -> None:
    share = np.array([0, 0.25, 0.5, 1], dtype)
    inputs = {"x": np.repeat(share[:, None], 4000, 1)}
    wanted = np.dtype(to or dtype)
    more = {} if to is None else {"dtype": helper.np_dtype_to_tensor_dtype(wanted)}
    source = one_node("Bernoulli", 15, inputs, seed=2.0, **more)
    for target in (14, 9, 7):
        result = convert(source, target)
        onnx.checker.check_model(result, full_check=True)
        (y,) = run_ort(result, inputs)
        assert y.dtype == wanted
        assert y.shape == inputs["x"].shape
        assert set(np.unique(y)) == {0, 1}
        assert_same(inputs["x"][::3].astype(wanted), y[::3])
        means = y.astype(np.float64).mean(1)
        np.testing.assert_allclose(means, share.astype(float), atol=0.03)
        (drawing,) = (node for node in result.graph.node if node.op_type == "RandomUniformLike")
        assert [a.f for a in drawing.attribute if a.name == "seed"] == [2.0]


@pytest.mark.parametrize("shape", [None, ["b", "c"]])
def test_multinomial(shape: Any) -> None:
    """ONNX Runtime has no kernels below opset 7: it runs what comes up again."""
    share = np.array([[0.1, 0.6, 0.3], [1, 0, 0], [0, 0.5, 0.5]])
    with np.errstate(divide="ignore"):
        inputs = {"x": np.add(np.log(share), [[3], [0], [-2]]).astype(np.float32)}
    for to in (TensorProto.INT32, TensorProto.INT64):
        shapes = {"x": shape} if shape else {}
        source = one_node("Multinomial", 7, inputs, shapes=shapes, sample_size=4000, dtype=to)
        below = convert(source, 6)
        onnx.checker.check_model(below, full_check=True)
        for found in (source, convert(below, 13)):
            (y,) = run_ort(found, inputs)
            assert y.shape == (3, 4000)
            assert y.dtype == helper.tensor_dtype_to_np_dtype(to)
            counted = np.stack([(y == k).mean(1) for k in range(3)], 1)
            np.testing.assert_allclose(counted, share, atol=0.03)


def test_multinomial_of_one_class() -> None:
    inputs = {"x": np.zeros((2, 1), np.float32)}
    source = one_node("Multinomial", 7, inputs, sample_size=3)
    (y,) = run_ort(convert(convert(source, 6), 13), inputs)
    assert_same(run_ort(source, inputs)[0], y)
    assert not y.any()
