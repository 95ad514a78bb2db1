"""A model whose dtype was changed: rounding is no difference, and a mistake is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

import onnxreduce_cli
from onnxreduce_cli.report.verify import verify_text
from onnxreduce_cli.verification.whole.equivalence import verify
from onnxreduce_cli.verification.whole.results import VerificationError, VerifyReport
from tests.support import model

EXPORTS = Path(__file__).parents[2] / "data" / "exports"

#: Two convolutions, a normalisation by hand, and a product of two branches.
TEXT = """<ir_version: 10, opset_import: ["": 22]>
g (float[2,3,8,8] x, float[2,3,8,8] u) => (float[2,5,5] y, int64[2,5] at) {
    a = Conv<pads = [1,1,1,1]>(x, w)
    b = Relu(a)
    c = Conv<pads = [1,1,1,1]>(u, w)
    m = ReduceMean(b, axes)
    d = Sub(b, m)
    q = Mul(d, d)
    v = ReduceMean(q, axes)
    e = Add(v, eps)
    r = Sqrt(e)
    n = Div(d, r)
    s = Reshape(n, by)
    z = Reshape(c, by)
    t = Transpose<perm = [0,2,1]>(z)
    p = MatMul(s, t)
    y = Softmax<axis = 2>(p)
    at = ArgMax<axis = 2, keepdims = 0>(y)
}"""


def source() -> ModelProto:
    found = onnx.parser.parse_model(TEXT)
    rng = np.random.default_rng(3)
    weights = {
        "w": rng.normal(0, 0.1, (5, 3, 3, 3)).astype(np.float32),
        "eps": np.float32(1e-3),
        "axes": np.int64([2, 3]),
        "by": np.int64([2, 5, 64]),
    }
    found.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in weights.items())
    return found


def changed(found: ModelProto, before: str = "float", after: str = "float16") -> ModelProto:
    return onnxreduce_cli.convert(found, dtypes={before: after}, check=False)


def compared(first: ModelProto, second: ModelProto, after: str = "float16") -> VerifyReport:
    return verify(first, second, changed={"float": after}, trials=3)


@pytest.mark.parametrize("after", ["float16", "bfloat16", "double"])
def test_rounding_to_another_dtype_is_no_difference(after: str) -> None:
    found = source()
    report = compared(found, changed(found, after=after), after)
    assert report.equivalent is True
    assert report.in_double is True
    assert "in double precision the models compute the same on 3 inputs" in verify_text(report)


def normalised() -> ModelProto:
    """Small deviations beside an epsilon, and an operator whose constants need many digits."""
    found = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 20]>
        g (float[4,8] x) => (float[4,8] y, float[4,8] z) {
            a = Mul(x, small)
            y = LayerNormalization<epsilon = 1e-5>(a, w)
            z = Gelu(x)
        }""")
    weights = {"small": np.float32(2e-3), "w": np.linspace(1, 2, 8, dtype=np.float32)}
    found.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in weights.items())
    return found


def test_constants_of_new_nodes_are_not_rounded_to_the_dtype_that_changed() -> None:
    found = normalised()
    made = onnxreduce_cli.convert(found, 13, dtypes={"float": "float16"})
    assert "LayerNormalization" not in {node.op_type for node in made.graph.node}
    assert compared(found, made).in_double is True


def test_a_wrong_weight_is_found_beside_new_nodes() -> None:
    found = normalised()
    made = onnxreduce_cli.convert(found, 13, dtypes={"float": "float16"})
    wrong = next(item for item in made.graph.initializer if item.name == "w")
    values = numpy_helper.to_array(wrong) * np.float16(1.004)
    wrong.CopyFrom(numpy_helper.from_array(values, "w"))
    assert compared(found, made).equivalent is False


@pytest.mark.parametrize("before", ["float16", "bfloat16", "double"])
def test_from_another_dtype_too(before: str) -> None:
    found = changed(source(), after=before)
    report = verify(found, changed(found, before, "float"), changed={before: "float"}, trials=3)
    assert report.equivalent is True
    assert report.in_double is True


