"""Differences of deep and ill-conditioned models are judged against a run in double."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from onnxreduce_cli.report.verify import as_text
from onnxreduce_cli.verification import Tolerance, verify
from onnxreduce_cli.verification.doubles import CannotLiftError, lifted
from onnxreduce_cli.verification.isolated import IsolatedRunner, open_isolated
from onnxreduce_cli.verification.source import Source
from tests.support import model

HEAD = '<ir_version: 8, opset_import: ["": 18]>'


def source(body: str) -> ModelProto:
    return model(
        HEAD + "g (float[N,4] x) => (float[N,4] y) <float large = {1e4}, float d = {0.1}, "
        "float e = {0.11}> {" + body + "}"
    )


FIRST = "t = Add(x, large) \n u = Add(t, d) \n y = Sub(u, large)"
SECOND = "t = Add(x, d) \n u = Add(t, large) \n y = Sub(u, large)"


def test_models_that_agree_in_double_differ_by_rounding_alone() -> None:
    report = verify(source(FIRST), source(SECOND))
    differing = [found for found in report.comparisons if not found.errors.agree]
    assert {found.explained for found in differing} == {"rounding"}
    assert report.exit_code == 0
    said = as_text(report)
    assert "a in ONNX Runtime" in said
    assert "differ in output 'y' by rounding alone, for which neither model is at fault" in said
    assert report.divergence is None
    # A tolerance that is stated is the last word.
    assert verify(source(FIRST), source(SECOND), tolerance=Tolerance(rtol=1e-4)).exit_code == 1
    assert verify(source(FIRST), source(SECOND), tolerance=Tolerance(exact=True)).exit_code == 1


def test_what_rounding_does_to_several_outputs_is_told_once() -> None:
    """With the largest distances of each."""
    head = HEAD + "g (float[N,4] x) => (float[N,4] y, float[N,4] z) <float large = {1e4}, "
    first, second = (
        model(head + "float d = {0.1}> {" + body + "\n z = Mul(y, large) }")
        for body in (FIRST, SECOND)
    )
    report = verify(first, second, executors=["numpy"])
    (said,) = report.remarks
    assert said.startswith("a in NumPy and b in NumPy differ in outputs 'y', 'z' by rounding")
    far = [float(number) for number in re.findall(r"[0-9.e-]+(?= (?:and|off))", said)]
    assert min(far) > 1
    assert report.exit_code == 0


def test_a_difference_that_double_has_too_is_real() -> None:
    """It is not much larger than rounding is."""
    assert verify(source(FIRST), source(SECOND.replace("d)", "e)"))).exit_code == 1


def test_what_fails_in_float_alone_is_no_rounding() -> None:
    """The logarithm of a sum of exponentials, without the largest taken off first."""
    graph = "g (float[N,4] x) => (float[N,1] y) {"
    first = model(HEAD + graph + "y = ReduceLogSumExp(x) }")
    second = model(HEAD + graph + "t = Exp(x) \n u = ReduceSum(t) \n y = Log(u) }")
    report = verify(first, second, executors=["numpy"])
    assert report.exit_code == 1


def test_executors_that_round_differently_are_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    normalised = model(
        HEAD
        + "g (float[1,2,8] x) => (float[1,2,8] y) <float[2] one = {1,1}, float[2] zero = {0,0}, "
        "float c = {3.3}> { t = Add(x, c) \n y = InstanceNormalization(t, one, zero) }"
    )
    inputs = {"x": np.zeros((1, 2, 8), np.float32)}
    for amount, code in ((2e-4, 0), (1e-2, 1)):
        with monkeypatch.context() as patch:
            _deviating(patch, amount)
            report = verify(normalised, inputs=inputs)
        assert report.exit_code == code
        assert not report.comparisons[0].errors.agree
        assert bool(report.disagreements) == bool(code)


def _deviating(monkeypatch: pytest.MonkeyPatch, amount: float) -> None:
    """Let ONNX Runtime's outputs be off by an amount."""
    real = IsolatedRunner.run

    def deviating(self: Any, feeds: Any, names: Any) -> Any:
        moved = amount if self.executor == "onnxruntime" else 0
        return {k: v + np.float32(moved) for k, v in real(self, feeds, names).items()}

    monkeypatch.setattr(IsolatedRunner, "run", deviating)


BODIES = {
    "an If": "b = ReduceSum<keepdims = 0>(x) \n c = Greater(b, d) \n y = If (c) "
    "<then_branch = t () => (float[N,4] p) "
    "{ q = Constant<value_float = 0.1> () \n p = Add(x, q) }, "
    "else_branch = f () => (float[N,4] r) { r = Mul(x, d) }>",
    "quantized": "z = Constant<value = uint8 {7}> () \n q = QuantizeLinear(x, d, z) \n "
    "y = DequantizeLinear(q, d, z)",
    "in half": "h = Cast<to = 10>(x) \n i = Exp(h) \n y = Cast<to = 1>(i)",
    "a Resize": "s = Constant<value_floats = [1.0, 1.0]> () \n y = Resize(x, , s)",
    "weights in the graph": "w = Constant<value = float[4] {1, 2, 3, 4}> () \n y = Mul(x, w)",
}


@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize("noise", [False, True])
def test_lifted(what: str, noise: bool) -> None:
    found = Source(source(BODIES[what]), "m")
    x = np.linspace(-1, 2, 8).reshape(2, 4)
    expected = open_isolated(found, "numpy").run({"x": x.astype(np.float32)}, ["y"])["y"]
    wide = lifted(found, noise=noise)
    assert wide.outputs["y"].tensor_type.elem_type == TensorProto.DOUBLE
    y = open_isolated(wide, "numpy").run({"x": x}, ["y"])["y"]
    assert y.dtype == np.float64
    assert np.allclose(y, expected, rtol=2e-3 if what == "in half" else 1e-6)
    if what == "in half":
        assert np.array_equal(y, y.astype(np.float16))


def test_lifted_rounds_no_more_and_noise_moves_each_element() -> None:
    found = Source(source(FIRST), "m")
    x = np.full((2, 4), 1 / 3)
    y, moved = (
        open_isolated(lifted(found, noise=noise), "numpy").run({"x": x}, ["y"])["y"]
        for noise in (False, True)
    )
    assert np.abs(y - x - np.float64(np.float32(0.1))).max() < 1e-11
    apart = np.abs(moved - y)
    assert 1e-5 < apart.max() < 1e4 * 2.0**-21
    assert len(np.unique(apart)) == 8


def test_a_custom_operator_has_no_counterpart_in_double() -> None:
    found = model(
        '<ir_version: 8, opset_import: ["": 18, "own": 1]>'
        "g (float[N] x) => (float[N] y) { t = own.f(x) \n y = Cast<to = 1>(t) }"
    )
    with pytest.raises(CannotLiftError, match="'t' is not known"):
        lifted(Source(found, "m"))
