"""What is known of shapes behind operators of other domains."""

from __future__ import annotations

import pytest
from onnx import parser

from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.types.facts import Facts
from tests.support import model

HEAD = '<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1, "ai.onnx.ml": 1]>'


def _rank(body: str, opset: int = 13) -> int | None:
    source = parser.parse_model(
        HEAD.format(opset=opset) + "g (float[n, 4] x) => (y) {" + body + "}"
    )
    found = scopes(source)
    known = Facts(source, found).type(found[0], "z")
    return None if known is None else known.rank


@pytest.mark.parametrize(
    ("body", "rank"),
    [
        ("z = ai.onnx.ml.Scaler<offset=[0.0], scale=[1.0]>(x)", 2),
        ("z = ai.onnx.ml.Normalizer(x)", 2),
        ("z = ai.onnx.ml.Imputer<imputed_value_floats=[1.0]>(x)", 2),
        ("z = com.microsoft.Gelu(x)", 2),
        ("w = com.microsoft.Gelu(x)  v = Abs(w)  z = com.microsoft.QuickGelu(v)", 2),
        ("z = com.microsoft.FusedMatMul<alpha=2.0>(x, x)", 2),
        ("z = com.microsoft.FusedMatMul<transB=1>(x, x)", 2),
        ("z = com.microsoft.FusedGemm<transB=1, activation=\"Relu\">(x, x)", 2),
        ("w = Unsqueeze(x, a)  z = com.microsoft.SkipLayerNormalization(w, w, x)", None),
        ("a = Constant<value_ints=[0]>()  w = Unsqueeze(x, a)"
         "z = com.microsoft.SkipLayerNormalization(w, w, x)", 3),
        ("z = SimplifiedLayerNormalization(x, x)", 2),
        ("z = LayerNormalization(x, x)", 2),
    ],
)  # fmt: skip
def test_a_placeholder_tells_the_rank(body: str, rank: int | None) -> None:
    assert _rank(body + "  y = Relu(z)") == rank


@pytest.mark.parametrize("op_type", ["LayerNormalization", "SimplifiedLayerNormalization"])
def test_the_dtype_is_that_of_the_scale(op_type: str) -> None:
    source = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 15]>'
        f"g (float16[n, 4] x, float[4] s) => (y) {{ z = {op_type}(x, s)  y = Relu(z) }}"
    )
    found = scopes(source)
    known = Facts(source, found).type(found[0], "z")
    assert known is not None
    assert (known.kind, known.rank) == ("tensor(float)", 2)


def test_a_function_of_the_model_is_no_fused_operator() -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 13, "com.microsoft": 1]>'
        "g (float[n, 4] x) => (float[n] y) { z = com.microsoft.Gelu(x)  y = Relu(z) }"
        '<domain: "com.microsoft", opset_import: ["": 13]>'
        "Gelu (x) => (y) { y = ReduceSum<keepdims=0>(x) }"
    )
    source = parser.parse_model(text)
    found = scopes(source)
    known = Facts(source, found).type(found[0], "z")
    assert known is not None
    assert known.dims == ()


def test_the_number_of_sizes_is_the_rank() -> None:
    source = model(
        '<ir_version: 8, opset_import: ["": 13]>'
        "g (float[n, 4] x, int64[1] k) => (float[a, b, c] y) <int64[2] more = {2, -1}> {"
        "  sizes = Concat<axis=0>(k, more)  z = Reshape(x, sizes)  y = Relu(z) }"
    )
    found = scopes(source)
    known = Facts(source, found).type(found[0], "z")
    assert known is not None
    assert known.dims == (None, 2, None)


def test_trees_give_a_matrix() -> None:
    body = (
        "l, z = ai.onnx.ml.TreeEnsembleClassifier<class_ids=[0], class_nodeids=[0],"
        " class_treeids=[0], class_weights=[1.0], classlabels_int64s=[0, 1],"
        ' nodes_falsenodeids=[0], nodes_featureids=[0], nodes_modes=["LEAF"],'
        " nodes_nodeids=[0], nodes_treeids=[0],"
        " nodes_truenodeids=[0], nodes_values=[0.0]>(x)  y = Relu(z)"
    )
    assert _rank(body) == 2


def known(nodes: str, inputs: str, opset: int) -> tuple[int | str | None, ...] | None:
    """The dimensions of z that are known."""
    source = parser.parse_model(
        HEAD.format(opset=opset) + f"g ({inputs}) => (y) {{ {nodes}  y = Relu(z) }}"
    )
    found = scopes(source)
    facts = Facts(source, found)
    type_of_z = facts.type(found[0], "z")
    return None if type_of_z is None else type_of_z.dims


