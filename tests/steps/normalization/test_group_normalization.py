"""GroupNormalization below opsets 21 and 18."""

from __future__ import annotations

import numpy as np
import pytest

import onnxreduce_cli
from tests.support import converts, model, one_node, op_types, run


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        (shape, dtype)
        for shape in ((2, 4, 3, 5), (2, 4), (2, 4, 6))
        for dtype in (np.float32, np.float64, np.float16)
        # ONNX Runtime's variance of two doubles is not exact enough to compare with.
        if shape != (2, 4) or dtype != np.float64
    ],
)
def test_group_normalization(shape: tuple[int, ...], dtype: type) -> None:
    rng = np.random.default_rng(7)
    inputs = {
        "x": rng.normal(2, 3, shape).astype(dtype),
        "s": np.array([0.5, -2, 1, 3], dtype),
        "b": np.array([1, 0, 2, -1], dtype),
    }
    options = {"num_groups": 2, "stash_type": 11 if dtype == np.float64 else 1}
    source = one_node("GroupNormalization", 21, inputs, **options, output_shapes=[shape])
    symbolic = [f"d{axis}" if axis != 1 else 4 for axis in range(len(shape))]
    named = one_node(
        "GroupNormalization",
        21,
        inputs,
        **options,
        shapes={"x": symbolic},
        output_shapes=[symbolic],
    )
    for target in (20, 17, 13, 11, 9, 7):
        converts(source, target, inputs)
        converts(named, target, inputs)


def test_group_normalization_of_nothing() -> None:
    """ONNX Runtime fails on it before, so it is not run."""
    inputs = {"x": np.zeros((0, 4, 3), np.float32), "s": np.ones(4, np.float32)}
    inputs["b"] = inputs["s"]
    source = one_node("GroupNormalization", 21, inputs, num_groups=2, output_shapes=[(0, 4, 3)])
    assert op_types(onnxreduce_cli.convert(source, 13)) == ["Identity"]


def test_group_normalization_by_group() -> None:
    """The definition of opset 18, which is deprecated but was exported."""
    x = np.random.default_rng(3).normal(2, 3, (2, 4, 6)).astype(np.float32)
    inputs = {"x": x, "s": np.array([0.5, -2], np.float32), "b": np.array([1, 0], np.float32)}
    source = one_node("GroupNormalization", 21, inputs, num_groups=2, output_shapes=[x.shape])
    source.opset_import[0].version = 18
    grouped = x.reshape(2, 2, 12)
    deviation = np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
    expected = (grouped - grouped.mean(2, keepdims=True)) / deviation
    expected = expected * inputs["s"][:, None] + inputs["b"][:, None]
    for target in (17, 13, 9):
        actual = run(onnxreduce_cli.convert(source, target), inputs)["y0"]
        np.testing.assert_allclose(actual, expected.reshape(x.shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [20, 13, 9])
def test_sizes_known_at_run_time_only_are_checked(opset: int) -> None:
    source = model("""<ir_version: 10, opset_import: ["": 21]>
        g (float[n, 8, w] x, float[8] s) => (float[p, q, r] y) {
          y = GroupNormalization<num_groups = 4>(x, s, s)
        }""")
    converted = onnxreduce_cli.convert(source, opset, strict=True)
    assert "GroupNormalization" not in op_types(converted)
