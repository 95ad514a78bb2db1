"""AffineGrid below the opset that it came with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

from onnxreduce_cli import ConversionError, convert
from tests.support import blockers, converts, converts_or_counts, one_node, op_types

RNG = np.random.default_rng(3)


def thetas(batch: int, rank: int) -> np.ndarray:
    return RNG.standard_normal((batch, rank, rank + 1)).astype(np.float32)


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 3, 4, 5, 6], [1, 1, 7, 2]])
def test_affine_grid(size: list[int], aligned: int) -> None:
    inputs = {"theta": thetas(size[0], len(size) - 2), "size": np.array(size)}
    source = one_node("AffineGrid", 20, inputs, align_corners=aligned)
    for opset in (19, 13, 11, 8, 7):
        converts_or_counts(source, opset, inputs)
    known = one_node("AffineGrid", 20, inputs, initializers=("size",), align_corners=aligned)
    for opset in (19, 13, 9, 7):
        result = converts_or_counts(known, opset, inputs)
    assert op_types(result) == ["Transpose", "MatMul", "Reshape"]


@pytest.mark.parametrize("constants", [(), ("size",)])
def test_an_axis_of_one_element(constants: tuple[str, ...]) -> None:
    inputs = {"theta": thetas(1, 2), "size": np.array([1, 1, 1, 3])}
    for aligned in (0, 1):
        source = one_node("AffineGrid", 20, inputs, initializers=constants, align_corners=aligned)
        for opset in (19, 7):
            converts_or_counts(source, opset, inputs)


@pytest.mark.parametrize("constants", [(), ("size",)])
@pytest.mark.parametrize("size", [[1, 1, 0, 3], [1, 1, 3, 0], [0, 1, 2, 3]])
def test_no_elements(size: list[int], constants: tuple[str, ...]) -> None:
    """ONNX Runtime refuses them."""
    inputs = {"theta": thetas(size[0], 2), "size": np.array(size)}
    source = one_node("AffineGrid", 20, inputs, initializers=constants)
    for opset in (19, 9):
        converts(source, opset, inputs, in_numpy=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_dtypes(dtype: type) -> None:
    inputs = {"theta": thetas(1, 2).astype(dtype), "size": np.array([1, 1, 3, 4])}
    for constants in ((), ("size",)):
        source = one_node("AffineGrid", 20, inputs, initializers=constants)
        converts(source, 19, inputs, in_numpy=True)


def test_an_unknown_number_of_dimensions() -> None:
    inputs = {"theta": thetas(1, 2), "size": np.array([1, 1, 3, 4])}
    shapes: dict[str, Any] = {"theta": ["n", "r", "s"], "size": ["k"]}
    source = one_node("AffineGrid", 20, inputs, shapes=shapes, output_shapes=[["n", "h", "w", "r"]])
    (blocker,) = blockers(source, 19)
    assert "two or three dimensions" in blocker.reason


@pytest.mark.parametrize("size", [[1], [1, 1, 3], [1] * 6])
def test_sizes_of_another_number_of_dimensions(size: list[int]) -> None:
    source = parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 20]>
        g (float[1] theta) => (y) <int64[{len(size)}] size = {{{str(size)[1:-1]}}}> {{
            y = AffineGrid (theta, size) }}""")
    source.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ConversionError, match="two or three dimensions"):
        convert(source, 19)


def test_a_theta_of_another_rank() -> None:
    source = parser.parse_model("""<ir_version: 9, opset_import: ["" : 20]>
        g (float[2] theta, int64[n] size) => (y) { y = AffineGrid (theta, size) }""")
    with pytest.raises(ConversionError, match="two or three dimensions"):
        convert(source, 19)
