"""AffineGrid beside the cases of onnx: a batch of one, and shapes that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli.executor import ExecutorError, run
from tests.executor.models import one_node

MOVED = np.array([[[0.5, 0, 0.25], [0, 2, -1]]], np.float32)


def grid(theta: np.ndarray, size: list[int], **attrs: int) -> np.ndarray:
    inputs = {"theta": theta, "size": np.array(size)}
    found = run(one_node("AffineGrid", 20, inputs, **attrs), inputs)["y0"]
    assert isinstance(found, np.ndarray)
    return found


def test_a_batch_of_one() -> None:
    got = grid(MOVED, [1, 3, 2, 4])
    x, y = [-0.75, -0.25, 0.25, 0.75], [-0.5, 0.5]
    want = [[[[0.5 * a + 0.25, 2 * b - 1] for a in x] for b in y]]
    np.testing.assert_array_equal(got, np.array(want, np.float32))


def test_corners() -> None:
    got = grid(MOVED, [1, 3, 2, 3], align_corners=1)
    want = [[[[0.5 * a + 0.25, 2 * b - 1] for a in (-1, 0, 1)] for b in (-1, 1)]]
    np.testing.assert_array_equal(got, np.array(want, np.float32))
    with pytest.raises(ExecutorError, match="divides by 0"):
        grid(MOVED, [1, 3, 1, 3], align_corners=1)


def test_three_dimensions_keep_what_the_identity_keeps() -> None:
    got = grid(np.eye(3, 4, dtype=np.float64)[None], [1, 1, 2, 3, 4])
    assert got.shape == (1, 2, 3, 4, 3)
    np.testing.assert_allclose(got[0, 1, 2, 3], [0.75, 2 / 3, 0.5])


@pytest.mark.parametrize(
    ("shape", "size"),
    [((2, 2, 3), [1, 3, 2, 4]), ((1, 2, 5), [1, 3, 2, 4]), ((1, 2, 3), [1, 3, 2])],
)
def test_shapes_that_do_not_fit(shape: tuple[int, ...], size: list[int]) -> None:
    with pytest.raises(ExecutorError, match="does not fit size"):
        grid(np.zeros(shape, np.float32), size)
