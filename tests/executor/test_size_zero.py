"""Composite operators on tensors of size 0, on which the bodies that onnx has fail."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli.executor import ExecutionError, UnsupportedError, run
from tests.support import model

pytestmark = pytest.mark.newest

ATTENTION = """<ir_version: 10, opset_import: ["": 23]>
agraph (float[b, 2, s, 4] q, float[b, 2, t, 4] k) => (float[b, 2, s, 4] y) {
  y = Attention(q, k, k)
}"""


def test_groups_of_nothing() -> None:
    source = model(
        """<ir_version: 10, opset_import: ["": 21]>
        agraph (float[n, 4, w] x, float[4] s) => (float[n, 4, w] y) {
          y = GroupNormalization<num_groups = 2>(x, s, s)
        }"""
    )
    scale = np.arange(4, dtype=np.float32)
    for shape in ((2, 4, 0), (0, 4, 3)):
        assert run(source, {"x": np.zeros(shape, np.float32), "s": scale})["y"].shape == shape
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    rows = x.reshape(2, 2, 6)
    normal = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-5)
    expected = normal.reshape(x.shape) * scale[:, None] + scale[:, None]
    np.testing.assert_allclose(run(source, {"x": x, "s": scale})["y"], expected, rtol=1e-5)


def test_groups_that_do_not_fit() -> None:
    source = model(
        """<ir_version: 10, opset_import: ["": 21]>
        agraph (float[n, c, w] x, float[c] s) => (float[n, c, w] y) {
          y = GroupNormalization<num_groups = 2>(x, s, s)
        }"""
    )
    for shape, size in (((1, 3, 2), 3), ((1, 4, 2), 2)):
        with pytest.raises(ExecutionError):
            run(source, {"x": np.ones(shape, np.float32), "s": np.ones(size, np.float32)})


def test_a_body_that_fails_on_nothing_says_nothing_of_the_operator() -> None:
    q, k = np.ones((1, 2, 3, 4), np.float32), np.ones((1, 2, 0, 4), np.float32)
    with pytest.raises(UnsupportedError, match="size 0"):
        run(model(ATTENTION), {"q": q, "k": k})
    assert run(model(ATTENTION), {"q": q, "k": q})["y"].shape == q.shape
