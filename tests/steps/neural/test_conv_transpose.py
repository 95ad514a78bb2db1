"""ConvTranspose across its boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onnxreduce_cli
from tests.support import converts, one_node

RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("options", "remark"),
    [
        ({"pads": [0, 1, 1, 0]}, False),
        ({"output_shape": [10, 10]}, True),
        ({"output_shape": [11, 11]}, False),
        ({"auto_pad": "SAME_UPPER"}, True),
        ({"auto_pad": "SAME_LOWER"}, True),
        ({"auto_pad": "SAME_LOWER", "strides": [1, 1]}, False),
    ],
)
def test_conv_transpose(options: dict[str, Any], remark: bool) -> None:
    feeds = {"x": normal(1, 2, 5, 5), "w": normal(2, 3, 3, 3)}
    options = {"strides": [2, 2], **options}
    for here, there in ((10, 11), (11, 10), (22, 9)):
        source = one_node("ConvTranspose", here, feeds, initializers=("w",), **options)
        converts(source, there, feeds, exact=True)
        warnings = [
            text for item in onnxreduce_cli.plan(source, there).changes for text in item.warnings
        ]
        assert any("odd" in text for text in warnings) == remark


def test_conv_transpose_of_unknown_size() -> None:
    feeds = {"x": normal(1, 2, 5, 5), "w": normal(2, 3, 3, 3)}
    source = one_node(
        "ConvTranspose", 11, feeds, shapes={"x": [1, 2, "h", "w"]}, auto_pad="SAME_UPPER"
    )
    converts(source, 10, feeds, exact=True)
    assert onnxreduce_cli.plan(source, 10).changes[0].warnings
