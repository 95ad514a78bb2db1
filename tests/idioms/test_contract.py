"""`contract=`: the nodes that exporters write for a composite operator become one again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnxreduce_cli
from onnxreduce_cli.api.checks import check_conversion, check_sites
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.pairs import distinct
from onnxreduce_cli.errors import InvalidModelError, UsageError
from onnxreduce_cli.idioms import registry
from onnxreduce_cli.idioms.registry import GROUPS, IDIOMS
from onnxreduce_cli.idioms.tracing import Definition, trace
from tests.idioms.written import X, plain_forms, written
from tests.support import converts, model, one_node, op_types, run

pytestmark = pytest.mark.newest

#: Not traced before a test is run: what is traced tells which test runs the form.
FORMS = [
    pytest.param(idiom, form, id=f"{idiom.op_type}-{index}")
    for idiom in IDIOMS
    for index, form in enumerate(plain_forms(idiom))
]


def contracted(source: ModelProto, *names: str) -> list[str]:
    """The operators of a model at opset 24, contracted."""
    return op_types(onnxreduce_cli.convert(source, 24, contract=names or ["all"]))


@pytest.mark.parametrize(("idiom", "form"), FORMS)
def test_every_form_becomes_one_node_and_is_checked(idiom: Any, form: Definition) -> None:
    pattern = trace(form)
    source = written(pattern)
    conversion = Conversion(source, 24, Options(contract=["all"]))
    report = check_sites(conversion)
    assert not report.unchecked
    assert not report.failures
    result = onnxreduce_cli.convert(source, 24, contract=["all"])
    assert op_types(result) == [idiom.op_type]
    feeds = {name: X if index == 0 else X[0, index] for index, name in enumerate(pattern.inputs)}
    (before,), (after,) = run(source, feeds).values(), run(result, feeds).values()
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions_keep_their_dimensions_or_not(keepdims: int) -> None:
    names = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
    for idiom in IDIOMS:
        for pattern in idiom.patterns if idiom.op_type in names else ():
            result = onnxreduce_cli.convert(
                written(pattern, keepdims=keepdims), 18, contract=["family"]
            )
            found = run(result, {"data": abs(X)})
            assert found[pattern.result].shape == ((2, 3, 1) if keepdims else (2, 3))


@pytest.mark.parametrize(
    ("op_type", "since", "names"),
    [
        ("LayerNormalization", 17, "xsb"),
        ("LayerNormalization", 17, "xs"),
        ("RMSNormalization", 23, "xs"),
        ("Gelu", 20, "x"),
        ("HardSwish", 14, "x"),
        ("Mish", 18, "x"),
        ("Swish", 24, "x"),
    ],
)
@pytest.mark.parametrize("opset", [9, 13])
def test_what_is_written_out_contracts_back(
    op_type: str, since: int, names: str, opset: int
) -> None:
    inputs = {name: X if name == "x" else X[0, 0] for name in names}
    lower = onnxreduce_cli.convert(one_node(op_type, since, inputs), opset)
    assert contracted(lower) == [op_type]


LAYER = """<ir_version: 8, opset_import: ["": 13]>
agraph (float[8, 8, 8] x, float[8] s, float[8] b) => (float[8, 8, 8] y)
<float two = {2.0}, float e = {0.001}> {
  m = ReduceMean<axes = [-1]> (x)
  d = Sub(x, m)
  q = Pow(d, two)
  v = ReduceMean<axes = [-1]> (q)
  w = Add(v, e)
  r = Sqrt(w)
  n = Div(d, r)
  f = Mul(n, s)
  y = Add(f, b)
}"""


def test_the_last_node_gives_name_and_metadata() -> None:
    source = model(LAYER)
    source.graph.node[-1].name = "last"
    source.graph.node[-1].metadata_props.add(key="a", value="b")
    (node,) = onnxreduce_cli.convert(source, 17, contract=["LayerNormalization"]).graph.node
    assert (node.name, node.op_type) == ("last", "LayerNormalization")
    assert {item.name: item.i for item in node.attribute if item.name == "axis"} == {"axis": -1}
    assert node.metadata_props[0].value == "b"


def test_the_plan_lists_it() -> None:
    (change,) = onnxreduce_cli.plan(model(LAYER), 17, contract=["all"]).changes
    assert change.result == ("LayerNormalization",)
    assert change.absorbed[:3] == ("ReduceMean", "Sub", "Pow")
    assert " with ReduceMean, Sub, Pow, ... before it → LayerNormalization (-" in change.summary


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("(q)", "(q)", ""),
        ("<axes = [-1]> (x)", "<axes = [1]> (x)", "different axes"),
        ("axes = [-1]", "axes = [1]", "not the last"),
        ("<axes = [-1]> (q)", "<axes = [-1], keepdims = 0> (q)", "keepdims"),
        ("{2.0}", "{2.5}", "is 2.5, not 2"),
        ("float[8] s", "float[8, 8] s", "scale"),
        ("float[8] s", "float[1] s", "scale"),
        ("float[8, 8, 8] x", "float[8, 8, n] x", "scale"),
        ("Div(d, r)", "Div(r, d)", None),
        ("v = ", "k = Identity(q) v = ", "read elsewhere"),
    ],
)
def test_near_misses_stay(old: str, new: str, reason: str | None) -> None:
    conversion = Conversion(
        model(LAYER.replace(old, new)), 17, Options(contract=["LayerNormalization"])
    )
    operators = [operator for site in conversion.sites for operator in site.operators]
    assert ("LayerNormalization" in operators) == (reason == "")
    near = [item.reason for item in conversion.near_misses]
    if reason:
        assert any(reason in item for item in near)
    else:
        assert not near


def test_an_inner_value_that_is_an_output_stays() -> None:
    source = model(LAYER)
    source.graph.output.add().CopyFrom(helper.make_tensor_value_info("n", 1, [8, 8, 8]))
    assert "LayerNormalization" not in contracted(source)


def test_a_constant_that_adds_dimensions() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 18]>
        agraph (float[4] x) => (float[1, 4] y) <float[1, 1] a = {1.7}> {
          m = Mul(x, a)
          g = Sigmoid(m)
          y = Mul(x, g)
        }"""
    )
    conversion = Conversion(source, 24, Options(contract=["Swish"]))
    assert not [site for site in conversion.sites if site.absorbed]
    assert "may add dimensions" in conversion.near_misses[0].reason


