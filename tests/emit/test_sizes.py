"""Dimensions that a tensor is said not to have: no traceback, but a blocker."""

from __future__ import annotations

import pytest
from onnx import parser

from tests.support import blockers

OF_RANK_3 = {
    "Gather": (13, "Gather<axis = 3>(x, i)"),
    "ScatterElements": (13, "ScatterElements<axis = 3>(x, j, x)"),
    "Unique": (11, "Unique<axis = 3>(x)"),
    "GridSample": (20, "GridSample(x, grid)"),
}


@pytest.mark.parametrize("op_type", OF_RANK_3)
def test_a_dimension_beyond_the_rank(op_type: str) -> None:
    opset, node = OF_RANK_3[op_type]
    source = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[N,C,L] x, int64[k] i, int64[N,C,L] j, float[N,H,W,2] grid) => (float[a,b] y) {{
            y = {node}
        }}""")
    (blocker,) = blockers(source, 9)
    assert blocker.reason == "'x' is said to have rank 3, and it needs a dimension 3 of it"
    assert "the shapes that it states" in blocker.advice