def _weight(found: ModelProto) -> None:
    tensor = found.graph.initializer[0]
    array = numpy_helper.to_array(tensor).copy()
    array[4, 2, 1, 1] *= array.dtype.type(1.05)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _axis(found: ModelProto) -> None:
    found.graph.node[-2].attribute[0].i = 1


def _inputs(found: ModelProto) -> None:
    convolutions = [node for node in found.graph.node if node.op_type == "Conv"]
    names = [node.input[0] for node in convolutions]
    for node, name in zip(convolutions, reversed(names), strict=True):
        node.input[0] = name


def _order(found: ModelProto) -> None:
    (node,) = [node for node in found.graph.node if node.op_type == "Sub"]
    node.input[:] = reversed(node.input)


def _small(found: ModelProto) -> None:
    tensor = found.graph.initializer[1]
    array = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(array + array.dtype.type(2e-5), tensor.name))


@pytest.mark.parametrize("after", ["float16", "bfloat16"])
@pytest.mark.parametrize("mistake", [_weight, _axis, _inputs, _order, _small])
def test_a_mistake_is_a_difference(mistake: Callable[[ModelProto], None], after: str) -> None:
    """However small it is beside the rounding of the new dtype."""
    found = source()
    wrong = changed(found, after=after)
    mistake(wrong)
    report = compared(found, wrong, after)
    assert report.equivalent is False
    assert report.in_double is False
    assert "rounding does not explain it" in verify_text(report)


def test_inner_values_are_compared_after_a_cast() -> None:
    """They take the place of an output that proves nothing."""
    found = model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2,4] x) => (float[2,4] y) <float[1] z = {0}> {
            a = Sigmoid(x) b = Exp(a) y = Mul(b, z) }""")
    report = compared(found, changed(found))
    assert report.equivalent is True
    (warning,) = [item for item in report.warnings if "proves nothing" in item]
    assert "inner values were compared too, and with them 2 of 3" in warning


OVERFLOWING = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,4] x) => (float[2,4] y) <float k = {2}> {
    [power] p = Pow(x, k)
    y = Sqrt(p)
}"""


def test_given_inputs_that_overflow_are_named(tmp_path: Path) -> None:
    found = model(OVERFLOWING)
    inputs = {"x": np.float32([[1, 2, 3, 400]] * 2)}
    report = verify(found, changed(found), changed={"float": "float16"}, inputs=inputs)
    assert report.equivalent is False
    assert report.in_double is True
    assert "node 'power' (Pow) computes 1.6e+05" in verify_text(report)
    assert "on inputs given values are beyond the range of float16, 65504" in verify_text(report)


def test_drawn_inputs_that_overflow_are_said_and_do_not_count() -> None:
    found = model(OVERFLOWING)
    report = verify(found, changed(found), changed={"float": "float16"})
    assert report.equivalent is True
    (warning,) = [item for item in report.warnings if "on drawn inputs (large" in item]
    assert "node 'power' (Pow) computes" in warning
    assert "which do not count" in warning
    assert warning.endswith("to keep them as they are: --keep-dtype 'power,Sqrt'")
    voids = [trial.void for trial in report.trials if trial.void]
    assert len(voids) == 1
    assert "beyond the range" in voids[0]


@pytest.mark.parametrize("interface", [False, True])
@pytest.mark.parametrize(
    ("graph", "x", "said"),
    [
        ("float[2] y) { [p] p = Mul(x, x) [r] y = Sqrt(p) }", 400, "--keep-dtype 'p,r'"),
        (
            "float[2] y) { [a] a = Sqrt(x) [b] b = Mul(x, x) [r] y = Sqrt(b) }",
            1e5,
            "--keep-interface --keep-dtype 'a,b,r'",
        ),
        (
            "float[2] y) { i = Cast<to = 7>(x) [c] c = Cast<to = 1>(i) m = Mul(i, i) "
            "[d] d = Cast<to = 1>(m) [r] y = Sqrt(d) }",
            400,
            "--keep-dtype 'd,r'",
        ),
    ],
)
def test_what_the_message_says_to_type_is_enough(
    graph: str, x: float, said: str, interface: bool
) -> None:
    """A Cast to the new dtype overflows, too: what reads the value must be kept."""
    found = model(f'<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => ({graph}')
    changes: dict[str, Any] = {"dtypes": {"float": "float16"}, "keep_interface": interface}
    after = onnxreduce_cli.convert(found, **changes)
    inputs = {"x": np.float32([1, x])}
    report = verify(found, after, changed=changes["dtypes"], inputs=inputs)
    assert report.equivalent is False
    assert report.warnings[0].endswith(f"to keep them as they are: {said}")
    changes["keep_interface"] = interface or "--keep-interface" in said
    keep = said.partition("--keep-dtype ")[2].strip("'").split(",")
    after = onnxreduce_cli.convert(found, keep_dtype=keep, **changes)
    assert verify(found, after, changed=changes["dtypes"], inputs=inputs).equivalent is True