def test_a_constant_of_no_elements_is_no_number() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 18]>
        agraph (float[1] x) => (float[0] y) <float[0] a = {}> {
          m = Mul(x, a)
          g = Sigmoid(m)
          y = Mul(x, g)
        }"""
    )
    assert not Conversion(source, 24, Options(contract=["Swish"])).near_misses


@pytest.mark.parametrize("alpha", [0.7, 1.7])
def test_a_number_that_no_attribute_holds(alpha: float) -> None:
    """The next float32 is below the one, and above the other."""
    source = model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        agraph (double[4] x) => (double[4] y) <double a = {{{alpha}}}> {{
          m = Mul(x, a)
          g = Sigmoid(m)
          y = Mul(x, g)
        }}"""
    )
    (near,) = Conversion(source, 24, Options(contract=["Swish"])).near_misses
    assert near.reason == f"its alpha is {alpha} in double, which no attribute can hold"


def test_a_bias_of_another_shape_is_added_to_one_without() -> None:
    source = model(LAYER.replace("float[8] b", "float[8, 8, 8] b"))
    assert contracted(source) == ["LayerNormalization", "Add"]


def test_doubles_stay_where_the_operator_would_compute_in_float() -> None:
    source = model(LAYER.replace("float", "double"))
    assert "LayerNormalization" not in contracted(source)


@pytest.mark.parametrize(
    ("op_type", "first"), [("Softmax", 13), ("LayerNormalization", 17), ("GroupNormalization", 21)]
)
def test_the_first_opset(op_type: str, first: int) -> None:
    found = [idiom for idiom in IDIOMS if idiom.op_type == op_type]
    assert {(idiom.exists(first - 1), idiom.exists(first)) for idiom in found} == {(False, True)}


def test_over_two_axes_with_parameters_of_three_dimensions() -> None:
    text = LAYER.replace("[-1]", "[-2, -1]")
    text = text.replace("[8] s", "[1, 8, 8] s").replace("[8] b", "[1, 8, 8] b")
    assert sorted(contracted(model(text))) == ["LayerNormalization", "Squeeze", "Squeeze"]


