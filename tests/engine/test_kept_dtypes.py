"""Nodes that keep a dtype which is changed around them, by name or by rule."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto

import onnxreduce_cli
from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.report.plan import check_lines
from tests.support import model, op_types, run

QUANTIZED = Path(__file__).parents[1] / "data" / "quantized"

HALF: dict[str, Any] = {"dtypes": {"float": "float16"}}

#: A layer normalisation as exporters write it: its squares overflow float16.
NORM = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,8] x) => (float[2,8] y)
<float two = {2}, float eps = {1e-5}, float[8] w = {1,2,3,4,5,6,7,8}> {
    [mean] m = ReduceMean<axes = [-1]>(x)
    [off] d = Sub(x, m)
    [square] p = Pow(d, two)
    [variance] v = ReduceMean<axes = [-1]>(p)
    [add] e = Add(v, eps)
    [root] s = Sqrt(e)
    [divide] n = Div(d, s)
    [scale] y = Mul(n, w)
}"""
LARGE = np.float32([[1000, -1000, 900, 1, 2, 3, 4, 5], [700, 0, 1, 2, -300, 4, 5, 900]])
KEPT = ["Pow", "variance", "add", "root"]


def casts(found: ModelProto) -> int:
    return op_types(found).count("Cast")


def test_kept_nodes_read_each_other_without_a_cast() -> None:
    source = model(NORM)
    bad = onnxreduce_cli.convert(source, **HALF)
    assert not run(bad, {"x": LARGE.astype(np.float16)}, in_numpy=True)["y"].any()
    result = onnxreduce_cli.convert(source, keep_dtype=KEPT, **HALF)
    onnx.checker.check_model(result, full_check=True)
    assert op_types(result) == [
        "ReduceMean", "Sub", "Cast", "Pow", "ReduceMean", "Add", "Sqrt", "Cast", "Div", "Mul",
    ]  # fmt: skip
    kinds = {tensor.name: tensor.data_type for tensor in result.graph.initializer}
    assert kinds == {
        "two": TensorProto.FLOAT,
        "eps": TensorProto.FLOAT,
        "w": TensorProto.FLOAT16,
    }
    expected = run(source, {"x": LARGE})["y"]
    for in_numpy in (False, True):
        found = run(result, {"x": LARGE.astype(np.float16)}, in_numpy=in_numpy)["y"]
        np.testing.assert_allclose(found.astype(np.float32), expected, rtol=5e-3, atol=5e-3)


def test_what_is_kept_is_said_in_one_line() -> None:
    plan = onnxreduce_cli.plan(model(NORM), keep_dtype=KEPT, **HALF)
    assert plan.prepared[1] == (
        "kept in float: 1 Pow (asked), 1 ReduceMean (asked), 1 Add (asked), 1 Sqrt (asked)"
    )
    changed = {change.node: change.result for change in plan.changes}
    assert changed == {"square": ("Cast", "Pow"), "root": ("Sqrt", "Cast")}


def test_casts_of_the_model_lead_to_what_is_kept_and_from_it() -> None:
    found = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (int64[2] a, float[2] x) => (double[2] y, float[2] z) {
            b = Cast <to = 1> (a) [kept] c = Mul(b, b) y = Cast <to = 11> (c) z = Add(x, x) }""")
    result = onnxreduce_cli.convert(found, keep_dtype=["kept"], **HALF)
    assert op_types(result) == ["Cast", "Mul", "Cast", "Add"]
    # Beyond float16, whose neighbours are 32 apart here.
    feeds = {"a": np.array([123457, 40001]), "x": np.zeros(2, np.float16)}
    assert run(result, feeds)["y"].tolist() == [
        float(np.float32(a) * np.float32(a)) for a in feeds["a"]
    ]
    assert onnxreduce_cli.convert(result, keep_dtype=["kept"], **HALF) == result


def test_real_data_that_overflows_passes_with_what_the_message_names(
    tmp_path: Path, onnxreduce: Any
) -> None:
    onnx.save(model(NORM), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", LARGE)
    call = ("convert", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--dtype", "float=float16",
            "--verify", "-i", f"x={tmp_path / 'x.npy'}")  # fmt: skip
    refused = onnxreduce(*call)
    assert refused.code == 1
    text = " ".join((refused.out + refused.err).split())
    assert "node 'square' (Pow) computes" in text
    assert "to keep them as they are: --keep-dtype 'square,variance,add,root'" in text
    done = onnxreduce(*call, "--keep-dtype", "square,variance", "--keep-dtype", "add,root")
    assert done.code == 0, done.err
    assert "kept in float: 1 Pow (asked)" in done.out


def test_inputs_and_outputs_that_stay_are_read_as_they_are() -> None:
    """A Cast to float16 and back would lose what the nodes are kept for."""
    source = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y, float[2] z) {
            [big] y = Mul(x, x)
            [small] z = Tanh(x)
        }""")
    result = onnxreduce_cli.convert(source, keep_dtype=["big"], keep_interface=True, **HALF)
    onnx.checker.check_model(result, full_check=True)
    x = np.float32([70000, 3])
    found = run(result, {"x": x}, in_numpy=True)
    np.testing.assert_array_equal(found["y"], x * x)
    np.testing.assert_array_equal(found["z"], np.tanh(x).astype(np.float16).astype(np.float32))


