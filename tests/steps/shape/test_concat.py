"""Concat: 4."""

from __future__ import annotations

import numpy as np

from tests.support import converts, model


def test_axis_written_out():
    source = model(
        '<ir_version: 4, opset_import: ["" : 3]> g (float[2, 3] x) => (float[2, 6] y) '
        "{ y = Concat (x, x) }"
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert converts(source, 4, {"x": x}).graph.node[0].attribute[0].i == 1
