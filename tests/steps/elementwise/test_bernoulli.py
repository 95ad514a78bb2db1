"""Bernoulli below the opset that it came with: shapes, dtypes and shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

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
