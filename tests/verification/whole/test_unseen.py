"""Warnings of what no trial shows: idle weights, branches never taken, outputs that stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, numpy_helper

from onnxreduce_cli.report.verify import verify_text
from onnxreduce_cli.verification.whole.equivalence import verify
from tests.support import model

HEAD = '<ir_version: 8, opset_import: ["": 18, "local": 1]>'
WEIGHTS = {
    "W": np.arange(-6, 6, dtype=np.float32).reshape(3, 4) / 7,
    "b": np.array([1, 2, 3, 4], np.float32),
    "low": np.full(4, -9e9, np.float32),
    "Q": np.arange(-6, 6, dtype=np.int8).reshape(3, 4),
    "scale": np.array(0.5, np.float32),
}
DEAD = "g (float[N,3] x) => (float[N,4] y) { a = MatMul (x, W) s = Add (a, low) r = Relu (s) "
BRANCHES = (
    "<then_branch = t () => (float[N,4] p) { p = Abs (x) }, "
    "else_branch = e () => (float[N,4] q) { q = Neg (x) }>"
)


def weighted(text: str, ir_version: int = 8) -> ModelProto:
    """A model with all the weights; before IR version 4 they are inputs too."""
    found = onnx.parser.parse_model(HEAD + text)
    found.ir_version = ir_version
    for name, array in WEIGHTS.items():
        found.graph.initializer.append(numpy_helper.from_array(array, name))
        if ir_version < 4:
            number = helper.np_dtype_to_tensor_dtype(array.dtype)
            found.graph.input.append(helper.make_tensor_value_info(name, number, array.shape))
    return found


def warnings(found: ModelProto) -> list[str]:
    """The warnings, which are those of the model beside itself."""
    report = verify(found)
    assert report.exit_code == 0
    assert verify(found, found).warnings == report.warnings
    return list(report.warnings)


@pytest.mark.parametrize("ir_version", [3, 8])
def test_weights_behind_a_dead_relu_are_named(ir_version: int) -> None:
    found = weighted(DEAD + "t = Mul (r, b) y = Sum (t, a) }", ir_version)
    text = "no output depends on weights 'b', 'low' in any trial: a difference there is not seen"
    assert warnings(found) == [text]
    assert verify_text(verify(found)).endswith(f"\nwarning: {text}")


def test_one_weight_of_small_integers() -> None:
    found = weighted(
        DEAD + "d = DequantizeLinear (Q, scale) t = Transpose (d) m = MatMul (r, t) z = Abs (m) "
        "u = MatMul (z, d) y = Sub (a, u) }"
    )
    assert warnings(found) == [
        "no output depends on weights 'low', 'Q' in any trial: a difference there is not seen"
    ]


@pytest.mark.parametrize(
    "body",
    [
        "y = MatMul (x, W)",
        "a = MatMul (x, W) s = Shape (low) y = Expand (a, s)",  # Only its shape is used.
        "d = DequantizeLinear (Q, scale) y = MatMul (x, d)",
        "a = MatMul (x, W) y = Max (a, b)",
    ],
)
def test_weights_that_matter_and_unused_ones_need_no_warning(body: str) -> None:
    assert not warnings(weighted(f"g (float[N,3] x) => (float[N,4] y) {{ {body} }}"))


def test_weights_of_a_large_model_are_not_tried() -> None:
    found = weighted(DEAD + "t = Mul (r, b) y = Sum (t, a, v) v = Gather (large, zero) }")
    found.graph.node.insert(0, found.graph.node.pop())
    more = {"large": np.ones((1 << 17, 4), np.float32), "zero": np.array(0)}
    found.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in more.items())
    assert not warnings(found)


def test_a_branch_that_is_never_taken_is_named() -> None:
    found = model(
        HEAD + "g (float[N,4] x) => (float[N,4] y) <int64 ten = {10000}> "
        f"{{ s = Size (x) c = Greater (s, ten) y = If (c) {BRANCHES} }}"
    )
    text = "no trial runs then_branch of 'y': a difference there is not seen"
    assert warnings(found) == [text]
    by_numpy = verify(found, found, executors=["numpy"])
    assert list(by_numpy.warnings) == [text]
    assert not verify(found, found, executors=["onnxruntime"]).warnings


def test_branches_that_are_taken_need_no_warning() -> None:
    for limit in ("int64 ten = {10}", "int64 ten = {3}"):
        found = model(
            HEAD + f"g (float[N,4] x) => (float[N,4] y) <{limit}> {{ s = Shape <end = 1> (x) "
            f"n = Squeeze (s) c = Greater (n, ten) y = If (c) {BRANCHES} }}"
        )
        assert not warnings(found)
    rate = model(
        HEAD + "g (float[N,4] x, int64 rate) => (float[N,4] y) <int64 usual = {16000}> "
        f"{{ c = Equal (rate, usual) y = If (c) {BRANCHES} }}"
    )
    assert not warnings(rate)


def test_the_branch_of_a_constant_condition_needs_no_warning() -> None:
    text = f"g (float[N,4] x) => (float[N,4] y) <bool c = {{1}}> {{ y = If (c) {BRANCHES} }}"
    assert not warnings(model(HEAD + text))


def test_branches_within_a_loop_and_a_function() -> None:
    inner = (
        "big = Constant <value_int = 10000> () m = Size (h) k = Greater (m, big) "
        "r = If (k) <then_branch = t () => (float[N,4] p) { "
        "z = If (k) <then_branch = tt () => (float[N,4] pp) { pp = Abs (h) }, "
        "else_branch = te () => (float[N,4] pq) { pq = Exp (h) }> p = Neg (z) }, "
        "else_branch = e () => (float[N,4] q) { q = Tanh (h) }>"
    )
    loop = (
        "g (float[N,4] x) => (float[N,4] y) { n = Constant <value_int = 2> () "
        "go = Constant <value = bool {1}> () y = Loop (n, go, x) <body = b (int64 i, bool c, "
        f"float[N,4] h) => (bool d, float[N,4] r) {{ d = Identity (c) {inner} }}> }}"
    )
    call = (
        "g (float[N,4] x) => (float[N,4] y) { y = local.f (x) } "
        f'<domain: "local", opset_import: ["": 18]> f (h) => (r) {{ {inner} }}'
    )
    for text in (loop, call):
        assert warnings(onnx.parser.parse_model(HEAD + text)) == [
            "no trial runs then_branch of 'r': a difference there is not seen"
        ]


def test_integers_that_are_the_same_in_all_trials() -> None:
    found = model(
        HEAD + "g (float[3,4] x) => (int64[3] y) <float[4] far = {0, 9e9, 0, -9e9}> "
        "{ t = Tanh (x) s = Add (t, far) k = ArgMax <axis = 1, keepdims = 0> (s) "
        "i = Constant <value_ints = [0, 1, 2]> () y = Add (k, i) }"
    )
    assert len(warnings(found)) == 1
    assert "output 'y' was the same in every trial" in warnings(found)[0]


def test_a_difference_by_nan_is_a_warning_and_counts_with_special() -> None:
    zero = "z = Constant <value_float = 0.0> () "
    first = model(HEAD + f"g (float[N,4] x) => (float[N,4] y) {{ {zero} y = Max (x, z) }}")
    other = model(
        HEAD + f"g (float[N,4] x) => (float[N,4] y) {{ {zero} c = Greater (x, z) "
        "y = Where (c, x, z) }"
    )
    for seed in range(4):
        report = verify(first, other, seed=seed)
        assert report.exit_code == 0
        assert report.warnings == (
            "where inputs hold NaN or infinities, the models differ in 'y': "
            "that counts with --special only",
        )
        assert "unusual" not in [trial.values for trial in report.trials]
        assert verify(first, other, special=True, seed=seed).exit_code == 1
        assert not verify(first, other, trials=3, seed=seed).warnings
        assert not verify(first, first, seed=seed).warnings


def test_models_that_differ_get_no_such_warnings() -> None:
    first = weighted(DEAD + "t = Mul (r, b) y = Sum (t, a) }")
    second = weighted(DEAD + "t = Mul (r, b) y = Sub (t, a) }")
    report = verify(first, second)
    assert report.exit_code == 1
    assert not report.warnings