BY_RULE = {
    "computed scales": (
        """g (float[1,1,2,2] x, float[4] s) => (float[1,1,N,M] y) {
        [r] y = Resize<mode = "linear">(x, , s) }""",
        "1 Resize (scales)",
        {"x": np.float32([[[[1, 2], [3, 4]]]]), "s": np.float32([1, 1, 2, 2])},
    ),
    "a range": (
        """g (float a, float b) => (float[N] y) <float d = {0.5}> {
        [r] r = Range(a, b, d) y = Neg(r) }""",
        "1 Range (start, limit, delta, output)",
        {"a": np.array(0, np.float32), "b": np.array(3, np.float32)},
    ),
    "boxes": (
        """g (float[1,3,4] x, float[1,1,3] s) => (int64[N,3] y) <int64 n = {3}, float t = {0.5}> {
        [b] b = Relu(x) [r] y = NonMaxSuppression(b, s, n, t) }""",
        "1 NonMaxSuppression (boxes, scores, iou_threshold)",
        {
            "x": np.float32([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]]),
            "s": np.float32([[[0.9, 0.8, 0.7]]]),
        },
    ),
}


@pytest.mark.parametrize("name", BY_RULE)
@pytest.mark.parametrize("keep", [False, True])
def test_what_operators_want_in_float_is_kept_by_rule(name: str, keep: bool) -> None:
    text, said, feeds = BY_RULE[name]
    source = model('<ir_version: 8, opset_import: ["" : 17]> ' + text)
    options = {**HALF, "keep_interface": keep}
    assert f"kept in float: {said}" in onnxreduce_cli.plan(source, **options).prepared
    result = onnxreduce_cli.convert(source, **options)
    onnx.checker.check_model(result, full_check=True)
    given = feeds if keep else {k: v.astype(np.float16) for k, v in feeds.items()}
    found, expected = run(result, given)["y"], run(source, feeds)["y"]
    np.testing.assert_allclose(found.astype(expected.dtype), expected, rtol=1e-3)


def test_nodes_in_subgraphs_and_functions_are_kept() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[2] x, bool c) => (float[2] y) {
            [outer] o = Mul(x, x)
            [if] z = If (c) <
                then_branch = t () => (float[2] t) { [inner] i = Sqrt(o) t = Neg(i) },
                else_branch = e () => (float[2] u) { [other] u = Mul(x, x) }
            >
            [call] y = local.F(z)
        }
        <domain: "local", opset_import: ["" : 17]>
        F (a) => (b) { [within] s = Mul(a, a) [back] b = Sqrt(s) }""")
    kept = ["outer", "inner", "within", "back"]
    result = onnxreduce_cli.convert(source, keep_dtype=kept, **HALF)
    onnx.checker.check_model(result, full_check=True)
    x = np.float32([600, 3])
    for c in (True, False):
        expected = run(source, {"x": x, "c": np.array(c)})["y"]
        found = run(result, {"x": x.astype(np.float16), "c": np.array(c)}, in_numpy=True)["y"]
        if c:
            np.testing.assert_allclose(found.astype(np.float32), expected, rtol=1e-3)
        else:
            assert np.isinf(found[0])  # What is not kept overflows.
    branch = result.graph.node[2].attribute[0].g
    assert [node.op_type for node in branch.node] == ["Sqrt", "Cast", "Neg"]
    assert [node.op_type for node in result.functions[0].node] == ["Cast", "Mul", "Sqrt", "Cast"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("If", "its subgraphs change; name the nodes in them"),
        ("call", "it calls a function; name the nodes in it"),
        ("SequenceConstruct", "'s' is seq.tensor.float.., which no Cast takes"),
    ],
)
def test_what_cannot_be_kept_is_refused(name: str, said: str) -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[2] x, bool c) => (float[2] y) {
            s = SequenceConstruct(x, x)
            i = Constant<value_int = 0>()
            a = SequenceAt(s, i)
            z = If (c) < then_branch = t () => (float[2] t) { t = Neg(a) },
                         else_branch = e () => (float[2] u) { u = Abs(a) } >
            [call] y = local.F(z)
        }
        <domain: "local", opset_import: ["" : 17]> F (a) => (b) { b = Sqrt(a) }""")
    with pytest.raises(ConversionError, match=said) as raised:
        onnxreduce_cli.convert(source, keep_dtype=[name], **HALF)
    assert "leave it out of keep_dtype" in str(raised.value)


