"""Outputs that prove nothing, and inner values in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from onnxreduce_cli.report.verify import verify_text
from onnxreduce_cli.verification.whole.coverage import void_of
from onnxreduce_cli.verification.whole.equivalence import verify
from tests.support import model

HEAD = '<ir_version: 8, opset_import: ["": 18]>'


ATTENTION = """vit (float[N,3,8,8] image) => (float[N,5] logits)
    <int64[3] flat = {0, 8, -1}, float scale = {0.35}>
{
    p = Conv <strides = [4, 4], kernel_shape = [4, 4]> (image, patch)
    r = Reshape (p, flat)
    t = Transpose <perm = [0, 2, 1]> (r)
    q = MatMul (t, wq)
    k = MatMul (t, wk)
    kt = Transpose <perm = [0, 2, 1]> (k)
    s = MatMul (q, kt)
    n = Mul (s, scale)
    a = Softmax <axis = -1> (n)
    v = MatMul (t, wv)
    o = MatMul (a, v)
    m = ReduceMean <keepdims = 0> (o, one)
    h = MatMul (m, head)
    logits = Add (h, bias)
}"""


def attention(head: float = 0.0) -> ModelProto:
    """A block of attention over patches of an image, and a head of one weight."""
    found = onnx.parser.parse_model(HEAD + ATTENTION)
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((8, 8)) for name in ("wq", "wk", "wv")}
    weights |= {"patch": rng.standard_normal((8, 3, 4, 4)), "head": np.full((8, 5), head)}
    weights["bias"] = np.full(5, head)
    arrays = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()]
    found.graph.initializer.extend([*arrays, numpy_helper.from_array(np.array([1]), "one")])
    onnx.checker.check_model(found, full_check=True)
    return found


def altered(found: ModelProto, name: str) -> ModelProto:
    other = ModelProto()
    other.CopyFrom(found)
    tensor = next(item for item in other.graph.initializer if item.name == name)
    array = numpy_helper.to_array(tensor) * np.float32(1.01)
    tensor.CopyFrom(numpy_helper.from_array(array, name))
    return other


def test_a_head_of_zeros_hides_no_altered_weight() -> None:
    report = verify(attention(), altered(attention(), "wv"))
    assert report.exit_code == 1
    assert report.divergence is not None
    assert report.divergence.value == "v"
    assert verify_text(report).startswith("NOT EQUIVALENT")
    assert "output 'logits' was all 0 in every trial" in report.warnings[0]
    assert "the outputs cover 0 of 14 nodes (0%)" in report.warnings[0]


def test_inner_values_cover_nodes_where_the_output_does_not() -> None:
    report = verify(attention(), attention())
    assert report.exit_code == 0
    assert "with them 12 of 14 (86%) are covered" in report.warnings[0]
    assert "warning: output 'logits' was all 0" in verify_text(report)
    assert verify(attention()).warnings == report.warnings


def test_a_head_that_says_something_needs_no_warning() -> None:
    assert verify(attention(0.5), attention(0.5)).warnings == ()


def test_failing_inputs_of_an_inner_value_are_kept(tmp_path: Any) -> None:
    folder = tmp_path / "failure"
    other = altered(attention(), "wq")
    report = verify(attention(), other, save_failure=str(folder))
    assert report.saved == str(folder)
    assert (folder / "input_0.pb").exists()


GRAPHS = {
    "all 0": "y = Mul(t, zero)",
    "all 1": "b = Equal(t, t) \n y = Cast<to = 1>(b)",
    "NaN": "u = Mul(t, zero) \n y = Div(u, u)",
    "empty": "y = Slice(t, none, none)",
    "the same": "u = Mul(t, zero) \n y = Add(u, bias)",
}


def void_graph(body: str) -> ModelProto:
    return model(
        HEAD + "g (float[N,3] x) => (float[A,B] y) <float zero = {0}, int64[2] none = {0, 0}, "
        "float[1,3] bias = {1, 2, 3}> { t = Tanh(x) \n" + body + "}"
    )


@pytest.mark.parametrize("what", GRAPHS)
def test_what_an_output_was_is_told(what: str) -> None:
    found = void_graph(GRAPHS[what])
    report = verify(found, found)
    assert report.exit_code == 0
    assert f"output 'y' was {what} in every trial, which proves nothing" in report.warnings[0]
    other = ModelProto()
    other.CopyFrom(found)
    other.graph.node[0].op_type = "Sigmoid"
    assert verify(found, other).exit_code == 1


def test_outputs_that_depend_on_no_element_of_an_input_are_what_they_must_be() -> None:
    found = model(
        HEAD + "g (float[2,3] x) => (int64[2] s, float[A] c, float[2,3] y) "
        "{ s = Shape(x) \n c = Constant<value_floats = [0.0, 0.0]> () \n y = Neg(x) }"
    )
    assert verify(found, found).warnings == ()


def test_no_value_that_both_have_is_told_too() -> None:
    found = model(HEAD + "g (float[N] x) => (float[N] y) <float c = {0}> { y = Mul(x, c) }")
    report = verify(found, found)
    assert report.exit_code == 0
    assert "0 of 1 nodes (0%), and no inner value" in report.warnings[0]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([np.zeros((0, 2)), np.zeros(0)], "empty"),
        ([None, []], "empty"),
        ([np.array([np.nan, np.nan])], "NaN"),
        ([np.zeros(2), np.array([np.nan, -0.0])], "all 0"),
        ([np.full(2, 7), np.array([7])], "all 7"),
        ([np.full(1, 0.5, np.float32)], ""),
        ([np.array([0.5]), np.array([0.5])], "all 0.5"),
        ([np.array(0.5), np.array(0.6)], ""),
        ([np.array(["a", "a"], object)], "all a"),
        ([np.array(["a", "b"], object)], ""),
        ([np.array([1.5, 2]), np.array([1.5, 2])], "the same"),
        ([np.array([1.5, 2]), np.array([2, 1.5])], ""),
        ([np.array([0, 1]), np.array([0, 1])], ""),
        ([np.array([0, 1]), np.array([0, 1]), np.array([0, 1])], "the same"),
        ([np.array([0, 1]), np.array([0, 1]), np.array([1, 0])], ""),
        ([np.array([0, 1]), np.array([0, 1]), np.array([0, 1, 0])], ""),
        ([np.array([0.0, 1]), np.array([1.0, 0, 1])], ""),
        ([np.array([1.0, 2, 3]), np.array([1.0, 2, 3, 1, 2, 3])], "the same"),
        ([[np.array([1.5])], [np.array([2.5])]], ""),
        ([{1: 0.5, 2: 0.25}], ""),
    ],
)
def test_void(values: list[Any], why: str) -> None:
    assert void_of(values) == why


@pytest.mark.parametrize("body", ["", "y = Neg(z)"])
def test_inputs_that_are_given_back_as_they_are_need_no_node_to_cover_them(body: str) -> None:
    outputs = "float[0] x, float[2] y" if body else "float[0] x"
    found = model(HEAD + f"g (float[0] x, float[2] z) => ({outputs}) {{ {body} }}")
    report = verify(found, found)
    assert report.exit_code == 0
    assert report.warnings == ()
