"""OneHot below 9."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, converts_from_9, converts_or_counts, one_node


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis: int) -> None:
    indices = np.array([[0, 2], [5, 1]])
    for values in (np.array([0, 1], np.float32), np.array([np.nan, -3], np.float32)):
        inputs = {"i": indices, "d": np.array(3), "v": values}
        for initializers in ((), ("d",)):
            source = one_node(
                "OneHot",
                9,
                inputs,
                initializers=initializers,
                axis=axis,
                output_shapes=[[None, None, None]],
            )
            convert = converts if initializers else converts_from_9
            for target in (8, 7):
                convert(source, target, inputs, {**inputs, "i": indices[::-1]})


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_one_hot_of_unknown_rank(axis: int) -> None:
    values = np.array([np.nan, -3], np.float32)
    inputs = {"i": np.array([[0, 2], [5, 1]]), "d": np.array(3), "v": values}
    options = {"initializers": ("d",), "hidden": ("i",), "output_shapes": [[None] * 3]}
    source = one_node("OneHot", 9, inputs, axis=axis, **options)
    if axis < -1:
        source.opset_import[0].version = 11
    for target in (8, 7):
        converts_or_counts(source, target, inputs)


def test_many_classes_are_not_written_into_the_model() -> None:
    inputs = {"i": np.array([1, 1_999_999]), "depth": np.array(2_000_000), "v": np.array([0, 1])}
    source = one_node("OneHot", 9, inputs, initializers=("depth",))
    (blocker,) = blockers(source, 8)
    assert "it takes all numbers below 2,000,000, and before opset 9" in blocker.reason
