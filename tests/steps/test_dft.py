"""DFT across its boundary."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, one_node

X = np.random.default_rng(2).standard_normal((2, 4, 6, 1)).astype(np.float32)


@pytest.mark.parametrize("axis", [None, 1, 2, -2, -3])
def test_axis_up(axis: int | None) -> None:
    given = {} if axis is None else {"axis": axis}
    source = one_node("DFT", 17, {"x": X}, **given)
    newer = converts(source, 20, {"x": X})
    assert len(newer.graph.node[0].input) == 3
    converts(newer, 19, {"x": X})


def test_default_axis_down() -> None:
    for onesided in (0, 1):
        source = one_node("DFT", 20, {"x": X}, onesided=onesided)
        older = converts(source, 19, {"x": X})
        assert next(a.i for a in older.graph.node[0].attribute if a.name == "axis") == -2


def test_length_stays() -> None:
    feeds = {"x": X, "length": np.array(3), "axis": np.array(1)}
    source = one_node("DFT", 20, feeds, initializers=("length", "axis"))
    converts(source, 17, {"x": X})


def test_computed_axis() -> None:
    feeds = {"x": X, "length": None, "axis": np.array(1)}
    source = one_node("DFT", 20, feeds, output_shapes=[[None] * 4])
    (blocker,) = blockers(source, 19)
    assert "only known at run time" in blocker.reason
