"""Small models of ai.onnx.ml, and how they are compared before and after a conversion."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnxreduce import convert
from tests import support

DTYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.int16): TensorProto.INT16,
    np.dtype(object): TensorProto.STRING,
}


def of_node(
    op_type: str,
    version: int,
    x: Any,
    outputs: dict[str, tuple[int, list[Any]]],
    opset: int = 17,
    **attributes: Any,
) -> ModelProto:
    """A model of one node whose input is like `x`, with a free number of rows."""
    node = helper.make_node(
        op_type, ["x"], [*outputs], name="node", domain="ai.onnx.ml", **attributes
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", DTYPES[x.dtype], ["N", *x.shape[1:]])],
        [helper.make_tensor_value_info(name, *of) for name, of in outputs.items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def run(model: ModelProto, x: Any) -> list[Any]:
    return support.run_ort(model, {"x": x})  # By the module, in which `conftest.py` notes runs.


def version_of(model: ModelProto) -> int:
    return next(entry.version for entry in model.opset_import if entry.domain == "ai.onnx.ml")


def same_at(model: ModelProto, version: int, x: Any, **options: Any) -> ModelProto:
    """Convert a model to a version of ai.onnx.ml; each bit of the outputs is the same."""
    result = convert(model, ml_opset=version, strict=True, **options)
    assert version_of(result) == version
    for before, after in zip(run(model, x), run(result, x), strict=True):
        np.testing.assert_array_equal(before, after)
        assert before.dtype == after.dtype
        assert before.shape == after.shape
        assert before.tolist() == after.tolist() or before.tobytes() == after.tobytes()
    return result


def doubles(numbers: list[float]) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, np.float64))


def trees(prefix: str = "target", **others: Any) -> dict[str, Any]:
    """Two trees: equal to thresholds, NaN both ways, and a leaf as a child of the root."""
    found: dict[str, Any] = {
        "nodes_treeids": [0] * 5 + [1] * 3,
        "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
        "nodes_featureids": [0, 1, 0, 0, 0, 1, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", *["LEAF"] * 3, "BRANCH_GT", *["LEAF"] * 2],
        "nodes_values": [0.5, 0.25, 0.0, 0.0, 0.0, 0.75, 0.0, 0.0],
        "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0],
        "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 1, 0, 0],
        f"{prefix}_treeids": [0, 0, 0, 1, 1],
        f"{prefix}_nodeids": [2, 3, 4, 1, 2],
        f"{prefix}_ids": [0, 0, 0, 0, 0],
        f"{prefix}_weights": [1.5, 2.25, -3.0, 0.125, 0.5],
    }
    found |= others
    return {name: value for name, value in found.items() if value is not None}


#: At thresholds, beside them, and NaN.
ROWS = np.array(
    [
        *([0.5, 0.25], [0.5, 0.2], [0.6, 0.8], [np.nan, 0.1], [np.nan, np.nan], [0.1, np.nan]),
        *([0.1, 0.75], [np.nextafter(np.float32(0.5), np.float32(1)), 0.75], [-np.inf, np.inf]),
    ],
    np.float32,
)
