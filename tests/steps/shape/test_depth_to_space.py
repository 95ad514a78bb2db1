"""DepthToSpace and SpaceToDepth: the mode."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node, op_types

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
        converts(unknown, further, {"x": x}, {"x": x[:, : channels // 3 * 2 or 2]}, exact=True)


@pytest.mark.parametrize("mode", ["CRD", "DCR"])
def test_channels_ordered_before(mode):
    check("DepthToSpace", mode)


@pytest.mark.parametrize("mode", ["CRD", "DCR"])
@pytest.mark.newest
def test_channels_ordered_after(mode):
    check("SpaceToDepth", mode)
