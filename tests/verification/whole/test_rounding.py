"""Differences of deep and ill-conditioned models are judged against a run in double."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from onnxreduce_cli.report.verify import verify_text
from onnxreduce_cli.verification.compare.in_double import NotInDoubleError, in_double
from onnxreduce_cli.verification.compare.outcomes import Side
from onnxreduce_cli.verification.compare.values import Tolerance
from onnxreduce_cli.verification.running.isolated import IsolatedRunner, open_isolated
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.equivalence import verify
from onnxreduce_cli.verification.whole.rounding import Rounding
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
    said = verify_text(report)
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
    "a sequence": "a = Mul(x, d) \n s = SequenceConstruct(a, x) \n i = Constant<value_int = 0>() "
    "t = SequenceAt(s, i) \n y = Mul(t, large)",
    "a sequence of parts": "s = SplitToSequence<axis = 1>(x) \n "
    "t = ConcatFromSequence<axis = 1>(s) \n y = Mul(t, d)",
    "weights in the graph": "w = Constant<value = float[4] {1, 2, 3, 4}> () \n y = Mul(x, w)",
}


@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize("noise", [False, True])
def test_lifted(what: str, noise: bool) -> None:
    found = ModelSource(source(BODIES[what]), "m")
    x = np.linspace(-1, 2, 8).reshape(2, 4)
    expected = open_isolated(found, "numpy").run({"x": x.astype(np.float32)}, ["y"])["y"]
    wide = in_double(found, noise=noise)
    assert wide.outputs["y"].tensor_type.elem_type == TensorProto.DOUBLE
    y = open_isolated(wide, "numpy").run({"x": x}, ["y"])["y"]
    assert y.dtype == np.float64
    assert np.allclose(y, expected, rtol=2e-3 if what == "in half" else 1e-6)
    if what == "in half":
        assert np.array_equal(y, y.astype(np.float16))


def test_lifted_rounds_no_more_and_noise_moves_each_element() -> None:
    found = ModelSource(source(FIRST), "m")
    x = np.full((2, 4), 1 / 3)
    y, moved = (
        open_isolated(in_double(found, noise=noise), "numpy").run({"x": x}, ["y"])["y"]
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
    with pytest.raises(NotInDoubleError, match="'t' is not known"):
        in_double(ModelSource(found, "m"))


def explains(found: ModelProto, feeds: dict[str, Any], values: list[Any], name: str = "y") -> bool:
    """Whether rounding explains that a model and itself give these values."""
    sources = dict.fromkeys(Side, ModelSource(found, "m"))
    return Rounding(sources, [feeds]).explains(0, name, values, set(Side), Tolerance())


X = np.float32([[1, 2, 3, 4]])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([X + np.float32(0.1), X + np.float32(0.1001)], True),
        ([X + np.float32(0.1), X + np.float32(0.2)], False),
        ([X + np.float32(0.1), np.float64(X) + 0.1], False),
        ([X.astype(np.int64), X.astype(np.int64) + 1], False),
        ([[X], [X]], False),
    ],
    ids=["near", "far", "another dtype", "integers", "sequences"],
)
def test_what_rounding_explains(values: list[Any], expected: bool) -> None:
    assert explains(source(FIRST), {"x": X}, values) == expected


def test_a_tolerance_that_is_stated_is_the_last_word() -> None:
    sources = dict.fromkeys(Side, ModelSource(source(FIRST), "m"))
    values = [X + np.float32(0.1), X + np.float32(0.1001)]
    for tolerance in (Tolerance(exact=True), Tolerance(rtol=1), Tolerance(atol=1)):
        assert not Rounding(sources, [{"x": X}]).explains(0, "y", values, set(Side), tolerance)


def test_nothing_is_explained_where_nothing_can_be_run_in_double() -> None:
    """Nor where a shape follows from what rounding moves."""
    y = X + np.float32(0.1)
    custom = model(
        '<ir_version: 8, opset_import: ["": 18, "own": 1]>'
        "g (float[N,4] x) => (float[N,4] y) { t = own.f(x)  y = Cast<to = 1>(t) }"
    )
    assert not explains(custom, {"x": X}, [y, y])
    # A default that is overridden; a run that fails; a value that there is none of.
    assert not explains(source(FIRST), {"x": X, "large": np.float32(2)}, [y, y])
    assert not explains(source("y = Concat<axis = 0>(x, x)  z = Add(x, d)"), {"x": X[0, 0]}, [y, y])
    assert not explains(source(FIRST), {"x": X}, [y, y], "other")
    shaped = model(
        HEAD + "g (float[1,4] x) => (float[N] y) <float tenth = {0.1}> "
        "{ t = Mul(x, tenth)  u = Div(t, tenth)  v = Sub(u, x)  i = NonZero(v)"
        "  j = Transpose<perm = [1, 0]>(i)  y = GatherND(x, j) }"
    )
    assert not explains(shaped, {"x": X}, [X[0, :1], X[0, :2]])


def test_sequences_of_floats_are_doubles_too() -> None:
    found = model(
        HEAD + "g (seq(float[4]) s) => (float[N] y) { y = ConcatFromSequence<axis = 0>(s) }"
    )
    values = [X[0], X[0] * np.float32(1 + 1e-6)]
    assert explains(found, {"s": [X[0]]}, values)
    rounding = Rounding(dict.fromkeys(Side, ModelSource(found, "m")), [{"s": [X[0]]}])
    assert rounding.explains(0, "y", values, set(Side), Tolerance())
    assert 0 < rounding.distance(0, "y", values[1]) < 1e-4
    assert rounding.distance(0, "y", values[0]) == 0
