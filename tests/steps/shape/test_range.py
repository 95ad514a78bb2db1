"""Range across opset 27."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, one_node


@pytest.mark.parametrize("stash", [1, 11])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
@pytest.mark.newest
def test_range_in_float(dtype, stash):
    inputs = {k: np.array(v, dtype) for k, v in (("a", 0), ("b", 9), ("c", 2))}
    source = one_node("Range", 27, inputs, output_shapes=[[None]], stash_type=stash)
    converts(source, 26, inputs)
    converts(source, 10, inputs)


@pytest.mark.newest
def test_range_in_float_blocked():
    inputs = {k: np.array(v, np.float16) for k, v in (("a", 0), ("b", 9), ("c", 2))}
    source = one_node("Range", 27, inputs, output_shapes=[[None]], stash_type=10)
    (blocker,) = blockers(source, 26)
    assert "nothing says how to count in that" in str(blocker)
