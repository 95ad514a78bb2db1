"""Composite operators as PyTorch's exporter, tf2onnx and Keras write them, contracted."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import ModelProto, parser

import onnxreduce_cli
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.idioms import registry
from tests.idioms.exported import (
    FUSED,
    GROUPS,
    KERAS,
    LIMITS,
    MOMENTS,
    ROTARY,
    SCORES,
    SHIFTS,
    attention,
)
from tests.support import model, op_types, run

pytestmark = pytest.mark.newest

RNG = np.random.default_rng(5)


def same(source: ModelProto, *dims: int | tuple[int, ...]) -> ModelProto:
    """The model contracted at opset 24, after a run of both."""
    result = onnxreduce_cli.convert(source, 24, contract=["all"])
    feeds = {
        value.name: RNG.normal(size=shape).astype(np.float32)
        for value, shape in zip(source.graph.input, dims, strict=True)
    }
    before, after = run(source, feeds), run(result, feeds)
    for name, value in before.items():
        np.testing.assert_allclose(after[name], value, rtol=1e-5, atol=1e-5)
    return result


def misses(source: ModelProto, op_type: str) -> str:
    """Why a model's nodes are not contracted to an operator."""
    conversion = Conversion(source, 24, Options(contract=[op_type]))
    assert not [site for site in conversion.sites if site.absorbed]
    return "; ".join(item.reason for item in conversion.near_misses)


def test_group_normalization_of_pytorch() -> None:
    result = same(model(GROUPS), (2, 8, 3, 5))
    assert op_types(result) == ["GroupNormalization"]


def test_group_normalizations_in_a_row() -> None:
    nodes = GROUPS[GROUPS.index("r = ") : GROUPS.rindex("}")]
    nodes = re.sub(r"\b([rqinmy])\b", r"\g<1>2", nodes)
    text = GROUPS.rstrip("}") + nodes.replace("(x", "(y") + "}"
    result = same(model(text.replace("w] y)", "w] y2)")), (2, 8, 3, 5))
    assert op_types(result) == ["GroupNormalization"] * 2


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("float[b, 8,", "float[b, c,", "whole channels"),
        ("{0, 4, -1}", "{2, 4, -1}", "batch"),
        ("{0, 4, -1}", "{0, 3, -1}", "whole channels"),
        ("{0, 4, -1}", "{0, -1, 4}", "number of groups"),
        ("<int64[3] g = {0, 4, -1}", "<int64[4] g = {0, 4, -1, 1}", "number of groups"),
        ("one = {1, 1, 1, 1}", "one = {1, 1, 1, 2}", "of its own"),
        ("zero = {0, 0, 0, 0}", "zero = {0, 0, 0, 1}", "of its own"),
        ("float[8, 1, 1] t", "float[8, 1] t", "bias"),
        ("Reshape(i, q)", "Reshape(i, p)", "shape back"),
        ("float[8, 1, 1] s", "float[8, 1] s", "scale"),
    ],
)
def test_no_group_normalization(old: str, new: str, reason: str) -> None:
    text = GROUPS.replace(old, new).replace("=> (float[b, 8, h, w] y)", "=> (float[p, c, h, w] y)")
    text = text.replace("<int64[3] g", "<int64[4] p = {1, 8, -1, 2}, int64[3] g")
    assert reason in misses(model(text), "GroupNormalization")


def test_groups_of_channels_alone() -> None:
    text = GROUPS.replace("8, h, w]", "8]").replace("float[8, 1, 1]", "float[8]")
    assert "no dimensions beside" in misses(model(text), "GroupNormalization")


def test_groups_of_a_sequence() -> None:
    text = GROUPS.replace("8, h, w]", "8, h]").replace("float[8, 1, 1]", "float[8, 1]")
    assert op_types(same(model(text), (2, 8, 5))) == ["GroupNormalization"]


@pytest.mark.parametrize("sizes", ["{1, 4, -1}", "{4, 4, -1}", "{-1, 4, 10}"])
def test_groups_of_another_batch(sizes: str) -> None:
    text = GROUPS.replace("{0, 4, -1}", sizes).replace("[b, 8", "[2, 8")
    assert "batch" in misses(model(text), "GroupNormalization")