RMS = """<ir_version: 8, opset_import: ["": 18]>
agraph (float[8, 8, 8] x, float[8] s) => (float[8, 8, 8] y)
<int64[1] axes = {-1}, float two = {2.0}, float e = {0.001}> {
  q = Pow(x, two)
  v = ReduceMean(q, axes)
  w = Add(v, e)
  r = Sqrt(w)
  n = Div(x, r)
  y = Mul(n, s)
}"""

#: By channels; of rank 3, as the data.
INSTANCES = (
    LAYER.replace("axes = [-1]", "axes = [2]")
    .replace("[8] s", "[8, 1] s")
    .replace("[8] b", "[8, 1] b")
)


@pytest.mark.parametrize(
    ("text", "operator"), [(LAYER, "LayerNormalization"), (RMS, "RMSNormalization")]
)
@pytest.mark.parametrize("parameter", ["[d]", "[1, d]", "[1, 1, d]"])
def test_parameters_of_symbolic_sizes(text: str, operator: str, parameter: str) -> None:
    text = text.replace("[8, 8, 8]", "[n, m, d]")
    source = model(text.replace("[8] s", f"{parameter} s").replace("[8] b", f"{parameter} b"))
    dims = {"d": 5, "1": 1}
    shape = [dims[dim] for dim in parameter.strip("[]").split(", ")]
    feeds = {
        "x": np.random.default_rng(1).normal(size=(2, 3, 5)).astype(np.float32),
        "s": np.linspace(-3, 3, 5, dtype=np.float32).reshape(shape),
        "b": np.linspace(-1, 2, 5, dtype=np.float32).reshape(shape),
    }
    result = onnxreduce_cli.convert(source, 24, contract=[operator])
    assert set(op_types(result)) - {"Squeeze"} == {operator}
    before, after = (run(found, feeds)["y"] for found in (source, result))
    assert after.shape == before.shape == (2, 3, 5)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        (LAYER, "LayerNormalization"),
        (RMS, "RMSNormalization"),
        (INSTANCES, "InstanceNormalization"),
    ],
)
def test_a_parameter_of_a_higher_rank_raises_that_of_the_result(text: str, operator: str) -> None:
    assert operator in contracted(model(text), operator)
    text = text.replace("[8] s", "[1, 1, 1, 8] s").replace("[8, 1] s", "[1, 1, 8, 1] s")
    source = model(text.replace("=> (float[8, 8, 8] y)", "=> (float[1, 8, 8, 8] y)"))
    conversion = Conversion(source, 24, Options(contract=[operator]))
    assert not [site for site in conversion.sites if site.absorbed]
    assert any("a higher rank than its data" in item.reason for item in conversion.near_misses)


def test_halves_of_either_kind_are_contracted() -> None:
    for dtype, two, epsilon in (("float16", 0x4000, 0x1419), ("bfloat16", 0x4000, 0x3A83)):
        text = (
            LAYER.replace("float", dtype).replace(": 13]", ": 17]").replace("{2.0}", f"{{{two}}}")
        )
        source = model(text.replace("{0.001}", f"{{{epsilon}}}"))
        (site,) = Conversion(source, 17, Options(contract=["all"])).sites
        assert site.operators == ("LayerNormalization",)


def test_nothing_below_the_opset_that_has_it() -> None:
    assert not onnxreduce_cli.plan(model(LAYER), 16, contract=["all"]).changes


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean LayerNormalization"):
        onnxreduce_cli.plan(model(LAYER), 17, contract=["LayerNormalisation"])
    assert registry.operators(["family", "Gelu"]) == GROUPS["family"] | {"Gelu"}


def test_the_documentation_names_them_all() -> None:
    text = Path(__file__).parents[2].joinpath("docs", "converting.md").read_text(encoding="utf-8")
    (section,) = (part for part in text.split("\n## ") if "`--contract` goes" in part)
    for name in (*GROUPS, *GROUPS["all"]):
        assert name in section


