"""InstanceNormalization across its boundary."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxreduce_cli import convert
from tests.support import assert_same, converts, one_node, run

RANDOM = np.random.default_rng(5)


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_instance(rank: int) -> None:
    x = normal(*range(2, rank + 2))
    feeds = {"x": x, "scale": normal(3), "b": normal(3)}
    source = one_node("InstanceNormalization", 21, feeds, epsilon=1e-3)
    for opset in (11, 7, 6):
        converts(source, opset, feeds)
    older = convert(source, 5)
    onnx.checker.check_model(older)
    newer = convert(older, 21)
    assert_same(run(source, feeds)["y0"], run(newer, feeds)["y0"])
    for node in older.graph.node:
        if node.op_type == "InstanceNormalization":
            node.attribute.append(helper.make_attribute("consumed_inputs", [0, 0, 0]))
    newer = convert(older, 6)
    assert "consumed_inputs" not in str(newer)
    assert_same(run(older, feeds)["y0"], run(newer, feeds)["y0"])