def test_groups_of_a_computed_batch() -> None:
    text = GROUPS.replace(
        "int64[3] g = {0, 4, -1}", "int64 o = {0}, int64[1] z = {0}, int64[2] rest = {4, -1}"
    ).replace(
        "r = R",
        "k = Shape(x) l = Gather(k, o) u = Unsqueeze(l, z) g = Concat<axis = 0>(u, rest) r = R",
    )
    assert "GroupNormalization" in op_types(same(model(text), (2, 8, 3, 5)))


def test_groups_of_a_computed_number() -> None:
    text = GROUPS.replace(
        "int64[3] g = {0, 4, -1}", "int64 o = {3}, int64[1] z = {0}, int64[1] rest = {-1}"
    ).replace(
        "r = R",
        "k = Shape(x) l = Gather(k, o) u = Unsqueeze(l, z) g = Concat<axis = 0>(z, u, rest) r = R",
    )
    assert "number of groups" in misses(model(text), "GroupNormalization")


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_groups_of_any_number(groups: int) -> None:
    ones, zeros = (", ".join([each] * groups) for each in "10")
    text = GROUPS.replace("{0, 4, -1}", f"{{2, {groups}, -1}}").replace("[b, 8", "[2, 8")
    text = text.replace("float[4]", f"float[{groups}]")
    text = text.replace("{1, 1, 1, 1}", f"{{{ones}}}").replace("{0, 0, 0, 0}", f"{{{zeros}}}")
    (node,) = same(model(text), (2, 8, 3, 5)).graph.node
    assert node.op_type == "GroupNormalization"
    assert {item.name: item.i for item in node.attribute}["num_groups"] == groups


def test_nothing_below_the_opset_with_a_scale_for_each_channel() -> None:
    assert not onnxreduce_cli.plan(model(GROUPS), 20, contract=["GroupNormalization"]).near_misses


@pytest.mark.parametrize("opset", [9, 11, 13])
@pytest.mark.parametrize("shift", SHIFTS)
def test_layer_normalization_of_keras(opset: int, shift: str) -> None:
    result = same(model(KERAS.format(opset=opset, shift=shift)), (2, 3, 4))
    assert op_types(result) == ["LayerNormalization"]


#: The nodes that count the elements of a row.
COUNTED = r"  (rq|g|gp|n) = .*\n"


def test_layer_normalization_through_batch_normalization() -> None:
    result = same(model(FUSED), (2, 3, 4))
    assert op_types(result) == ["LayerNormalization"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("{1, -1, 4, 1}", "{1, 4, -1, 1}", "rows of its last axis"),
        ("float on = {1}", "float on = {2}", "of its own"),
        ("float off = {0}", "float off = {1}", "of its own"),
        ("{1, -1, 4, 1}", "{2, -1, 4, 1}", "rows of its last axis"),
        ("{1, -1, 4, 1}", "{1, -1, 2, 2}", "rows of its last axis"),
        ("Gather(rq, axes)", "Gather(rq, one)", "number of a row's elements"),
        ("Div(ss, n)", "Div(ss, on)", "number of a row's elements"),
        ("Div(ss, n)", "Div(ss, s)", "number of a row's elements"),
        ("Div(ss, n)", "Div(ss, count)", "number of a row's elements"),
        ("Div(ss, n)", "Div(ss, e)", "number of a row's elements"),
        ("axes = [0, 2, 3], keepdims", "axes = [0, 3], keepdims", "different axes"),
        ("Gather(rq, axes)", "Gather(rq, ends)", "number of a row's elements"),
        ("Gather(rq, axes)", "Gather(rq, twice)", "number of a row's elements"),
        ("Div(ss, n)", "Div(ss, five)", "number of a row's elements"),
        ("0, 2, 3", "0, 1, 3", "each row"),
        ("0, 2, 3", "1, 2, 3", "each row"),
    ],
)
def test_no_layer_normalization(old: str, new: str, reason: str) -> None:
    text = FUSED.replace(old, new).replace("4] x)", "4] x, float count)")
    text = text.replace("  q = Shape(x)", "  e = Abs(count)  q = Shape(x)")
    text = text.replace(
        "float off", "int64[2] ends = {0, 3}, int64[2] twice = {2, 2}, float five = {5}, float off"
    )
    if "Div(ss, n)" in old:
        text = re.sub(COUNTED, "", text)
    assert reason in misses(parser.parse_model(text), "LayerNormalization")


