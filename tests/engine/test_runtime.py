"""Conversions for a runtime: which opset, and what is written in another way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper

import onnxreduce_cli
from onnxreduce_cli import ConversionError, schemas
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.targets import requirement
from onnxreduce_cli.targets.allowed import operator_list_target
from onnxreduce_cli.targets.reading import parse_runtime
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.rows import FACTS
from onnxreduce_cli.verification.whole.equivalence import verify
from tests.support import assert_same, model, one_node, op_types, run

HEAD = """
title = "Odd"
[sources.here]
kind = "measured"
where = "a test"
date = "2026-11-22"
[every]
source = "here"
"""


def odd(quirks: str = "", *, taken: Sequence[str] = (), **facts: Any) -> Target:
    """A runtime of some facts and quirks, each ``operators|opsets|form|effect|what``.

    It takes all operators, or only some.
    """
    lines = [f"{name} = {facts.get(name, 'not known')!r}".replace("'", '"') for name in FACTS]
    text = HEAD + "\n".join(lines) + '\n[[row]]\nversion = "1"\n'
    for line in quirks.split():
        operators, opsets, form, effect, *said = line.split("|")
        text += (
            f'[[quirk]]\noperators = ["{operators}"]\nopsets = "{opsets}"\n'
            f'form = "{form.replace("_", " ")}"\neffect = "{effect}"\n'
            f'what = "{said[0].replace("_", " ") if said else "fails"}"\n'
            'source = "here"\n'
        )
    runtime = parse_runtime("odd", text)
    table = operator_list_target(taken or schemas.operators()).table
    return Target(runtime, "odd 1", runtime.rows, table=table)


@pytest.fixture
def convert_for(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Converts for a runtime of the test's, checked, and compares the whole models as well."""

    def call(source: ModelProto, target: Target, **options: Any) -> ModelProto:
        monkeypatch.setattr(requirement, "find_target", lambda _: target)
        made = onnxreduce_cli.convert(source, runtime="odd", **options)
        onnx.checker.check_model(made, full_check=True)
        report = verify(source, made, trials=1)
        assert report.exit_code == 0
        return made

    return call


def opset(made: ModelProto) -> int:
    return made.opset_import[0].version


def graph(nodes: str, version: int, ir_version: int = 8) -> ModelProto:
    return model(f"""<ir_version: {ir_version}, opset_import: ["" : {version}]>
    g (float[2,3,4] x) => (float[a,b,c] y) {{ {nodes} }}""")


MAX_13 = "y = ReduceMax<axes=[1]>(x)"
MAX_18 = "axes = Constant<value = int64[1] {1}>() y = ReduceMax(x, axes)"


def test_a_model_that_is_taken_as_it_is_stays(convert_for) -> None:
    source = graph(MAX_13, 13)
    assert convert_for(source, odd(newest=23, best=11)) == source


def test_the_newest_opset_that_it_takes(convert_for) -> None:
    assert opset(convert_for(graph(MAX_18, 18), odd(newest=13))) == 13
    assert opset(convert_for(graph(MAX_18, 18), odd(newest=13, best=11))) == 13
    assert opset(convert_for(graph(MAX_13, 13), odd(oldest=16, newest=17))) == 16


def test_an_opset_at_which_it_gets_nothing_wrong(convert_for) -> None:
    quirks = "ReduceMax|18-|axes_input|wrong"
    assert opset(convert_for(graph(MAX_18, 18), odd(quirks, newest=23))) == 17
    assert opset(convert_for(graph(MAX_18, 18), odd(quirks, newest=23, best=11))) == 17


def test_the_opset_that_it_is_best_at_where_nothing_is_known(convert_for) -> None:
    runtime = replace(odd(newest=23, best=11), table=None)
    assert opset(convert_for(graph(MAX_13, 13), runtime)) == 11


def test_an_operator_is_written_out_where_it_is_taken_at_no_opset(convert_for) -> None:
    taken = {*schemas.operators()} - {"Gelu"}
    made = convert_for(graph("z = Gelu(x) y = Identity(z)", 20), odd(newest=23, taken=[*taken]))
    assert opset(made) == 20
    assert "Gelu" not in op_types(made)


def test_the_nearest_opset_at_which_each_operator_is_taken(convert_for) -> None:
    taken = [*({*schemas.operators()} - {"Clip"}), "Clip@-12"]
    assert opset(convert_for(graph("y = Clip(x)", 17), odd(newest=23, taken=taken))) == 12