def test_a_contraction_that_fails_its_check_is_left_and_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layer = next(item for item in IDIOMS if item.op_type == "LayerNormalization")
    right = layer.condition
    monkeypatch.setitem(
        layer.__dict__, "condition", lambda *given: {**right(*given), "epsilon": 0.5}
    )
    source = model(LAYER)
    onnx.save(source, tmp_path / "m.onnx")
    done = onnxreduce_cli.convert_file(
        tmp_path / "m.onnx", tmp_path / "out.onnx", 17, contract=["all"]
    )
    result = onnx.load(tmp_path / "out.onnx")
    assert op_types(result) == op_types(source)
    assert done.checks.failures == () == done.plan.changes
    remark = done.checks.remarks[0]
    assert "is not contracted to LayerNormalization, as before and after differ" in remark
    miss = done.plan.near_misses[0]
    assert "might end a LayerNormalization, but before and after differ" in miss


def test_a_contraction_that_cannot_be_checked_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct, "estimated_work", lambda model: 1 << 40)
    conversion = Conversion(model(LAYER), 17, Options(contract=["all"]))
    report = check_conversion(conversion, strict=True)
    assert report is not None
    assert report.sites == 0
    assert "it cannot be checked: its tensors are too large to try" in report.remarks[0]
    assert not conversion.rewrites_nodes


def test_in_a_branch() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 18]>
        agraph (bool c, float[4] x) => (float[4] y) {
          y = If (c) <
            then_branch = then () => (float[4] a) { g = Sigmoid(x) a = Mul(g, x) },
            else_branch = other () => (float[4] a) { a = Identity(x) }
          >
        }"""
    )
    result = onnxreduce_cli.convert(source, 24, contract=["activations"])
    assert op_types(result).count("Swish") or _inner(result) == ["Swish"]


def _inner(found: ModelProto) -> list[str]:
    return [node.op_type for node in found.graph.node[0].attribute[0].g.node]


def test_stated_types_that_contradict_the_nodes_are_refused() -> None:
    source = model(LAYER)
    source.graph.value_info.add().CopyFrom(helper.make_tensor_value_info("f", 1, [4]))
    with pytest.raises(InvalidModelError):
        onnxreduce_cli.plan(source, 17, contract=["all"])


@pytest.mark.parametrize(("idiom", "form"), FORMS)
def test_what_is_contracted_in_double_computes_as_exactly(idiom: Any, form: Definition) -> None:
    """No attribute holds every double, and function bodies hold constants of float."""
    pattern = trace(form)
    source = written(pattern)
    for value in (*source.graph.input, *source.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for tensor in source.graph.initializer:
        number = pattern.numbers.get(tensor.name)
        if number is not None:
            number = {"epsilon": 1e-3, "alpha": 1.7, "beta": 0.3}.get(str(number), number)
            tensor.CopyFrom(numpy_helper.from_array(np.array(number, np.float64), tensor.name))
    result = onnxreduce_cli.convert(source, 24, contract=["all"])
    inexact = pattern.numbers.keys() & {"number alpha", "number epsilon", "number 0.044715"}
    inexact |= pattern.numbers.keys() & {"number 6"}
    assert (op_types(result) == [idiom.op_type]) == (not inexact)


def test_what_a_step_writes_is_contracted() -> None:
    x = np.random.default_rng(0).normal(size=(1, 1, 4, 4)).astype(np.float32)
    grid = np.random.default_rng(1).uniform(-1.5, 1.5, (1, 3, 3, 2)).astype(np.float32)
    inputs = {"x": x, "grid": grid}
    source = one_node("GridSample", 16, inputs, padding_mode="border")
    result = converts(source, 13, inputs, contract=["Clip"])
    assert "Clip" in op_types(result)
    assert {"Max", "Min"}.isdisjoint(op_types(result))


def test_no_operator_is_contracted_to_that_the_runtime_refuses() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 8)).astype(np.float32)
    inputs = dict.fromkeys("qkv", x)
    source = onnxreduce_cli.convert(one_node("Attention", 23, inputs), 22)
    options: dict[str, Any] = {"contract": ["all"], "opset": 23, "check": False}
    assert op_types(onnxreduce_cli.convert(source, **options)) == ["Attention"]
    result = onnxreduce_cli.convert(source, runtime="opencv==4.10", **options)
    assert "Attention" not in op_types(result)