@pytest.mark.parametrize("count", ["float four = {4}", "float[1] four = {4}"])
def test_layer_normalization_with_a_constant_number_of_elements(count: str) -> None:
    text = FUSED.replace("Div(ss, n)", "Div(ss, four)").replace("float off", f"{count}, float off")
    result = same(model(re.sub(COUNTED, "", text)), (2, 3, 4))
    assert op_types(result) == ["LayerNormalization"]


def test_instance_normalization_by_its_moments() -> None:
    source = model(MOMENTS)
    assert op_types(same(source, (2, 3, 4, 5))) == ["InstanceNormalization"]


@pytest.mark.parametrize("axes", ["[-1, 2]", "[3, -2]"])
def test_instance_normalization_over_axes_from_the_end(axes: str) -> None:
    source = model(MOMENTS.replace("axes = [2, 3]", f"axes = {axes}"))
    assert op_types(same(source, (2, 3, 4, 5))) == ["InstanceNormalization"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("float[n, 3, h, w] x", "float[n, c, h, w] x", "number of channels"),
        ("axes = [2, 3]", "axes = [1, 2]", "axes [1, 2] are not all but the first two"),
        ("axes = [2, 3]", "axes = [3]", "axes [3] are not all but the first two"),
        ("float[3, 1, 1] s", "float[3, 1] s", "scale"),
        ("float[1, 3, 1, 1] b", "float[1, 3, 1] b", "bias"),
        ("float[1, 3, 1, 1] b = {3, 2, 1}", "float[1, 1, 1] b = {3}", "bias"),
    ],
)
def test_no_instance_normalization(old: str, new: str, reason: str) -> None:
    text = MOMENTS.replace(old, new).replace("(float[n, 3, h, w] y)", "(float[n, k, l, m] y)")
    assert reason in misses(model(text), "InstanceNormalization")


def test_no_instance_normalization_of_a_matrix() -> None:
    text = MOMENTS.replace("n, 3, h, w]", "n, 3]").replace("<axes = [2, 3]>", "")
    text = text.replace("[3, 1, 1] s", "[3] s").replace("[1, 3, 1, 1] b", "[1, 3] b")
    assert "no dimensions beside batch" in misses(model(text), "InstanceNormalization")


@pytest.mark.parametrize("form", SCORES)
def test_attention_with_a_mask(form: str) -> None:
    result = same(model(attention(SCORES[form])), (2, 3, 8), (2, 1, 1, 3), (2, 3, 8))
    found = op_types(result)
    assert found.count("Attention") == 1
    assert not {"MatMul", "Softmax", "Div", "Mul", "Sqrt"} & {*found}


@pytest.mark.parametrize("form", ["divided", "by heads"])
def test_attention_to_another_sequence(form: str) -> None:
    text = attention(SCORES[form]).replace("[b, s, 8] z", "[b, t, 8] z")
    assert "mask" in misses(model(text), "Attention")
    source = model(text.replace("[b, 1, 1, s] mask", "[b, 1, 1, t] mask"))
    found = op_types(same(source, (2, 3, 8), (2, 1, 1, 5), (2, 5, 8)))
    assert found.count("Attention") == 1


