"""Plans say where a replacement takes memory for all pairs of two lists of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import float8_e4m3fnuz
from onnx import TensorProto

from onnxreduce_cli import plan
from tests.support import one_node

pytestmark = pytest.mark.newest

X = np.arange(6, dtype=np.float32).reshape(2, 3)
OPEN = {"outputs": 2, "shapes": {"x": [2, "length"]}}
N_GRAMS = {
    "max_gram_length": 1,
    "max_skip_count": 0,
    "min_gram_length": 1,
    "mode": "TF",
    "ngram_counts": [0],
    "ngram_indexes": [0, 1],
    "pool_int64s": [2, 3],
}


@pytest.mark.parametrize(
    ("op_type", "opset", "inputs", "attributes", "target", "words"),
    [
        ("Scatter", 9, {"x": X, "i": np.array([[1], [0]]), "u": X[:, :1]}, {}, 8, "each index"),
        ("TopK", 10, {"x": X, "k": np.array([2])}, OPEN, 9, "with each"),
        ("TfIdfVectorizer", 9, {"x": np.array([2, 3, 2])}, N_GRAMS, 8, "each n-gram"),
        ("BitwiseAnd", 18, {"x": X.astype(np.int8), "y": X.astype(np.int8)}, {}, 17, "8 bits"),
        ("BitwiseOr", 18, {"x": X.astype(np.uint64), "y": X.astype(np.uint64)}, {}, 17, "64 bits"),
        ("BitCast", 26, {"x": X.astype(float8_e4m3fnuz)}, {"to": TensorProto.INT8}, 25, "numbers"),
        ("DFT", 17, {"x": X[..., None], "n": np.array(5)}, {"axis": 1}, 16, "length squared"),
    ],
)
def test_memory_for_pairs_is_told(
    op_type: str,
    opset: int,
    inputs: dict[str, Any],
    attributes: dict[str, Any],
    target: int,
    words: str,
) -> None:
    found = plan(one_node(op_type, opset, inputs, **attributes), target, emulate=True)
    assert not found.blockers
    (text,) = found.changes[0].warnings
    assert words in text
    assert "memory" in text or "is made" in text