def test_the_fewest_nodes_are_written_in_another_way(convert_for) -> None:
    quirks = "Softmax|-12|flattening|wrong ReduceMax|13-|any|refused"
    nodes = "m = ReduceMax<axes=[2]>(x) s = Softmax<axis=1>(x) y = Add(m, s)"
    made = convert_for(graph(nodes, 11), odd(quirks, newest=23))
    assert opset(made) == 11
    assert op_types(made) == ["ReduceMax", "Reshape", "Softmax", "Reshape", "Add"]


def test_the_plan_says_why() -> None:
    source = graph(MAX_18, 18)
    plan = onnxreduce_cli.plan(source, runtime="opencv==4.6")
    assert (plan.target, plan.choice) == (
        17,
        "for opencv 4.6: at the model's own opset, 18, it would get wrong or refuse 1 ReduceMax: "
        "reduces all axes",
    )
    assert "does not take the model's own opset, 18" in (
        onnxreduce_cli.plan(source, runtime="onnxruntime==1.8").choice
    )
    assert onnxreduce_cli.plan(source, runtime="onnxruntime==1.20").choice == (
        "for onnxruntime 1.20: the model's own opset, 18, stays"
    )


def test_without_another_way_it_blocks(convert_for) -> None:
    with pytest.raises(ConversionError) as error:
        convert_for(graph("y = Elu(x)", 13), odd("Elu||any|wrong", newest=13))
    (blocker,) = error.value.blockers
    assert blocker.reason == (
        "odd 1 gets it wrong (fails; measured), and nothing else can be written in its place at "
        "opset 13"
    )
    with pytest.raises(ConversionError, match="odd 1 does not take it"):
        convert_for(graph("y = Elu(x)", 13), odd(newest=13, taken=["Abs"]))


def test_an_opset_that_the_user_names(convert_for) -> None:
    quirks = "Hardmax||any|refused"
    source = graph("y = Hardmax(x)", 13)
    made = convert_for(source, odd(quirks, newest=18), opset=17)
    assert opset(made) == 17
    assert "Hardmax" not in op_types(made)
    with pytest.raises(UsageError, match="odd 1 takes opset 7 to 18, not 19"):
        convert_for(source, odd(newest=18), opset=19)


@pytest.mark.parametrize(
    ("nodes", "version", "quirk", "expected"),
    [
        ("y = ReduceSum<noop_with_empty_axes=1>(x)", 13, "ReduceSum||noop|wrong", ["Identity"]),
        ("y = ReduceL1<noop_with_empty_axes=1>(x)", 18, "ReduceL1||noop|wrong", ["Abs"]),
        (
            "y = Softmax<axis=1>(x)",
            18,
            "Softmax||inner_axis|wrong",
            ["Transpose", "Softmax", "Transpose"],
        ),
        ("y = Gelu(x)", 20, "Gelu||any|refused", ["Div", "Erf", "Add", "Mul", "Mul"]),
        ("y = Mish(x)", 18, "Mish||any|refused", ["Softplus", "Tanh", "Mul"]),
        ("y = ReduceL1(x)", 18, "ReduceL1||any|refused", ["Abs", "ReduceSum"]),
        ("y = ReduceL1<axes=[1]>(x)", 11, "ReduceL1||any|refused", ["Abs", "ReduceSum"]),
        ("e = Constant<value_float=3.0>() y = Pow(x, e)", 13, "Pow||any|wrong", ["Mul", "Mul"]),
        ("e = Constant<value_float=2.0>() y = Pow(x, e)", 13, "Pow||any|wrong", ["Mul"]),
        (
            "s = Constant<value_floats=[1.0, 1.0, 1.0]>() y = InstanceNormalization(x, s, s)",
            13,
            "InstanceNormalization||no_epsilon|refused",
            ["Constant", "InstanceNormalization"],
        ),
        (
            's = Constant<value_floats=[1.0, 2.0, 2.0]>() y = Resize<mode="linear">(x, "", s)',
            13,
            "Resize||linear,_no_coordinates|refused",
            ["Constant", "Resize"],
        ),
        (
            "c = Constant<value_floats=[1.0, 2.0, 3.0, 4.0]>() y = Sub(x, c)",
            13,
            "Sub||smaller_constant|refused",
            ["Sub"],
        ),
        (
            "z = Neg(x) s = HardSigmoid<alpha=0.16666667, beta=0.5>(z) y = Mul(x, s)",
            11,
            "HardSigmoid||default_beta|wrong",
            ["Neg", "HardSigmoid", "Mul"],
        ),
        (
            "y = ReduceMean<axes=[2, 0]>(x)",
            11,
            "ReduceMean||outer_axes|refused",
            ["ReduceMean", "ReduceMean"],
        ),
        (
            "axes = Constant<value_ints=[-3, 1]>() r = ReduceSum<keepdims=0>(x, axes) "
            "s = Constant<value_ints=[1, 1, 4]>() y = Reshape(r, s)",
            13,
            "ReduceSum||outer_axes|refused",
            ["ReduceSum", "ReduceSum", "Squeeze", "Constant", "Reshape"],
        ),
    ],
)
def test_written_in_another_way(
    convert_for, nodes: str, version: int, quirk: str, expected: list[str]
) -> None:
    made = convert_for(graph(nodes, version), odd(quirk, oldest=version, newest=version))
    assert op_types(made) == expected


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    ("op_type", "part"), [("ReduceL1", "Abs"), ("ReduceL2", "Abs"), ("ReduceSumSquare", "Mul")]
)
def test_a_reduction_of_single_elements(
    convert_for, op_type: str, part: str, keepdims: int
) -> None:
    given, made = "[1, 3, 1, 5]", "[1, 3, 1, 5]" if keepdims else "[3, 5]"
    source = model(f"""<ir_version: 7, opset_import: ["" : 13]>
    g (float{given} x) => (float{made} y) {{
        y = {op_type}<axes=[0, -2], keepdims={keepdims}>(x)
    }}""")
    found = convert_for(source, odd(f"{op_type}||single_elements|wrong", newest=13))
    assert op_types(found) == ([part] if keepdims else ["Squeeze", part])


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("dims", ["2,3,4", "2,3,c", "n,3,4"])
def test_flattening(convert_for, op_type: str, axis: int, dims: str) -> None:
    source = model(f"""<ir_version: 7, opset_import: ["" : 11]>
    g (float[{dims}] x) => (float[{dims}] y) {{ y = {op_type}<axis={axis}>(x) }}""")
    made = convert_for(source, odd(f"{op_type}||flattening|wrong", newest=11))
    assert op_types(made)[-1] == "Reshape"
    assert made.graph.output == source.graph.output


