"""Mod below opset 28, and of integers below opset 10."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli import convert
from tests.support import (
    converts,
    one_node,
    op_types,
    run,
)


@pytest.mark.parametrize("fmod", [0, 1])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64])
def test_mod(fmod: int, dtype: type) -> None:
    limits = np.iinfo(dtype)
    a = np.array([7, 6, 0, 5, limits.max, limits.min, limits.min + 1, 9], dtype)
    b = np.array([3, 3, 4, 7, 10, 7, 3, 2], dtype)
    if fmod and dtype in (np.int64, np.uint64):
        # ONNX Runtime goes through double there.
        a = a % np.array(2**40, dtype)
    sets = [{"a": a, "b": b}]
    if limits.min < 0:
        sets += [{"a": a, "b": -b}, {"a": -a[:-3], "b": b[:-3]}]
    for inputs in sets:
        for initializers in ((), ("b",)):
            source = one_node("Mod", 10, inputs, fmod=fmod, initializers=initializers)
            converts(source, 9, inputs)


def test_mod_of_lowest_and_minus_one() -> None:
    inputs = {"a": np.array([-(2**63), 5]), "b": np.array([-1, -1])}
    found = convert(one_node("Mod", 10, inputs), 9)
    assert run(found, inputs)["y0"].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.newest
def test_floor_of_floats(dtype):
    values = np.array([0.0, -0.0, 1.5, -1.5, 7, -7, np.inf, -np.inf, np.nan, 0.1], dtype)
    a, b = (part.reshape(-1) for part in np.meshgrid(values, values))
    inputs = {"a": a, "b": b}
    low = converts(one_node("Mod", 28, inputs), 13, inputs)
    assert "Where" in op_types(low)


@pytest.mark.newest
def test_floor_of_floats_leaves_integers():
    inputs = {"a": np.array([7, -7], np.int32), "b": np.array([3, 3], np.int32)}
    for fmod in (0, 1):
        low = converts(one_node("Mod", 28, inputs, fmod=fmod), 13, inputs)
        assert op_types(low) == ["Mod"]
