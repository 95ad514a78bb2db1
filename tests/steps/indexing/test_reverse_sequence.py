"""ReverseSequence below opset 10: the same steps of each sequence in the same places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import converts, converts_from_9, one_node


@pytest.mark.parametrize("time_axis", [0, 1])
@pytest.mark.parametrize("rest", [(), (3,), (2, 3)])
@pytest.mark.parametrize("known", [True, False])
def test_reverse_sequence_of_each_length(
    time_axis: int, rest: tuple[int, ...], known: bool
) -> None:
    def inputs(steps: int, lengths: list[int]) -> dict[str, Any]:
        shape = (steps, len(lengths)) if time_axis == 0 else (len(lengths), steps)
        x = np.arange(np.prod(shape + rest), dtype=np.float32).reshape(shape + rest)
        return {"x": x, "lengths": np.array(lengths, np.int64)}

    feeds, others = inputs(4, [4, 1, 2, 2, 3]), inputs(2, [2])
    shape = feeds["x"].shape if known else [f"d{n}" for n in range(2 + len(rest))]
    source = one_node(
        "ReverseSequence",
        10,
        feeds,
        shapes={} if known else {"x": shape, "lengths": ["n"]},
        output_shapes=[shape],
        time_axis=time_axis,
        batch_axis=1 - time_axis,
    )
    convert = converts if known else converts_from_9
    for target in (9, 8, 7):
        convert(source, target, *((feeds,) if known else (feeds, others)), exact=True)
        # ONNX Runtime 1.23 leaves what it gives for a sequence of no length unwritten.
        nothing = {**feeds, "lengths": np.array([0, 1, 0, 4, 2], np.int64)}
        convert(source, target, nothing, exact=True, in_numpy=True)
        if not known and rest:
            convert(source, target, {**feeds, "x": feeds["x"][..., :0]})


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.float64])
def test_other_dtypes(dtype: type) -> None:
    feeds = {"x": np.array([[0, 1], [1, 1], [0, 0]]).astype(dtype), "lengths": np.array([3, 2])}
    source = one_node("ReverseSequence", 10, feeds)
    for target in (9, 7):
        converts(source, target, feeds, exact=True)


@pytest.mark.parametrize("time_axis", [0, 1])
def test_an_unknown_rank(time_axis: int) -> None:
    for shape in ((3, 3), (3, 3, 2), (3, 3, 2, 2)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        feeds = {"x": x, "lengths": np.array([3, 1, 2])}
        source = one_node(
            "ReverseSequence",
            10,
            feeds,
            hidden=("x",),
            time_axis=time_axis,
            batch_axis=1 - time_axis,
        )
        for target in (9, 7):
            converts_from_9(source, target, feeds, exact=True)
            if len(shape) > 2:
                empty = {**feeds, "x": x[..., :0]}
                converts_from_9(source, target, empty, exact=True, in_numpy=True)