@pytest.mark.parametrize("version", [7, 11, 13, 18])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_hardmax_by_comparison(convert_for, version: int, axis: int) -> None:
    source = graph(f"y = Hardmax<axis={axis}>(x)", version)
    target = odd("Hardmax||any|refused", oldest=version, newest=version)
    made = convert_for(source, target)
    data = np.array([[1, 2, 2], [3, np.inf, np.inf], [-np.inf] * 3], np.float32)
    data = np.broadcast_to(data.reshape(3, 3, 1)[:2], (2, 3, 4)).copy()
    assert "Hardmax" not in op_types(made)
    for executor in ("onnxruntime", "numpy"):
        ours, theirs = (
            onnxreduce_cli.run(item, {"x": data}, executor=executor)["y"] for item in (made, source)
        )
        np.testing.assert_array_equal(ours, theirs)


def test_the_ir_version_is_one_that_it_takes(convert_for) -> None:
    made = convert_for(graph(MAX_13, 13, ir_version=10), odd(newest=23, ir=8))
    assert made.ir_version == 7
    assert convert_for(graph(MAX_13, 13, ir_version=7), odd(newest=23, ir=8)).ir_version == 7
    with pytest.raises(ConversionError, match="takes IR version 8 at most, not 9"):
        convert_for(graph(MAX_13, 13), odd(newest=23, ir=8), ir_version=9)


def test_a_newer_ai_onnx_ml_is_lowered() -> None:
    nodes = [helper.make_node("Scaler", ["x"], ["y"], "scale", domain="ai.onnx.ml", offset=[0.0])]
    value = helper.make_tensor_value_info
    ends = [[value(name, onnx.TensorProto.FLOAT, [2])] for name in ("x", "y")]
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 3)]
    source = helper.make_model(
        helper.make_graph(nodes, "g", *ends), opset_imports=imports, ir_version=7
    )
    plan = onnxreduce_cli.plan(source, runtime="onnxruntime==1.8")
    assert (plan.ml_opset, plan.target_ml_opset, plan.blockers) == (3, 2, ())
    assert onnxreduce_cli.plan(source, runtime="onnxruntime==1.14").target_ml_opset == 3
    with pytest.raises(UsageError, match=r"onnxruntime 1\.8 takes ai\.onnx\.ml 2 at most, not 3"):
        onnxreduce_cli.plan(source, runtime="onnxruntime==1.8", ml_opset=3)


