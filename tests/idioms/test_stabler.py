"""Operators that are right too where an inner value of what exporters write overflows."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.pairs.attribute_values import AttributeValues
from onnxreduce_cli.engine.pairs.making import PairMaker
from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.verification.compare.outcomes import RunOutcome, Side
from onnxreduce_cli.verification.sites.stabler import excuse_overflows
from tests.idioms.exported import GROUPS, KERAS, MOMENTS, SCORES, SHIFTS, attention
from tests.support import model, op_types, run

pytestmark = pytest.mark.newest

FLAT = {
    "Softplus": "e = Exp(x) a = Add(e, one) y = Log(a)",
    "Mish": "e = Exp(x) a = Add(e, one) s = Log(a) t = Tanh(s) y = Mul(x, t)",
    "ReduceLogSumExp": "e = Exp(x) r = ReduceSum<axes=[-1]>(e) y = Log(r)",
    "Softmax": "e = Exp(x) r = ReduceSum<axes=[-1]>(e) y = Div(e, r)",
    "LogSoftmax": "e = Exp(x) r = ReduceSum<axes=[-1]>(e) d = Div(e, r) y = Log(d)",
}
X = np.array([[1000, 1, 2], [-1000, -1001, -1002], [3, 2, 1]], np.float32)


def flat(op_type: str, dtype: str = "float", opset: int = 11) -> ModelProto:
    """What stands for an operator, over [3, 3]."""
    one = 0x3C00 if dtype == "float16" else 1  # Halves are given by their bits.
    return model(
        f"""<ir_version: 7, opset_import: ["": {opset}]>
        agraph ({dtype}[3, 3] x) => ({dtype}[3, m] y) <{dtype}[1] one = {{{one}}}> {{
          {FLAT[op_type]}
        }}"""
    )


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
@pytest.mark.parametrize("op_type", FLAT)
def test_right_where_the_nodes_overflow(op_type: str, dtype: str) -> None:
    result = onnxreduce_cli.convert(flat(op_type, dtype), 24, contract=["all"])
    assert op_types(result) == [op_type]
    if dtype == "float":
        (value,) = run(result, {"x": X}).values()
        assert np.isfinite(value).all()
        (before,) = run(flat(op_type), {"x": X}).values()
        assert np.isfinite(before).all() == (op_type == "Mish")
        np.testing.assert_allclose(value[2], before[2], rtol=1e-5)


@pytest.mark.parametrize(
    "nodes",
    ["s = Softmax<axis=-1>(x) y = Log(s)", "s = ReduceLogSumExp<axes=[1]>(x) y = Sub(x, s)"],
)
@pytest.mark.parametrize("opset", [11, 13])
def test_logarithms_of_softmax(nodes: str, opset: int) -> None:
    source = model(
        f"""<ir_version: 7, opset_import: ["": {opset}]>
        agraph (float[3, 3] x) => (float[3, 3] y) {{ {nodes} }}"""
    )
    result = onnxreduce_cli.convert(source, 13, contract=["LogSoftmax"])
    assert op_types(result) == ["LogSoftmax"]


def test_a_softmax_over_several_dimensions_stays() -> None:
    source = model(
        """<ir_version: 7, opset_import: ["": 11]>
        agraph (float[3, 3, 3] x) => (float[3, 3, 3] y) { s = Softmax<axis=1>(x) y = Log(s) }"""
    )
    result = onnxreduce_cli.convert(source, 13, contract=["LogSoftmax"])
    assert "LogSoftmax" not in op_types(result)


def test_a_softmax_over_all_dimensions_stays() -> None:
    source = model(
        """<ir_version: 7, opset_import: ["": 11]>
        agraph (float[3, 3] x) => (float[3, 3] y) { e = Exp(x) s = ReduceSum(e) y = Div(e, s) }"""
    )
    assert "Softmax" not in op_types(onnxreduce_cli.convert(source, 13, contract=["all"]))


def test_the_plan_says_so() -> None:
    (change,) = onnxreduce_cli.plan(flat("Softplus"), 13, contract=["all"]).changes
    assert change.summary.endswith("also right where the original overflowed")


@pytest.mark.parametrize(
    ("source", "stabler"),
    [
        (KERAS.format(opset=13, shift=SHIFTS[0]), True),
        (
            KERAS.format(opset=13, shift=SHIFTS[1])
            .replace("t, 4]", "3, t]")
            .replace("[1, 1, 4] s = {1, 2, 3, 4}", "[1, 3, 1] s = {1, 2, 3}")
            .replace("[1, 1, 4] t0 = {4, 3, 2, 1}", "[1, 3, 1] t0 = {4, 3, 2}"),
            True,
        ),
        (attention(SCORES["divided"]), True),
        (MOMENTS, False),
        (GROUPS, False),
    ],
)
def test_which_are_also_right_where_the_nodes_are_not(source: str, stabler: bool) -> None:
    changes = onnxreduce_cli.plan(model(source), 24, contract=["all"]).changes
    (summary,) = [change.summary for change in changes if change.absorbed]
    assert summary.endswith("also right where the original overflowed") == stabler


def test_other_numbers_where_nothing_overflows_fail() -> None:
    conversion = Conversion(flat("Softplus"), 13, Options(contract=["Softplus"]))
    conversion.sites[0].result[0].op_type = "Relu"  # The same for large and for small x.
    assert check_sites(conversion).failures


def _pair() -> Pair:
    conversion = Conversion(flat("Softplus"), 13, Options(contract=["all"]))
    values = AttributeValues(conversion.facts, {})
    return PairMaker(conversion).pair(conversion.sites[0], values)


def _judged(x: float, before: float, after: float) -> float:
    """What a Softplus of `x` counts as that gave `after`, where its nodes gave `before`."""
    pair = _pair()
    (given,), (name,) = (
        [v.name for v in side] for side in (pair.reference.graph.input, pair.reference.graph.output)
    )
    outcomes = {
        (side, "numpy"): RunOutcome({name: np.array([[value]], np.float32)})
        for side, value in zip(Side, (before, after), strict=True)
    }
    found = excuse_overflows(pair, {given: np.array([[x]], np.float32)}, outcomes)
    values = found[Side.CANDIDATE, "numpy"].values
    assert values is not None
    return float(values[name][0, 0])


def test_only_what_is_no_further_from_a_run_in_double_counts_as_the_same() -> None:
    assert _judged(100, np.inf, 100) == np.inf  # It overflowed: 100 is right.
    assert _judged(100, 99, 98) == 98  # It would be further off than the nodes were.
    assert _judged(10, 9, 10.00005) != 9  # Nothing overflows: both must agree.
    assert np.isnan(_judged(100, 100, np.nan))


def test_sites_that_differ_in_absorbed_nodes_alone_are_each_checked() -> None:
    source = model(
        """<ir_version: 7, opset_import: ["": 13]>
        agraph (float[3] x) => (float[3] y, float[3] z) <float one = {1}> {
          p = Softplus(x) u = Tanh(p) y = Mul(x, u)
          e = Exp(x) a = Add(e, one) s = Log(a) t = Tanh(s) z = Mul(x, t)
        }"""
    )
    report = check_sites(Conversion(source, 18, Options(contract=["Mish"])))
    assert report.sites == report.distinct == 2