@pytest.mark.parametrize(
    ("dims", "perm"), [("b, s, 8", "[0, 2, 1]"), ("b, 2, 2, s, 8", "[0, 1, 2, 4, 3]")]
)
def test_attention_of_another_rank(dims: str, perm: str) -> None:
    source = model(
        f"""<ir_version: 7, opset_import: ["": 13]>
        agraph (float[{dims}] q, float[{dims}] k, float[{dims}] v) => (float[{dims}] y) {{
          t = Transpose<perm = {perm}>(k)
          a = MatMul(q, t)
          p = Softmax<axis = -1>(a)
          y = MatMul(p, v)
        }}"""
    )
    assert "are not of [batch, heads, length, size]" in misses(source, "Attention")


@pytest.mark.parametrize("form", SCORES)
def test_attention_without_a_mask(form: str) -> None:
    scores, _, _ = SCORES[form].rpartition(" a = ")
    last = "d" if " d = " in scores else "c"
    text = attention(scores.replace(f" {last} = ", " a = "), "")
    source = model(text.replace("Softmax<axis = 3>", "Softmax<axis = -1>"))
    assert op_types(same(source, (2, 3, 8), (2, 3, 8))).count("Attention") == 1


@pytest.mark.parametrize(
    ("mask", "dims", "expanded"),
    [
        ("1, s", (1, 3), True),
        ("s, s", (3, 3), False),
        ("2, 1, s", (2, 1, 3), True),
        ("1, s, s", (1, 3, 3), False),
        ("b, 2, 1, s", (2, 2, 1, 3), True),
        ("1, 2, s, s", (1, 2, 3, 3), False),
    ],
)
@pytest.mark.parametrize("length", ["s", "3"])
def test_masks_of_any_rank_get_a_row_for_each_query(
    mask: str, dims: tuple[int, ...], expanded: bool, length: str
) -> None:
    text = attention(SCORES["divided"], f"float[{mask}] mask, ")
    text = (
        text.replace(" s]", f" {length}]").replace("s, ", f"{length}, ") if length == "3" else text
    )
    found = op_types(same(parser.parse_model(text), (2, 3, 8), dims, (2, 3, 8)))
    assert found.count("Attention") == 1
    assert ("Expand" in found) == expanded


def test_a_mask_that_is_computed_of_the_length() -> None:
    scores = (
        "c0 = Shape(z) c1 = Gather(c0, index) c2 = Range(begin, c1, step) "
        "c3 = Unsqueeze(c2, row) c4 = Unsqueeze(c2, column) c5 = Greater(c3, c4) "
        "c6 = Cast<to = 1>(c5) mask = Mul(c6, low) "
    )
    text = attention(scores + SCORES["divided"], "").replace(
        "float eight",
        "int64 index = {1}, int64 begin = {0}, int64 step = {1}, int64[1] row = {0}, "
        "int64[1] column = {1}, float low = {-9}, float eight",
    )
    found = op_types(same(model(text), (2, 3, 8), (2, 3, 8)))
    assert found.count("Attention") == 1
    assert "Expand" not in found


def test_a_query_that_sees_no_key() -> None:
    source = model(attention(SCORES["divided"]))
    result = onnxreduce_cli.convert(source, 24, contract=["attention"])
    feeds = {"x": np.ones((1, 2, 8), np.float32), "z": np.ones((1, 2, 8), np.float32)}
    feeds["mask"] = np.full((1, 1, 1, 2), -np.inf, np.float32)
    assert np.isnan(run(source, feeds)["y"]).all()
    assert not np.isnan(run(result, feeds)["y"]).any()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("s] mask", "t] mask", "mask"),
        ("float[b, 1, 1, s] mask", "float[4, b, 1, 1, s] mask", "mask"),
        ("float[b, 1, 1, s] mask", "float[s] mask", "mask"),
        ("float[b, 1, 1, s] mask", "float[b, 1, 1, 1] mask", "mask"),
        ("float[b, 1, 1, s] mask", "float[b, 1, t, s] mask", "mask"),
        ("float[b, 1, 1, s] mask", "float[b, h, 1, s] mask", "mask"),
        ("float[b, 1, 1, s] mask", "float[c, 1, 1, s] mask", "mask"),
        ("[b, s, 8] z", "[c, s, 8] z", "batches"),
        ("eight = {2}", "eight = {0}", "scaled"),
        ("eight = {2}", "eight = {-2}", "scaled"),
        ("v0 = Reshape(z, heads)", "v0 = Reshape(z, more)", "heads"),
        ("k0 = Reshape(z, heads)", "k0 = Reshape(z, more)", "heads"),
        ("Div(c, eight)", "Div(c, e)", "scaled"),
        ("Softmax<axis = 3>", "Softmax<axis = 2>", "last axis"),
        ("Softmax<axis = 3>", "Softmax<axis = 1>", "last axis"),
        ("perm = [0, 2, 3, 1]", "perm = [1, 2, 3, 0]", "another way"),
    ],
)
def test_no_attention(old: str, new: str, reason: str) -> None:
    text = attention(SCORES["divided"], "float[b, 1, 1, s] mask, float e, ").replace(old, new)
    text = text.replace("<int64[4] heads", "<int64[4] more = {0, 0, 1, 8}, int64[4] heads")
    source = parser.parse_model(text.replace("(float[b, 2, s, 4] y)", "(float[n, h, r, m] y)"))
    assert reason in misses(source, "Attention")