def test_a_constant_is_made_as_large_as_the_result(convert_for) -> None:
    source = graph("c = Constant<value_floats=[1.0, 2.0, 3.0, 4.0]>() y = Div(x, c)", 13)
    made = convert_for(source, odd("Div||smaller_constant|refused", newest=13))
    (whole,) = made.graph.initializer
    assert list(whole.dims) == [2, 3, 4]


@pytest.mark.parametrize("axes", [[1], [0, 2], [3], [0, 1, 2, 3]])
@pytest.mark.parametrize("dims", ["2,3,4,5", "n,3,4,5"])
@pytest.mark.parametrize(
    ("text", "form", "op_types_"),
    [
        ("y = Sub(x, m)", "broadcast", {"Sub"}),
        ("y = Sub(m, x)", "broadcast", {"Neg", "Add"}),
        ("y = Add(m, x)", "broadcast", {"Add"}),
        ("y = Max(m, x)", "broadcast_before_image", {"Max"}),
    ],
)
def test_a_broadcast_operand_is_a_row_or_a_number_for_each_image(
    convert_for, text: str, form: str, op_types_: set[str], axes: list[int], dims: str
) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 13]>
    g (float[{dims}] x) => (float[a,b,c,d] y) {{ m = ReduceMax<axes={axes}>(x) {text} }}""")
    op_type = text.split("(")[0].split()[-1]
    made = convert_for(source, odd(f"{op_type}|1-|{form}|refused", oldest=13, newest=13))
    assert {*op_types(made)} - {"ReduceMax", "Reshape", "Transpose"} == op_types_
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    np.testing.assert_array_equal(run(made, {"x": x})["y"], run(source, {"x": x})["y"])


def test_what_is_written_is_looked_at_as_well(convert_for) -> None:
    quirks = "Hardmax||any|refused Cast||any|refused"
    with pytest.raises(ConversionError, match=r"Hardmax node .*odd 1 fails"):
        convert_for(graph("y = Hardmax(x)", 13), odd(quirks, newest=13))


def test_a_node_of_our_making_is_named_where_the_quirk_says_it(convert_for) -> None:
    source = graph("y = Hardmax(x)", 13)
    texts = {"ends_its_converter": "ends its converter", "fails_on_it": "fails on Cast"}
    for what, said in texts.items():
        quirks = f"Hardmax||any|refused Cast||any|refused|{what}"
        with pytest.raises(ConversionError, match=f"Hardmax node .*odd 1 {said}"):
            convert_for(source, odd(quirks, newest=13))


def test_only_operators_that_are_allowed() -> None:
    source = graph("a = Hardmax(x) y = Gelu(a)", 20)
    basic = ["ReduceMax", "Equal", "Cast", "Sub", "Mul", "Add", "Div", "Erf", "Identity"]
    made = onnxreduce_cli.convert(source, allow_ops=basic)
    assert opset(made) == 20
    assert set(op_types(made)) <= set(basic)
    assert opset(onnxreduce_cli.convert(source, 13, allow_ops=basic)) == 13
    plan = onnxreduce_cli.plan(source, 13, allow_ops=["Erf", "Mul"])
    assert [blocker.op_type for blocker in plan.blockers] == ["Hardmax", "Gelu"]
    assert plan.blockers[0].reason == (
        "--allow-ops does not take it; what it can be written in needs ReduceMax, Equal, Cast, "
        "Sub, Add, which --allow-ops does not take either"
    )
    assert plan.blockers[0].advice == "add it to --allow-ops if it may stay"


def test_another_way_is_tried_where_one_leads_nowhere() -> None:
    # A Softmax of its own opset is written by Exp or, further away, by other Reduce operators.
    source = graph("y = ReduceSumSquare(x)", 13)
    for allowed in (["Mul", "ReduceSum"], ["Pow", "ReduceSum", "Mul"]):
        made = onnxreduce_cli.convert(source, allow_ops=allowed)
        assert set(op_types(made)) <= set(allowed)


@pytest.mark.parametrize(
    ("dtype", "version"),
    [
        *((dtype, 13) for dtype in ("float", "float16", "double", "int32", "uint32", "uint64")),
        *(("float", 11), ("int64", 18), ("int8", 18), ("uint8", 13), ("bool", 20)),
    ],
)
@pytest.mark.parametrize("op_type", ["ReduceMin", "ReduceMax"])
def test_an_extreme_by_the_other(convert_for, op_type: str, dtype: str, version: int) -> None:
    axes = "<axes=[1], keepdims=0>(x)" if version < 18 else "<keepdims=0>(x, axes)"
    source = model(f"""<ir_version: 8, opset_import: ["" : {version}]>
    g ({dtype}[2,3] x) => ({dtype}[2] y) <int64[1] axes = {{1}}> {{ y = {op_type}{axes} }}""")
    if version < 18:
        del source.graph.initializer[:]
    target = odd(f"{op_type}||any|wrong", oldest=version, newest=version)
    made = convert_for(source, target)
    turn = {"bool": "Not"}.get(dtype, "Sub" if "int" in dtype else "Neg")
    other = "ReduceMax" if op_type == "ReduceMin" else "ReduceMin"
    written = [name for name in op_types(made) if name not in ("Constant", "Cast")]
    assert written == [turn, other, turn]
    kind = np.dtype({"float": "float32", "double": "float64"}.get(dtype, dtype))
    if kind.kind == "b":
        data = np.array([[True, False, True], [False] * 3])
    else:
        ends = np.iinfo(kind) if "int" in dtype else np.finfo(kind)
        least = ends.min if "int" in dtype else -np.inf
        data = np.array([[least, ends.max, 0], [1, 2, ends.max]], kind)
    ours, theirs = (
        onnxreduce_cli.run(item, {"x": data}, executor="numpy")["y"] for item in (made, source)
    )
    np.testing.assert_array_equal(ours, theirs)


FUNCTION = """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
    g (float[2,3,4] x) => (float[a,b,c] y) { [call] y = local.Twice(x) }
    <domain: "local", opset_import: ["" : 18]> Twice (a) => (b) { b = Add(a, a) }"""


def test_what_needs_a_newer_ir_version_than_it_takes(convert_for) -> None:
    source, target = model(FUNCTION), odd(newest=18, ir=7)
    said = (
        "odd 1 takes IR version 7 at most, and 8 is needed by model-local function 'Twice': say "
        "inline_functions=True too"
    )
    with pytest.raises(ConversionError, match=said):
        convert_for(source, target)
    made = convert_for(source, target, inline_functions=True)
    assert (made.ir_version, op_types(made)) == (7, ["Add"])
    # Below opset 9 others would do with IR version 3, but not what has this dtype.
    half = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (bfloat16[2] x) => (bfloat16[2] y) { y = Neg(x) }""")
    with pytest.raises(ConversionError, match="which came with opset 13"):
        convert_for(half, odd(newest=12, ir=7))


