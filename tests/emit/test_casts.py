"""Casts that steps emit."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from onnxreduce_cli.emit.casts import cast
from tests.emit.test_context import context


@pytest.mark.parametrize("opset", [5, 6])
def test_a_value_of_the_model_keeps_its_rank(opset: int) -> None:
    here = context(opset, "r = Relu(x) y = Add(r, w)")
    cast(here, here.op.Reshape("x", here.fresh("shape")), TensorProto.FLOAT, ["r"])
    assert here.rank("r") == 2