@pytest.mark.parametrize(
    ("nodes", "op_type"),
    [
        ("m = Max(x, one) y = Min(m, two)", "Clip"),
        ("m = Max(low, x) y = Min(two, m)", "Clip"),
        ("m = Min(x, two) y = Max(one, m)", "Clip"),
        ("m = Max(x, low) y = Min(m, two)", "Clip"),
        ("m = Min(x, one) y = Max(one, m)", "Clip"),
        ("m = Mul(x, a) p = Add(m, h) y = Clip(p, zero, one0)", "HardSigmoid"),
        ("m = Mul(x, a) p = Add(h, m) l = Max(p, zero) y = Min(l, one)", "HardSigmoid"),
        ("p = Add(x, three) c = Clip(p, zero, six) y = Div(c, six)", "HardSigmoid"),
        ("p = Add(x, three) c = Clip(p, zero, six) y = Mul(c, sixth)", "HardSigmoid"),
        ("p = Add(x, three) c = Clip(p, zero, six) m = Mul(x, c) y = Div(m, six)", "HardSwish"),
        ("p = Add(x, three) c = Clip(p, zero, six) m = Div(c, six) y = Mul(x, m)", "HardSwish"),
    ],
)
def test_limits(nodes: str, op_type: str) -> None:
    text = (
        LIMITS.format(nodes)
        .replace("one0", "low0")
        .replace("float a", "float low0 = {1}, float sixth = {0.16666667}, float a")
    )
    assert op_types(same(model(text), (3, 4), ())) == [op_type]


@pytest.mark.parametrize(
    "nodes",
    [
        "m = Min(x, one) y = Max(two, m)",
        "m = Min(x, two) y = Max(low, m)",
        "m = Max(x, x) y = Min(m, two)",
        "m = Max(x, four) y = Min(m, two)",
        "m = Max(x, one) y = Min(m, four)",
        "m = Max(x, one) y = Min(m, cube)",
        "m = Max(x, one) y = Min(m, open)",
        "m = Max(two, one) y = Min(m, six)",
    ],
)
def test_no_limits(nodes: str) -> None:
    text = LIMITS.format(nodes).replace("float low)", "float low, float[n] open)")
    text = text.replace(
        "float a", "float[4] four = {1, 1, 1, 1}, float[1, 1, 1] cube = {2}, float a"
    )
    assert misses(parser.parse_model(re.sub(r"\[3, 4\] y", "[p, q] y", text)), "Clip")


