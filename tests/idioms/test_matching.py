"""Numbers that constants of a model must be, to stand for those of an idiom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxreduce_cli.idioms import matching


@pytest.mark.parametrize(
    ("constant", "expected", "same"),
    [
        (np.array(2), 2.0, True),
        (np.array(3), 2.0, False),
        (np.array([1]), 2.0, False),
        (np.float32(np.sqrt(2)), float(np.sqrt(2)), True),
        (np.float32(1.4143), float(np.sqrt(2)), False),
        (np.float16(0.7978), 0.7978845608, True),
        (np.float64(np.float32(0.7978845608) + 1e-4), 0.7978845608, False),
    ],
)
def test_a_constant_is_a_number_as_its_dtype_can_hold_it(
    constant: Any, expected: float, same: bool
) -> None:
    assert matching._is(np.asarray(constant), expected) is same
