"""BitwiseAnd, BitwiseOr and BitwiseXor below opset 18."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.support import blockers, converts, one_node

_KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("op_type", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@pytest.mark.parametrize("kind", _KINDS)
def test_bitwise(op_type: str, kind: str) -> None:
    limits = np.iinfo(kind)
    x = np.array([limits.min, limits.min + 1, 0, 1, 5, 100, limits.max - 1, limits.max], kind)
    y = np.concatenate([x, np.array([3, 77], kind)])[:, None]
    source = one_node(op_type, 18, {"x": x, "y": y})
    for target in (17, 13, 11, 9, 7):
        converts(source, target, {"x": x, "y": y}, exact=True)
    inputs = {"x": x, "y": np.array(6, kind)}
    source = one_node(op_type, 18, inputs, initializers=("y",), shapes={"x": ["n"]})
    converts(source, 13, inputs, exact=True)
    converts(source, 13, {"x": x[:0], "y": inputs["y"]}, in_numpy=True)


@pytest.mark.parametrize("shape", [["a", "b"], (0, 3)])
def test_bitwise_of_size_0(shape: Any) -> None:
    """ONNX Runtime takes no notice of a negative axis where a tensor is empty."""
    inputs = {name: np.zeros((0, 3), np.int32) for name in ("a", "b")}
    for hidden in ((), ("a",)) if shape == ["a", "b"] else ((),):
        shapes = {"a": shape, "b": shape}
        source = one_node("BitwiseAnd", 18, inputs, shapes=shapes, hidden=hidden)
        for target in (17, 8):
            converts(source, target, inputs)


def test_inputs_of_two_dtypes() -> None:
    x = np.zeros(2, np.uint64)
    source = one_node("BitwiseXor", 18, {"x": x, "y": x})
    source.graph.input[1].type.tensor_type.elem_type = TensorProto.UINT16
    (blocker,) = blockers(source, 8)
    assert "two dtypes" in str(blocker)