@pytest.mark.parametrize("half", [1, 2, 3, 5])
def test_rotary_embedding(half: int) -> None:
    text = ROTARY.replace("s, 4]", f"s, {2 * half}]").replace("s, 2] f", f"s, {half}] f")
    source = model(text.replace("half = {2}", f"half = {{{half}}}"))
    result = same(source, (2, 2, 3, 2 * half), (2, 3, half))
    assert op_types(result) == ["Cos", "Sin", "RotaryEmbedding"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("axis = {3}", "axis = {-1}"),
        ("Concat<axis = -1>(n, u)", "Concat<axis = 3>(n, u)"),
        ("Concat<axis = -1>(f, f)", "Concat<axis = 2>(f, f)"),
        ("{9223372036854775807}", "{4}"),
        (", axis, one)", ", axis)"),
    ],
)
def test_rotary_embedding_in_other_words(old: str, new: str) -> None:
    result = same(model(ROTARY.replace(old, new)), (2, 2, 3, 4), (2, 3, 2))
    assert op_types(result) == ["Cos", "Sin", "RotaryEmbedding"]


def test_rotary_embedding_with_axes_as_an_attribute() -> None:
    text = re.sub(r"Unsqueeze\((\w+), one\)", r"Unsqueeze<axes = [1]>(\1)", ROTARY)
    result = same(model(text.replace(": 13]", ": 11]")), (2, 2, 3, 4), (2, 3, 2))
    assert op_types(result) == ["Cos", "Sin", "RotaryEmbedding"]


def test_halves_of_a_computed_size() -> None:
    text = ROTARY.replace("int64[1] half = {2}", "int64 three = {3}, int64 two = {2}")
    text = text.replace(
        "  e = ", "  h0 = Shape(x) h1 = Gather(h0, three) h2 = Div(h1, two)\n  e = "
    )
    text = text.replace("  v = ", "  half = Unsqueeze(h2, zero)\n  v = ")
    result = same(model(text), (2, 2, 3, 4), (2, 3, 2))
    assert op_types(result) == ["Cos", "Sin", "RotaryEmbedding"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("float[b, s, 2] f", "float[1, s, 2] f", "angles"),
        ("4] x, float[b, s, 2] f", "5] x, float[b, s, h] f", "even size"),
        ("Concat<axis = -1>(f, f)", "Concat<axis = -1>(f, g)", "second half"),
        ("half = {2}", "half = {1}", "two halves"),
        ("s0 = Sin(e)", "s0 = Sin(d)", "different angles"),
        ("s0 = Sin(e)", "s0 = Cos(e)", "no Sin"),
        ("int64[1] axis = {3}", "int64[1] axis = {2}", "two halves"),
        ("Slice(x, half, end, axis, one)", "Slice(x, half, end, axis, half)", "two halves"),
        ("Slice(x, zero, half", "Slice(x, zero, one", "two halves"),
        ("Slice(x, zero, half", "Slice(x, one, half", "two halves"),
        ("Slice(x, half, end", "Slice(x, one, end", "two halves"),
        ("float[b, s, 2] f", "float[b, t, 2] f", "angles"),
        ("float[b, s, 2] f", "float[b, s, 4] f", "angles"),
        ("Concat<axis = -1>(n, u)", "Concat<axis = 2>(n, u)", "another axis"),
        ("Concat<axis = -1>(f, f)", "Concat<axis = 1>(f, f)", "second half"),
        ("Concat<axis = -1>(f, f)", "Concat<axis = -1>(f, f, f)", "second half"),
        ("Unsqueeze(c0, one)", "Unsqueeze(c0, zero)", "second half"),
        ("Unsqueeze(c0, one)", "Unsqueeze(c0, half)", "second half"),
    ],
)
def test_no_rotary_embedding(old: str, new: str, reason: str) -> None:
    text = ROTARY.replace(old, new).replace(
        "e = Concat", "g = Abs(f) d = Concat<axis = -1>(g, g) e = Concat", 1
    )
    text = text.replace("(float[b, 2, s, 4] y)", "(float[n, h, r, m] y)")
    assert reason in misses(parser.parse_model(text), "RotaryEmbedding")


def test_groups_of_names() -> None:
    assert registry.operators(["attention"]) == {"Attention", "RotaryEmbedding"}
    assert {"Clip", "HardSigmoid", "Softplus"} < registry.operators(["activations"])
    found = registry.operators(["normalizations"])
    assert {"GroupNormalization", "InstanceNormalization"} < found