SKIP = "com.microsoft.SkipSimplifiedLayerNormalization"
FUSED = "com.microsoft.FusedMatMul"
QUANTIZED = "uint8[2, 1, 4] a, float s, uint8 p, uint8[3, 4] b"


@pytest.mark.parametrize(
    ("nodes", "inputs", "opset", "dims"),
    [
        (f"z, m, i, s = {SKIP}(a, a, g)", "float[2, 3, 4] a, float[4] g", 13, (2, 3, 4)),
        (f"y0, m, i, z = {SKIP}(a, a, g)", "float[2, 3, 4] a, float[4] g", 13, (2, 3, 4)),
        (
            f"y0, m, i, s = {SKIP}(a, a, g)  y1, m1, i1, z = {SKIP}(s, y0, g)",
            "float[2, 3, 4] a, float[4] g",
            13,
            (2, 3, 4),
        ),
        (
            "y0, z, v = com.microsoft.MultiHeadAttention <num_heads = 2> (a, a, a)",
            "float[2, 3, 4] a",
            13,
            (None,) * 4,
        ),
        (f"z = {FUSED}(a, b)", "float[2, 3, 4] a, float[4, 5] b", 11, (2, 3, 5)),
        (f"z = {FUSED}<transA = 1>(a, b)", "float[2, 4, 3] a, float[2, 4, 5] b", 12, (2, 3, 5)),
        (f"z = {FUSED}<transB = 1>(a, b)", "float[2, 3, 4] a, float[2, 5, 4] b", 12, (2, 3, 5)),
        (f"z = {FUSED}<transA = 1, transB = 1>(a, b)", "float[4, 3] a, float[5, 4] b", 12, (3, 5)),
        (f"z = {FUSED}<transB = 1>(a, b)", "float[3, 4] a, float[5, 4] b", 11, None),
        (f"z = {FUSED}<transBatchA = 1>(a, b)", "float[2, 3, 4] a, float[2, 4, 5] b", 12, None),
        (
            'z = com.microsoft.FusedGemm<transA = 1, activation = "Relu">(a, b, c)',
            "float[4, 3] a, float[4, 5] b, float[5] c",
            13,
            (3, 5),
        ),
        (
            'z = com.microsoft.FusedConv<strides = [2], activation = "Relu">(a, w)',
            "float[1, 2, 9] a, float[3, 2, 3] w",
            13,
            (1, 3, 4),
        ),
        ("z = com.microsoft.QLinearAdd(a, s, p, b, s, p, s, p)", QUANTIZED, 13, (2, 3, 4)),
        ("z = com.microsoft.QLinearMul(a, s, p, b, s, p, s, p)", QUANTIZED, 7, (2, 3, 4)),
        # Before opset 7 these did not broadcast, and here is not all that they read.
        ("z = com.microsoft.QLinearAdd(a, s, p, b, s, p, s, p)", QUANTIZED, 6, None),
        ("z = com.microsoft.QLinearAdd(a, s, p)", QUANTIZED, 13, None),
        (
            "z = com.microsoft.QLinearConcat<axis = 1>(s, p, a, s, p, c, s, p)",
            "uint8[2, 1, 4] a, uint8[2, 5, 4] c, float s, uint8 p",
            13,
            (2, 6, 4),
        ),
        (
            "z = com.microsoft.QLinearAveragePool<kernel_shape = [2]>(a, s, p, s, p)",
            "float[1, 2, 9] a, float s, uint8 p",
            13,
            (1, 2, 8),
        ),
        (
            "z = com.microsoft.QLinearGlobalAveragePool<channels_last = 0>(a, s, p, s, p)",
            "float[1, 2, 9] a, float s, uint8 p",
            13,
            (1, 2, 1),
        ),
        (
            "z = com.microsoft.QLinearGlobalAveragePool<channels_last = 1>(a, s, p, s, p)",
            "float[1, 2, 9] a, float s, uint8 p",
            13,
            None,
        ),
        ("z = ai.onnx.ml.Scaler(a)", "int64[2, 3] a", 13, (2, 3)),
        ("z = ai.onnx.ml.Scaler(a)", "int64[2, 3] a", 5, None),
    ],
)
def test_the_sizes_that_a_placeholder_tells(
    nodes: str, inputs: str, opset: int, dims: tuple[int, ...] | None
) -> None:
    assert known(nodes, inputs, opset) == dims