def test_a_version_that_is_not_known_is_told() -> None:
    source, said = graph(MAX_18, 18), "newer than all that is known: taken for 1.32"
    for opset in (None, 13):
        assert said in onnxreduce_cli.plan(source, opset, runtime="onnxruntime==1.99").choice


def test_a_node_in_the_way_at_each_opset_is_told_of_at_the_model_s_own() -> None:
    found = model("""<ir_version: 7, opset_import: ["": 13]> g (string[N] x) => (string[M] y) {
        y = StringNormalizer<case_change_action="LOWER">(x) }""")
    with pytest.raises(ConversionError, match=r"opset 13(.|\n)*opencv 4\.6 does not take it"):
        onnxreduce_cli.convert(found, runtime="opencv==4.6")


def test_where_it_is_not_known_which_opsets_it_takes() -> None:
    assert onnxreduce_cli.plan(graph(MAX_18, 18), runtime="hailo").choice == (
        "for hailo: the model's own opset, 18, stays; which opsets and operators it takes is not "
        "known"
    )


HALVES = """<ir_version: 8, opset_import: ["" : 18]>
    g (float16[N,4,5] x) => (float16[N,a,b] y) <int64[1] axes = {1}> {
        m = ReduceMax(x, axes) s = Sub(x, m) h = Hardmax<axis=1>(s)
        y = ReduceL1<noop_with_empty_axes=1>(h)
    }"""


def test_dimensions_that_make_another_way_possible() -> None:
    source = model(HALVES)
    (blocker,) = onnxreduce_cli.plan(source, runtime="opencv==4.6").blockers
    assert blocker.op_type == "Hardmax"
    assert blocker.reason.endswith(
        "; written as comparisons with the greatest element, it fails: its shape is not known"
    )
    assert blocker.advice == "fix its dimensions: --dim NAME=SIZE; or opencv 5.0 takes Hardmax"
    made = onnxreduce_cli.convert(source, runtime="opencv==4.6", dims={"N": 1})
    assert opset(made) == 17
    assert not {"Hardmax", "ReduceL1"} & set(op_types(made))
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1


