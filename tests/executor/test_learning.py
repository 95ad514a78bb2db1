"""Operators of ai.onnx.ml in the NumPy executor, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from onnxreduce_cli.executor import ExecutorError, run
from tests.steps.ml import models
from tests.steps.ml.models import ROWS, of_node
from tests.steps.ml.test_label_encoder import INTEGERS, STRINGS, encoder
from tests.steps.ml.test_tree_ensembles import FLOAT, MEMBERS, ensemble, regressor


def agrees(model: ModelProto, x: Any) -> None:
    """Both executors give the same, NaN included."""
    (expected,) = models.run(model, x)
    found = run(model, {"x": x})["y"]
    assert found.dtype == expected.dtype
    if expected.dtype == object:
        assert found.tolist() == expected.tolist()
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("version", [1, 3])
def test_a_regressor(version: int, aggregate: str) -> None:
    agrees(regressor(version, aggregate_function=aggregate, base_values=[0.5]), ROWS)


def test_an_ensemble() -> None:
    agrees(ensemble(), MEMBERS)


def test_a_transformation_in_which_runtimes_differ_is_not_computed() -> None:
    with pytest.raises(ExecutorError, match="runtimes differ"):
        run(regressor(post_transform="LOGISTIC"), {"x": ROWS})


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({"nodes_falsenodeids": [4, 9, 0, 0, 0, 2, 0, 0]}, "leads to no node"),
        ({"nodes_falsenodeids": [0, 3, 0, 0, 0, 2, 0, 0]}, "in a circle"),
        ({"nodes_featureids": [0, 7, 0, 0, 0, 1, 0, 0]}, "feature 7 of 2"),
    ],
)
def test_trees_that_lead_nowhere_are_refused(others: dict[str, Any], reason: str) -> None:
    with pytest.raises(ExecutorError, match=reason):
        run(regressor(**others), {"x": ROWS})


def test_label_encoders() -> None:
    classes = {"classes_strings": ["c", "a"], "default_int64": -9, "default_string": "none"}
    agrees(encoder(1, STRINGS, TensorProto.INT64, **classes), STRINGS)
    agrees(encoder(1, INTEGERS, TensorProto.STRING, **classes), INTEGERS)
    lists = {"keys_int64s": [2, 7], "values_floats": [1.5, 2.5], "default_float": 0.25}
    agrees(encoder(2, INTEGERS, FLOAT, **lists), INTEGERS)
    floats = np.array([np.nan, 1, 2, -0.0], np.float32)
    keys = {"keys_floats": [np.nan, 1.0, 0.0], "values_strings": ["nan", "one", "zero"]}
    agrees(encoder(4, floats, TensorProto.STRING, **keys), floats)
    tensors = {
        "keys_tensor": numpy_helper.from_array(np.array(["a", "c"], object)),
        "values_tensor": numpy_helper.from_array(np.array([4, 5], np.int16)),
    }
    agrees(encoder(4, STRINGS, TensorProto.INT16, **tensors), STRINGS)
    default = numpy_helper.from_array(np.array([-3], np.int16))
    agrees(encoder(4, STRINGS, TensorProto.INT16, default_tensor=default, **tensors), STRINGS)


def test_an_encoder_without_values_is_refused() -> None:
    made = of_node("LabelEncoder", 2, STRINGS, {"y": (FLOAT, ["N"])}, keys_strings=["a"])
    with pytest.raises(ExecutorError, match="it has no values"):
        run(made, {"x": STRINGS})
