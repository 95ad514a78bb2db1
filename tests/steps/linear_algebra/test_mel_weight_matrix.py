"""MelWeightMatrix below opset 17."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts_or_counts, one_node, op_types

NAMES = ("bins", "length", "rate", "low", "high")


@pytest.mark.parametrize("values", [
    (8, 16, 8192, 0.0, 4096.0),
    (5, 64, 16000, 125.5, 3800.0),
    (40, 33, 8000, 20.0, 3500.0),
])  # fmt: skip
def test_mel_weight_matrix(values: tuple[float, ...]) -> None:
    feeds = {
        name: np.array(value, np.float32 if index > 2 else np.int64)
        for index, (name, value) in enumerate(zip(NAMES, values, strict=True))
    }
    shape = [[None, None]]
    for known, to in ((NAMES, 1), (NAMES[:2], 11), ((), 1), ((), 6)):
        source = one_node(
            "MelWeightMatrix",
            17,
            feeds,
            initializers=known,
            output_shapes=shape,
            output_datatype=to,
        )
        for target in (16, 8):
            result = converts_or_counts(source, target, feeds, in_numpy=to == 6)
            if known == NAMES:
                assert op_types(result) == ["Identity"]
