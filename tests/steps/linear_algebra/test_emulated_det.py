"""Det below the opset that it came with."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli import convert, executor
from tests.support import converts, one_node, run

SHAPES = [(1, 1), (2, 2), (3, 3), (12, 12), (2, 3, 3), (2, 1, 4, 4), (0, 3, 3), (2, 0, 0)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("target", [10, 9, 7])
def test_det(shape: tuple[int, ...], target: int) -> None:
    x = np.random.default_rng(8).standard_normal(shape)
    if len(shape) == 3 and x.size:
        x[0, 1] = 2 * x[0, 0]
    names = [*(f"d{index}" for index in range(len(shape) - 2)), "n", "n"]
    for dtype, rtol in ((np.float64, 1e-12), (np.float32, 1e-6)):
        feeds = {"x": x.astype(dtype)}
        truth = np.linalg.det(feeds["x"].astype(np.float64)).astype(dtype)
        for shapes in ({}, {"x": names}):
            result = convert(
                one_node("Det", 11, feeds, shapes=shapes), target, check=False, emulate=True
            )
            for found in (run(result, feeds)["y0"], executor.run(result, feeds)["y0"]):
                assert (found.dtype, found.shape) == (truth.dtype, truth.shape)
                np.testing.assert_allclose(found, truth, rtol=rtol, atol=1e-15)


def test_det_of_what_is_singular_infinite_or_no_number() -> None:
    matrices = [
        [[0, 0], [0, 1]],
        [[0, 2], [3, 0]],
        [[np.inf, 0], [0, 1]],
        [[0, np.inf], [1, 1]],
        [[1, np.nan], [0, 1]],
        [[1, 2], [2, 4]],
    ]
    for dtype in (np.float32, np.float16):
        x = np.array(matrices, dtype)
        converts(one_node("Det", 11, {"x": x}), 9, {"x": x}, exact=True)
