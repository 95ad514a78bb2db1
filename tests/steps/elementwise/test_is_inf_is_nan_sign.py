"""IsInf below opset 10, IsNaN and Sign below opset 9."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, one_node

CASES = [
    ("IsNaN", 9, {}, (8, 7)),
    ("IsInf", 10, {}, (9, 8, 7)),
    ("IsInf", 10, {"detect_negative": 0}, (9, 8, 7)),
    ("IsInf", 10, {"detect_positive": 0}, (9, 8, 7)),
    ("IsInf", 10, {"detect_positive": 0, "detect_negative": 0}, (9, 8, 7)),
    ("Sign", 9, {}, (8, 7)),
]


@pytest.mark.parametrize(
    ("op_type", "opset", "attributes", "targets", "dtype"),
    [
        (*case, dtype)
        for case in CASES
        for dtype in (np.float32, np.float64, np.float16)
        if (case[0], dtype) != ("IsInf", np.float16)  # Its first version takes no halves.
    ],
)
def test_is_inf_is_nan_sign(
    op_type: str, opset: int, attributes: dict[str, int], targets: tuple[int, ...], dtype: type
) -> None:
    info = np.finfo(dtype)
    x = np.array([0.0, -0.0, 1e-7, -1e-7, 3, -3, info.max, info.min, np.inf, -np.inf], dtype)
    if op_type != "Sign" or dtype != np.float16:
        # Of a NaN that is a float16, and no other, ONNX Runtime's Sign gives 0.
        x = np.append(x, np.array(np.nan, dtype))
    scalar, empty = np.array(0.7, dtype), np.zeros((2, 0), dtype)
    source = one_node(op_type, opset, {"x": x}, **attributes)
    for target in targets:
        converts(source, target, {"x": x}, {"x": x[::-1]})
    for array in (scalar, empty):
        source = one_node(op_type, opset, {"x": array}, **attributes)
        converts(source, targets[-1], {"x": array})
