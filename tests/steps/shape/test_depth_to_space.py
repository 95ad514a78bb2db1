"""DepthToSpace and SpaceToDepth: the mode."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, converts_or_counts, one_node, op_types

CASES = {"DepthToSpace": (12, 11, 10), "SpaceToDepth": (3, 28, 27)}


def check(op_type, mode):
    channels, opset, target = CASES[op_type]
    x = np.arange(2 * channels * 4 * 6, dtype=np.float32).reshape(2, channels, 4, 6)
    source = one_node(
        op_type,
        opset,
        {"x": x},
        blocksize=2,
        mode=mode,
        shapes={"x": ["n", channels, "h", "w"]},
    )
    result = converts(source, target, {"x": x}, {"x": x[:0]}, {"x": x[:, :, :2]}, exact=True)
    assert ("Gather" in op_types(result)) == (mode == "CRD")
    assert not any(a.name == "mode" for node in result.graph.node for a in node.attribute)
    unknown = one_node(
        op_type, opset, {"x": x}, blocksize=2, mode=mode, shapes={"x": ["n", "c", "h", "w"]}
    )
    for further in (target, 9, 7):
        converts_or_counts(
            unknown, further, {"x": x}, {"x": x[:, : channels // 3 * 2 or 2]}, exact=True
        )


@pytest.mark.parametrize("mode", ["CRD", "DCR"])
def test_channels_ordered_before(mode):
    check("DepthToSpace", mode)


@pytest.mark.parametrize("mode", ["CRD", "DCR"])
@pytest.mark.newest
def test_channels_ordered_after(mode):
    check("SpaceToDepth", mode)


@pytest.mark.newest
def test_channels_that_fill_no_block() -> None:
    x = np.zeros((1, 8, 2, 3), np.float32)
    source = one_node("DepthToSpace", 28, {"x": x}, blocksize=7, mode="CRD")
    (blocker,) = blockers(source, 8)
    assert blocker.reason == "its 8 channels are no multiple of 49, its blocksize squared"
