"""Dimensions that a tensor is said not to have: no traceback, but a word about the model."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.errors import InvalidModelError


def of_rank_3(opset: int, node: str) -> ModelProto:
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[N,C,L] x, int64[k] i, int64[N,C,L] j, float[N,H,W,2] grid) => (float[a,b] y) {{
            y = {node}
        }}""")


def test_a_dimension_beyond_the_rank() -> None:
    (blocker,) = Conversion(of_rank_3(13, "ScatterElements<axis = 3>(x, j, x)"), 9).blockers
    assert blocker.reason == "'x' is said to have rank 3, and it needs a dimension 3 of it"
    assert "state its true shape" in blocker.advice


@pytest.mark.parametrize(
    ("opset", "node"),
    [(13, "Gather<axis = 3>(x, i)"), (11, "Unique<axis = 3>(x)"), (20, "GridSample(x, grid)")],
)
def test_one_that_shape_inference_refuses(opset: int, node: str) -> None:
    with pytest.raises(InvalidModelError, match="mend the model"):
        Conversion(of_rank_3(opset, node), 9)
