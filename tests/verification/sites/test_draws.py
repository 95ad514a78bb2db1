"""Inputs of sites: which are valid for the node."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.verification.running.runtime import NumpyRunner
from onnxreduce_cli.verification.sites.draws import fit_integers, windows_hold_elements
from tests.support import model


def pool(data: str, attributes: str) -> ModelProto:
    """A pool of 6 elements that are an initializer, computed, or given."""
    given = "float[1,1,6] c" if data == "given" else ""
    constant = "" if data == "given" else "<float[1,1,6] c = {1, -2, 3, -4, 5, -6}>"
    made = "d = Neg(c)" if data == "computed" else "d = Identity(c)"
    return model(
        f'<ir_version: 9, opset_import: ["": 19]> g ({given}) => (float[1,1,N] y) {constant}'
        f"{{ {made} y = AveragePool<{attributes}>(d) }}"
    )


@pytest.mark.parametrize("data", ["constant", "computed", "given"])
@pytest.mark.parametrize(
    ("attributes", "holds"),
    [
        ("kernel_shape = [2], strides = [2]", True),
        ("kernel_shape = [2], pads = [1, 1]", True),
        # The first window holds pads alone.
        ("kernel_shape = [2], pads = [2, 0]", False),
        # There is no window.
        ("kernel_shape = [7]", False),
    ],
)
def test_windows_hold_elements(data: str, attributes: str, holds: bool) -> None:
    before = pool(data, attributes)
    pair = Pair(before, before, moved=False, full=True, promised={}, sizes={})
    feeds = {"c": np.full((1, 1, 6), -1, np.float32)} if data == "given" else {}
    assert windows_hold_elements(pair, feeds, NumpyRunner(before)) is holds


@pytest.mark.parametrize(
    ("opset", "target", "text"),
    [
        (14, 11, "g () => (int8[1,1,2] y) <int8[1,1,6] c = {1,-2,3,-4,5,6}> "
         "{ y = MaxPool<kernel_shape = [3], strides = [3]>(c) }"),
        (19, 18, "g () => (float[1,1,2] y) <float[1,1,6] c = {1,2,3,4,5,6}> "
         "{ y = AveragePool<kernel_shape = [3], dilations = [2]>(c) }"),
        (19, 9, "g () => (float[1,1,N] y) "
         "{ c = Constant<value = float[1,1,6] {1,2,3,4,5,6}>() "
         "y = AveragePool<kernel_shape = [3], ceil_mode = 1, strides = [2]>(c) }"),
    ],
)  # fmt: skip
def test_pools_of_constants_are_checked(opset: int, target: int, text: str) -> None:
    found = model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')
    report = check_sites(Conversion(found, target, Options(emulate=True)))
    assert report.ok
    assert report.checked == report.distinct


@pytest.mark.parametrize("constant", ["", "<int32[3] b = {4, 5, 6}>"])
def test_powers_of_integers_fit_them(constant: str) -> None:
    given = "int32[3] a" + ("" if constant else ", int32[3] b")
    before = model(
        f'<ir_version: 8, opset_import: ["": 15]> g ({given}) => (int32[3] y) {constant}'
        "{ y = Pow(a, b) }"
    )
    pair = Pair(before, before, moved=True, full=True, promised={}, sizes={})
    feeds = {"a": np.array([87, -45, 12], np.int32)}
    if not constant:
        feeds["b"] = np.array([9, -3, 40], np.int32)
    fit_integers(pair, feeds)
    exponents = feeds.get("b", np.array([4, 5, 6]))
    assert np.all(np.abs(np.power(feeds["a"].astype(float), exponents)) < 2**31)
    assert feeds["a"].any()
    assert feeds["a"].dtype == np.int32


@pytest.mark.parametrize(
    ("opset", "target", "text", "reason"),
    [
        (13, 9, "g () => (int64[2] y) <int64[2] x = {0, 0}, double p = {-0.5}> { y = Pow(x, p) }",
         "no inputs were found"),
        (11, 8, "g (uint8[N] x) => (uint8[N] y) { y = Erf(x) }", "no inputs were found"),
        (26, 28, "g () => (int64[1] y) <int64[1] x = {-1}> { y = ReduceLogSum(x) }",
         "no inputs were found"),
        (26, 28, "g (int64[N] x) => (int64[1] y) { y = ReduceLogSum(x) }", ""),
        (18, 11, "g (float[1,5,N] x, int64[2] s) => (float[A,B,C,D] y) <int64[2] k = {1, 5}>"
         "{ y = Col2Im(x, s, k) }", ""),
    ],
)  # fmt: skip
@pytest.mark.newest
def test_what_integers_cannot_hold_is_not_drawn(
    opset: int, target: int, text: str, reason: str
) -> None:
    found = model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')
    report = check_sites(Conversion(found, target, Options(emulate=True)))
    assert report.ok, report.failures
    assert [reason in item.reason for item in report.unchecked] == [True] * bool(reason)
