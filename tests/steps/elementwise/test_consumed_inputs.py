"""consumed_inputs: dropped at 6."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli import schemas
from onnxreduce_cli.steps.registry import STEPS
from tests.support import converts, model

BINARY = {"Add", "Div", "Mul", "PRelu", "Sub"}
OPERATORS = sorted(op for (op, at, way), s in STEPS.items() if (at, way) == (6, "up"))
#: These have steps, and tests, of their own.
ELSEWHERE = {"BatchNormalization", "Clip", "InstanceNormalization"}
WITH_HINT = [
    op
    for op in OPERATORS
    if op not in ELSEWHERE and "consumed_inputs" in schemas.schema(op, 1).attributes
]


def test_there_are_such_operators():
    assert len(WITH_HINT) > 15


@pytest.mark.parametrize("op_type", WITH_HINT)
def test_without_hint(op_type):
    attributes = "consumed_inputs=[0]" + (", is_test=1" if op_type == "Dropout" else "")
    operands = "x, x" if op_type in BINARY else "x"
    source = model(
        f'<ir_version: 4, opset_import: ["" : 1]> g (float[2, 3] x) => (float[2, 3] y) '
        f"{{ y = {op_type} <{attributes}> ({operands}) }}"
    )
    feeds = np.array([[1, 2, 3], [0.5, np.inf, np.nan]], np.float32)
    result = converts(source, 6, {"x": feeds}, {"x": -feeds})
    assert not any(a.name == "consumed_inputs" for a in result.graph.node[0].attribute)
