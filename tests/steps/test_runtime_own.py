"""ONNX Runtime's optimiser puts its own operators into the default domain."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import onnxreduce_cli
from tests.support import assert_same, blockers, op_types, run

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
TEXT = """<ir_version: 6, opset_import: ["": 11]>
g ({0}[b, 3, 4] x) => (float[b, 3, 4] y) <float[4] scale = {{1.0, 2.0, 0.5, 3.0}}> {{
  z = {1}<axis = -1, epsilon = 0.00001>(x, scale)
  y = Softmax<axis = 2>(z)
}}"""


@pytest.mark.parametrize("target", [7, 9, 13, 17, 18, 21, 23])
@pytest.mark.parametrize("op_type", ["LayerNormalization", "SimplifiedLayerNormalization"])
def test_it_goes_along(op_type: str, target: int) -> None:
    source = parser.parse_model(TEXT.format("float", op_type))
    result = onnxreduce_cli.convert(source, target)
    assert op_type in op_types(result)
    before, after = (run(item, {"x": X}) for item in (source, result))
    assert_same(before["y"], after["y"])


def test_two_dtypes_block_where_one_is_wanted() -> None:
    source = parser.parse_model(TEXT.format("float16", "LayerNormalization"))
    (blocker,) = blockers(source, 17)
    assert "must have one dtype" in str(blocker)
    onnxreduce_cli.convert(source, 13)
