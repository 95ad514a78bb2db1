"""MaxUnpool below opset 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from tests.support import blockers, converts, converts_or_counts, one_node

RANDOM = np.random.default_rng(18)


def unpool(*dims: int, **more: Any) -> tuple[ModelProto, dict[str, np.ndarray]]:
    x = RANDOM.standard_normal(dims).astype(np.float32)
    size = int(np.prod(dims[:2])) * int(np.prod([2 * dim for dim in dims[2:]]))
    indices = RANDOM.permutation(size)[: x.size].reshape(dims)
    inputs = {"x": x, "indices": indices, **more.pop("inputs", {})}
    options = {"kernel_shape": [2] * (len(dims) - 2), "strides": [2] * (len(dims) - 2)}
    return one_node("MaxUnpool", 11, inputs, **options, **more), inputs


@pytest.mark.parametrize("target", [8, 7])
@pytest.mark.parametrize("known", [True, False])
def test_max_unpool(target, known):
    for dims in ((2, 3, 4, 3), (1, 1, 3)):
        unknown = {} if known else {"x": [None] * len(dims), "indices": [None] * len(dims)}
        source, inputs = unpool(*dims, shapes=unknown, output_shapes=[[None] * len(dims)])
        converts_or_counts(source, target, inputs, exact=True)


@pytest.mark.parametrize("target", [8, 7])
@pytest.mark.parametrize("known", [True, False])
def test_max_unpool_of_size_0(target, known):
    for dims in ((0, 3, 2, 2), (2, 0, 2, 2)):
        unknown = {} if known else {"x": ["a", "b", "c", "d"], "indices": ["a", "b", "c", "d"]}
        source, inputs = unpool(*dims, shapes=unknown, output_shapes=[[None] * 4])
        converts_or_counts(source, target, inputs, in_numpy=True)


def test_max_unpool_to_a_shape():
    wanted = np.array([1, 1, 6, 8])
    more = {"initializers": ("wanted",), "output_shapes": [[None] * 4]}
    more["inputs"] = {"wanted": wanted}
    source, inputs = unpool(1, 1, 3, 4, **more)
    converts(source, 8, inputs, exact=True)
    more["inputs"] = {"wanted": wanted + 1}
    source, _ = unpool(1, 1, 3, 4, **more)
    (blocker,) = blockers(source, 8)
    assert (
        "where they differ the definition's own test counts indices in one of them"
        in blocker.reason
    )