@pytest.mark.parametrize(("before", "after"), [("float", "bfloat16"), ("double", "float")])
def test_other_dtypes_are_kept_in_the_same_way(before: str, after: str) -> None:
    source = model(NORM.replace("float", before))
    options: dict[str, Any] = {"dtypes": {before: after}, "keep_dtype": KEPT}
    result = onnxreduce_cli.convert(source, **options)
    onnx.checker.check_model(result, full_check=True)
    assert casts(result) == 2
    assert onnxreduce_cli.plan(source, **options).prepared[1].startswith(f"kept in {before}: ")


def test_a_constant_node_is_kept_with_what_it_holds(tmp_path: Path) -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y) {
            [c] c = Constant<value_float = 100000.0>() [m] m = Mul(x, c) [d] y = Div(m, c) }""")
    result = onnxreduce_cli.convert_file(
        _saved(source, tmp_path), tmp_path / "o.onnx", keep_dtype=["m", "d"], **HALF
    )
    assert "agrees with the model" in " ".join(check_lines(result))
    assert op_types(onnx.load(tmp_path / "o.onnx")) == ["Constant", "Cast", "Mul", "Div", "Cast"]


def _saved(found: ModelProto, folder: Path) -> Path:
    onnx.save(found, folder / "m.onnx")
    return folder / "m.onnx"


def test_operators_of_ai_onnx_ml_take_what_their_definitions_name() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>
        g (float[3,4] x) => (float[3,4] y) {
            a = Add(x, x) [norm] b = ai.onnx.ml.Normalizer<norm = "L2">(a) y = Neg(b)
        }""")
    result = onnxreduce_cli.convert(source, **HALF)
    assert op_types(result) == ["Add", "Cast", "Normalizer", "Cast", "Neg"]
    assert onnxreduce_cli.convert(result, **HALF) == result
    feeds = {"x": np.arange(12).reshape(3, 4).astype(np.float16)}
    expected = run(source, {"x": feeds["x"].astype(np.float32)})["y"]
    np.testing.assert_allclose(run(result, feeds)["y"], expected, rtol=2e-3)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("cnn_static", "1 QLinearMul (com.microsoft), 1 QLinearAdd (com.microsoft)"),
        pytest.param(
            "mobilenet_fused",
            "2 DynamicQuantizeMatMul (com.microsoft)",
            marks=pytest.mark.newest,  # ONNX Runtime 1.23 has no ConvInteger of int8.
        ),
        ("resnet_static", "1 QLinearAdd (com.microsoft), 1 QGemm (com.microsoft)"),
    ],
)
def test_quantized_operators_of_onnx_runtime_take_float_alone(
    name: str, kept: str, tmp_path: Path
) -> None:
    result = onnxreduce_cli.convert_file(QUANTIZED / f"{name}.onnx", tmp_path / "o.onnx", **HALF)
    assert kept in "".join(result.plan.prepared)
    assert "loads in ONNX Runtime" in " ".join(check_lines(result))


@pytest.mark.parametrize(
    "node", ["BiasGelu (x, w)", "FusedMatMul (x, v)", "SkipSimplifiedLayerNormalization (x, x, w)"]
)
def test_operators_of_onnx_runtime_do_not_become_double(node: str) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[1, 2, 2] x) => (float[1, 2, 2] z)
        <float[2] w = {{1, 2}}, float[2, 2] v = {{1, 2, 3, 4}}> {{
            y = com.microsoft.{node} z = Exp (y)
        }}""")
    result = onnxreduce_cli.convert(source, dtypes={"float": "double"})
    x = np.ones((1, 2, 2))
    (before,), (after,) = (
        run(item, {"x": x.astype(dtype)}).values()
        for item, dtype in ((source, np.float32), (result, np.float64))
    )
    np.testing.assert_allclose(before, after, rtol=1e-5)


@pytest.mark.parametrize("name", ["skl_gnb_9", "skl_norm_l1_11"])
def test_maps_keep_their_dtype(name: str, tmp_path: Path) -> None:
    source = QUANTIZED.parent / "models" / f"{name}.onnx"
    result = onnxreduce_cli.convert_file(source, tmp_path / "o.onnx", **HALF)
    assert "ZipMap (X)" in "".join(result.plan.prepared)
    onnx.checker.check_model(onnx.load(tmp_path / "o.onnx"), full_check=True)


def test_overflows_that_onnx_runtime_hides_by_computing_in_float_are_named() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y) <float[2] c = {300, 300}> {
            a = Sigmoid(x) d = Add(a, c) [big] b = Mul(d, d) [root] r = Sqrt(b) y = Add(x, r)
        }""")
    with pytest.warns(UserWarning, match=r"node 'big' \(Mul\) computes 9.*: keep_dtype=\['big'"):
        onnxreduce_cli.convert(source, **HALF)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        onnxreduce_cli.convert(source, keep_dtype=["big", "root"], **HALF)
