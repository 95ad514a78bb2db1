"""Equal, Greater, Less, GreaterOrEqual and LessOrEqual below opsets 19, 12, 11 and 9."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, one_node, op_types

NASTY = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("target", [10, 9])
def test_equal_of_floats(dtype, target):
    x, y = np.meshgrid(NASTY.astype(dtype), NASTY.astype(dtype))
    inputs = {"x": x, "y": y}
    converts(one_node("Equal", 11, inputs), target, inputs, exact=True)


@pytest.mark.parametrize("op_type", ["Less", "Greater"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_less_greater_of_64_bits(op_type, dtype):
    info = np.iinfo(dtype)
    near = [0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**53, 2**53 + 1, info.max, info.max - 1, info.min]
    near += [] if info.min == 0 else [-1, -(2**31), -(2**31) - 1, -(2**53) - 1, info.min + 1]
    x, y = np.meshgrid(np.array(near, dtype), np.array(near, dtype))
    inputs = {"x": x, "y": y}
    converts(one_node(op_type, 9, inputs), 8, inputs, exact=True)
    inputs = {"x": x, "y": y[:, :1] * 0 + dtype(2**31)}
    converts(one_node(op_type, 9, inputs), 7, inputs, exact=True)


TEXTS = np.array([["a", "", "Ab"], ["ab", "a b", "ä"]], object)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (TEXTS, TEXTS[:, ::-1].copy()),
        (TEXTS, np.array("a", object)),
        (TEXTS, np.array([["a"], [""]], object)),
        (np.array("", object), np.array("", object)),
        (TEXTS[:0], TEXTS[:1]),
        (TEXTS[:, :0], np.array("a", object)),
        (TEXTS[:0], TEXTS[:0]),
    ],
)
@pytest.mark.parametrize("shapes", [False, True])
def test_equal_of_strings(x, y, shapes):
    named = {"x": [f"x{i}" for i in range(x.ndim)], "y": [f"y{i}" for i in range(y.ndim)]}
    inputs = {"x": x, "y": y}
    source = one_node("Equal", 19, inputs, shapes=named if shapes else {})
    for target in (18, 13, 11):
        converts(source, target, inputs, exact=True)
    (blocker,) = blockers(source, 10)
    assert "nothing before opset 11 compares strings" in blocker.reason


def test_strings_that_are_constants():
    inputs = {"x": TEXTS, "y": np.array(["a", "b", "Ab"], object)}
    source = one_node("Equal", 19, inputs, initializers=("y",))
    converts(source, 11, inputs, exact=True)
    converts(one_node("Equal", 19, inputs, initializers=("x", "y")), 11, {}, exact=True)


def test_equal_of_uint64():
    values = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2], np.uint64)
    inputs = {"x": values[:, None], "y": values}
    for target in (10, 7, 6, 5):
        converts(one_node("Equal", 11, inputs), target, inputs, exact=True)


@pytest.mark.parametrize("op_type", ["GreaterOrEqual", "LessOrEqual"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.newest
def test_or_equal(op_type: str, dtype: type) -> None:
    values = (
        [1, 0, -1, 3, -7] if dtype in (np.int32, np.int64) else [*NASTY, 1e-20, -1e-7, 0.3, -0.5]
    )
    data = np.array(values, dtype)
    inputs = {"a": data[:, None], "b": data}
    source = one_node(op_type, 12, inputs, output_shapes=[[len(data), len(data)]])
    assert op_types(converts(source, 11, inputs))[-1] in ("Or", "Not")
    if dtype in (np.int32, np.int64):
        converts(source, 9, inputs)