def test_an_output_that_overflows_inside_is_named_with_its_node() -> None:
    found = model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2] x) => (float[2] y) { [b] y = Mul(x, x) }""")
    changes: dict[str, Any] = {"dtypes": {"float": "float16"}, "keep_interface": True}
    inputs = {"x": np.float32([1, 400])}
    for kept, expected in ((), False), (["b"], True):
        after = onnxreduce_cli.convert(found, keep_dtype=kept, **changes)
        report = verify(found, after, changed=changes["dtypes"], inputs=inputs)
        assert report.equivalent is expected
        typed = "--keep-interface --keep-dtype 'b'"
        assert any(item.endswith(typed) for item in report.warnings) is not expected


def test_where_no_node_can_be_kept_the_message_says_so() -> None:
    found = model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2] x, bool c) => (float[2] y) {
            [choice] i = If (c) <then_branch = t () => (float[2] t) { t = Mul(x, x) },
                                 else_branch = e () => (float[2] u) { u = Neg(x) }>
            y = Sqrt(i) }""")
    after = onnxreduce_cli.convert(found, dtypes={"float": "float16"})
    inputs = {"x": np.float32([1, 400]), "c": np.array(True)}
    report = verify(found, after, changed={"float": "float16"}, inputs=inputs)
    assert report.equivalent is False
    assert "node 'choice' (If) computes 1.6e+05" in report.warnings[0]
    assert report.warnings[0].endswith("to keep them as they are: leave out --dtype")


def test_where_all_drawn_inputs_overflow_the_models_differ() -> None:
    found = model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[2,4] x) => (float[2,4] y) <float large = {6e4}> {
            b = Exp(x) a = Add(b, large) [twice] t = Add(a, a) y = Sub(t, a) }""")
    report = verify(found, changed(found), changed={"float": "float16"})
    assert report.equivalent is False
    assert "node 'twice' (Add) computes" in verify_text(report)


def test_a_model_that_has_no_counterpart_in_double_is_said_to_be_compared_less() -> None:
    found = model("""<ir_version: 8, opset_import: ["": 17, "custom": 1]>
        g (float[4] x) => (float[4] y, float[4] z) { y = Neg(x) z = custom.Other(x) }""")
    report = verify(found, changed(found), changed={"float": "float16"})
    assert report.in_double is None
    assert "not compared in double precision" in verify_text(report)


@pytest.mark.parametrize("name", ["dyn_resnet", "ts_norms", "ts_gru", "dyn_half"])
def test_exports_pass_their_own_comparison(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"dtypes": {"float": "float16"}, "verify": True, "trials": 2}
    done = onnxreduce_cli.convert_file(EXPORTS / f"{name}.onnx", tmp_path / "o.onnx", **options)
    assert done.verified is not None
    assert done.verified.in_double is True


def test_nothing_is_written_where_real_data_overflows(tmp_path: Path) -> None:
    onnx.save(model(OVERFLOWING), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.float32([[1, 2, 3, 400]] * 2))
    pair = f"x={tmp_path / 'x.npy'}"
    with pytest.raises(VerificationError) as raised:
        onnxreduce_cli.convert_file(
            tmp_path / "m.onnx",
            tmp_path / "o.onnx",
            dtypes={"float": "float16"},
            verify=True,
            pairs=(pair,),
        )
    assert "node 'power' (Pow)" in verify_text(raised.value.report)
    assert not (tmp_path / "o.onnx").exists()