@pytest.mark.parametrize("keep", [False, True])
def test_another_dtype_for_a_runtime(keep: bool) -> None:
    options = {"dims": {"N": 1}, "dtypes": {"float16": "float"}, "keep_interface": keep}
    made = onnxreduce_cli.convert(model(HALVES), runtime="onnxruntime==1.8", **options)
    ends = ["Cast"] * keep
    assert op_types(made) == [*ends, "ReduceMax", "Sub", "Hardmax", "Abs", *ends]
    assert (opset(made), made.ir_version) == (14, 7)


def test_another_dtype_with_operators_that_are_allowed() -> None:
    allowed = ["ReduceMax", "Sub", "Equal", "Mul", "Add", "Abs"]
    options = {"dims": {"N": 1}, "dtypes": {"float16": "float"}}
    kept = onnxreduce_cli.plan(model(HALVES), 13, allow_ops=allowed, keep_interface=True, **options)
    assert [blocker.advice for blocker in kept.blockers if blocker.op_type == "Cast"] == [
        "leave out --keep-interface, which puts it there; or add it to --allow-ops if it may stay"
    ] * 2
    made = onnxreduce_cli.convert(model(HALVES), 13, allow_ops=[*allowed, "Cast"], **options)
    assert set(op_types(made)) <= {*allowed, "Cast"}


NORMALIZATION = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[2,3,4] x) => (float[2,3,4] y)
    <float[4] w = {1, 2, 3, 4}, float[4] b = {0, 1, 2, 3}, float two = {2}, float eps = {0.00001}> {
        m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) p = Pow(d, two) v = ReduceMean<axes=[-1]>(p)
        e = Add(v, eps) s = Sqrt(e) q = Div(d, s) k = Mul(q, w) y = Add(k, b)
    }"""


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("tensorrt==10.15", 17),
        ("opencv==4.12", 17),
        ("tensorrt==8.4", 13),
        ("onnxruntime==1.8", 13),
    ],
)
def test_contracting_for_a_runtime(runtime: str, expected: int) -> None:
    source = model(NORMALIZATION)
    made = onnxreduce_cli.convert(source, runtime=runtime, contract=["LayerNormalization"])
    assert opset(made) == expected
    assert (op_types(made) == ["LayerNormalization"]) == (expected == 17)
    plan = onnxreduce_cli.plan(source, runtime=runtime, contract=["LayerNormalization"])
    assert ("fewer nodes can be contracted" in plan.choice) == (expected == 17)
    for options in ({}, {"contract": ["all"]}):
        assert opset(onnxreduce_cli.convert(source, runtime=runtime, **options)) == 13


@pytest.mark.parametrize("allowed", [["LayerNormalization"], ["LayerNormalization@17-"]])
def test_contracting_to_operators_that_are_allowed(allowed: list[str]) -> None:
    source = model(NORMALIZATION)
    made = onnxreduce_cli.convert(source, 17, contract=["all"], allow_ops=allowed)
    assert op_types(made) == ["LayerNormalization"]
    plan = onnxreduce_cli.plan(source, 13, contract=["all"], allow_ops=allowed)
    assert {blocker.op_type for blocker in plan.blockers} == set(op_types(source))
    with pytest.raises(UsageError, match="target and allow_ops exclude"):
        onnxreduce_cli.plan(source, allow_ops=allowed, runtime="opencv")


def of_shapes(nodes: str, version: int, *shapes: str) -> ModelProto:
    """A model of float inputs x0, x1, ... and an output y of a shape that is not stated."""
    inputs = ", ".join(f"float[{shape}] x{index}" for index, shape in enumerate(shapes))
    found = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {version}]>
        g ({inputs}) => (float y) {{ {nodes} }}""")
    found.graph.output[0].ClearField("type")
    return onnx.shape_inference.infer_shapes(found, strict_mode=True)


@pytest.mark.parametrize(
    ("nodes", "version", "shapes", "quirk", "written"),
    [
        (
            "n = ReduceL2<axes=[2]>(x0) y = Div(x0, n)",
            13,
            ["2,3,4"],
            "Div||norm|wrong",
            ["ReduceL2", "Neg", "Neg", "Div"],
        ),
        (
            "n = ReduceL2<axes=[1]>(x0) y = Div(x1, n)",
            13,
            ["2,3,4", "2,3,4"],
            "Div||norm_of_another|wrong",
            ["ReduceL2", "Neg", "Neg", "Div"],
        ),
        (
            "r = Constant<value_ints=[2, 1, 3]>() y = Tile(x0, r)",
            13,
            ["2,3,4"],
            "Tile||inner_repeats|wrong",
            ["Concat", "Concat"],
        ),
        (
            "y = ReduceMax<axes=[1], keepdims=0>(x0)",
            13,
            ["2,3,2,3,2"],
            "ReduceMax||three_kept|wrong",
            ["Transpose", "Reshape", "ReduceMax", "Reshape"],
        ),
        (
            "a = Constant<value_ints=[1, 2, 3]>() y = ReduceSum(x0, a)",
            18,
            ["2,3,2,3"],
            "ReduceSum||three_reduced|wrong",
            ["Reshape", "ReduceSum", "Reshape"],
        ),
        (
            "a = Constant<value_ints=[0, 1]>() y = ReduceMean(x0, a)",
            18,
            ["2,3"],
            "ReduceMean||all_axes|refused",
            ["ReduceMean"],
        ),
        (
            "y = ReduceMean<axes=[-1, 0], keepdims=0>(x0)",
            13,
            ["2,3"],
            "ReduceMean||all_axes|refused",
            ["ReduceMean"],
        ),
        (
            "y = Max(x0, x1)",
            13,
            ["2,3,4", "4"],
            "Max||operand_of_rank_1|wrong",
            ["Reshape", "Max"],
        ),
        (
            "y = Max(x0, x1)",
            13,
            ["2,3,4,5", "3,1,5"],
            "Max||inner_broadcast|wrong",
            ["Reshape", "Transpose", "Transpose", "Max", "Transpose"],
        ),
        (
            "y = Unsqueeze<axes=[-1, 0]>(x0)",
            11,
            ["2,3"],
            "Unsqueeze||several_axes|refused",
            ["Unsqueeze", "Unsqueeze"],
        ),
        (
            "y = ArgMin<axis=-1, keepdims=0>(x0)",
            13,
            ["2,3"],
            "ArgMin||vector|wrong",
            ["ArgMin", "Squeeze"],
        ),
        (
            "y = Gemm<alpha=2.0, beta=0.5, transB=1>(x0, x1, x2)",
            13,
            ["2,3", "4,3", "1,4"],
            "Gemm||alpha_or_beta|wrong",
            ["Gemm", "Mul", "Mul", "Add"],
        ),
        (
            "y = Gemm<alpha=2.0>(x0, x1)",
            11,
            ["2,3", "3,4"],
            "Gemm||alpha_or_beta|wrong",
            ["Gemm", "Mul"],
        ),
        (
            "c = Constant<value_floats=[1.0, 2.0]>() y = Gemm<beta=2.0>(x0, x1, c)",
            13,
            ["2,3", "3,2"],
            "Gemm||alpha_or_beta|wrong",
            ["Gemm", "Add"],
        ),
        (
            "y = Gemm(x0, x1, x2)",
            13,
            ["2,3", "3,4", "2,1"],
            "Gemm||computed_C|wrong",
            ["Gemm", "Add"],
        ),
        (
            "a = Cast<to=6>(x0) y = Cast<to=1>(a)",
            13,
            ["2,3"],
            "Cast||float_to_integer|wrong",
            ["Neg", "Relu", "Floor", "Relu", "Floor", "Sub", "Cast", "Cast"],
        ),
        (
            "a = Cast<to=9>(x0) y = Cast<to=1>(a)",
            13,
            ["2,3"],
            "Cast||float_to_integer|wrong",
            ["Equal", "Cast", "Equal", "Cast"],
        ),
        (
            "y = ReduceMax<axes=[1, -1], keepdims=0>(x0)",
            13,
            ["2,3,4,5"],
            "ReduceMax||negative_axes|wrong",
            ["ReduceMax"],
        ),
        (
            "y = ReduceSum<axes=[1, -1]>(x0)",
            11,
            ["2,3,4,5"],
            "ReduceSum||kept_dimensions|refused",
            ["ReduceSum", "Unsqueeze"],
        ),
        ("y = Min(x0, x1, x0)", 13, ["2,3", "2,1"], "Min||more_than_two|wrong", ["Min", "Min"]),
        ("y = Sum(x0, x1, x0)", 13, ["2,3", "2,1"], "Sum||more_than_two|wrong", ["Add", "Add"]),
        (
            "y = Mean(x0, x1, x0)",
            13,
            ["2,3", "2,1"],
            "Mean||more_than_two|wrong",
            ["Add", "Add", "Div"],
        ),
    ],
)
def test_what_else_is_written(
    convert_for, nodes: str, version: int, shapes: list[str], quirk: str, written: list[str]
) -> None:
    source = of_shapes(nodes, version, *shapes)
    made = convert_for(source, odd(quirk, oldest=version, newest=version))
    assert [name for name in op_types(made) if name != "Constant"] == written


def test_a_tile_of_many_repeats_is_a_concat_of_concats() -> None:
    source = of_shapes("r = Constant<value_ints=[1, 65]>() y = Tile(x0, r)", 13, "2,3")
    made = onnxreduce_cli.convert(source, runtime="opencv==4.10")
    assert [len(node.input) for node in made.graph.node if node.op_type == "Concat"] == [64, 2]


def test_a_tile_that_repeats_no_times() -> None:
    source = of_shapes("r = Constant<value_ints=[1, 0]>() y = Tile(x0, r)", 13, "2,3")
    (blocker,) = onnxreduce_cli.plan(source, runtime="opencv==4.10").blockers
    assert "repeats a dimension 0 times" in blocker.reason


def test_a_constant_that_does_not_fit_the_stated_result() -> None:
    source = onnx.parser.parse_model("""<ir_version: 7, opset_import: ["" : 11]>
        g (float x) => (float[4] y) <float[1,4] c = {1, 2, 3, 4}> { y = Sub(x, c) }""")
    (change,) = onnxreduce_cli.plan(source, runtime="opencv==4.6").changes
    # The constant is not broadcast to it: what it is taken from is.
    assert change.result == ("Unsqueeze", "Unsqueeze", "Concat", "Squeeze", "Sub")


@pytest.mark.parametrize("runtime", ["opencv==4.10", "opencv==4.12"])
@pytest.mark.parametrize("target", [9, 11])
@pytest.mark.parametrize("shape", [[], pytest.param([3], marks=pytest.mark.newest)])
def test_logarithms_of_integers_over_no_axes(runtime: str, target: int, shape: list[int]) -> None:
    x = np.full(shape, 7, np.int64)
    source = one_node("ReduceLogSum", 18, {"x": x}, noop_with_empty_axes=1)
    result = onnxreduce_cli.convert(source, target, runtime=runtime)
    onnx.checker.check_model(result, full_check=True)
    ((name, expected),) = run(source, {"x": x}).items()
    assert_same(expected, run(result, {"x": x})[name])


@pytest.mark.parametrize(
    ("domain", "goes"), [("ai.onnx.ml", True), ("com.ms.internal.nhwc", True), ("own", False)]
)
def test_an_import_that_no_node_uses(convert_for, domain: str, goes: bool) -> None:
    source = graph(MAX_13, 13)
    source.opset_import.append(helper.make_opsetid(domain, 5))
    source.ir_version = 7
    made = convert_for(source, odd(newest=13))
    assert {entry.domain for entry in made.opset_import} == ({""} if goes else {"", domain})
    assert made.graph == source.graph
    plan = onnxreduce_cli.plan(source, 13, runtime="odd")
    assert plan.unread == ((f"{domain} 5",) if goes else ())
    assert onnxreduce_cli.convert(source, 13) == source


@pytest.mark.parametrize(
    ("nodes", "version", "least"),
    [
        ("y = BatchNormalization(x, v, v, v, v)", 13, 15),
        ("y = Concat<axis=0>(x)", 9, 11),
        ("y = Dropout(x)", 10, 12),
        ("r = Relu(x) y = Slice<axes=[0], starts=[0], ends=[2]>(r)", 9, 13),
    ],
)
def test_versions_of_operators_that_iree_knows(nodes: str, version: int, least: int) -> None:
    source = model(f"""<ir_version: 7, opset_import: ["" : {version}]>
        g (float[2,3,4] x) => (float[a,b,c] y) <float[3] v = {{1, 2, 3}}> {{ {nodes} }}""")
    made = onnxreduce_cli.convert(source, runtime="iree==3.13")
    assert opset(made) >= least
    assert verify(source, made, trials=1).exit_code == 0


def test_operators_that_are_written_out_are_not_said_to_be_left() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[2,4] x) => (float[2,4] y) { a = com.microsoft.Gelu(x) y = Relu(a) }""")
    found = onnxreduce_cli.plan(source, target="tensorrt==8.6")
    assert found.coverage is not None
    assert found.coverage.unknown == ("com.microsoft.Gelu",)
    found = onnxreduce_cli.plan(source, target="tensorrt==8.6", expand=["com.microsoft"])
    assert found.coverage is not None
    assert found.coverage.unknown == ()
