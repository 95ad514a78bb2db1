"""Functions' bodies in the place of their calls: the same numbers, and nothing lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import FunctionProto, ModelProto, TensorProto, helper

import onnxreduce_cli
from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.cli.main import cli
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.inspection import inspect
from onnxreduce_cli.model.graph.inlining import can_inline, function_key, inline_calls
from tests.support import assert_same, blockers, converts, model, op_types, run

X = np.array([[[1.5, -2.0, 0.25], [3.0, 4.0, 7.0]]], np.float32)


def inlined(
    source: ModelProto, *feeds: dict[str, np.ndarray], in_numpy: bool = False
) -> ModelProto:
    """All functions inlined: valid, and the same numbers."""
    copy = ModelProto()
    copy.CopyFrom(source)
    inline_calls(copy, [function_key(function) for function in source.functions])
    assert not copy.functions
    onnx.checker.check_model(copy, full_check=True)
    for item in feeds:
        expected, actual = (run(found, item, in_numpy=in_numpy) for found in (source, copy))
        for name in expected:
            assert_same(expected[name], actual[name], name, exact=True)
    return copy


def test_names_and_attributes() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,1,3] u, float[1,2,1] v) {
            [a] u = local.F<dims = [1]>(x)
            v = local.F(x)
        }
        <domain: "local", opset_import: ["" : 17]>
        F <dims : ints = [2]> (x) => (u) {
            [n] t = Neg(x)
            [a_n] u = ReduceMax<axes : ints = @dims>(t)
        }""")
    result = inlined(source, {"x": X})
    assert [(n.name, *n.input, *n.output) for n in result.graph.node] == [
        ("a_n", "x", "a_t"),
        ("a_a_n", "a_t", "u"),
        ("v_n", "x", "v_t"),
        ("v_a_n", "v_t", "v"),
    ]
    assert [list(n.attribute[0].ints) for n in result.graph.node[1::2]] == [[1], [2]]


def test_names_that_are_taken() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,2,3] y, float[1,2,3] a_t_1) {
            a_t_1 = Abs(x)
            [a] a_t = local.F(x)
            [a_t] y = local.F(a_t)
        }
        <domain: "local", opset_import: ["" : 17]>
        F (x) => (y) { t = Neg(x) y = Abs(t) }""")
    result = inlined(source, {"x": X})
    made = [name for node in result.graph.node for name in node.output]
    assert len(set(made)) == len(made) == 5
    assert {"y", "a_t", "a_t_1"} <= set(made)


def test_calls_within_functions_branches_and_graphs_that_a_call_brings() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x, bool c) => (float[p,q,r] y) {
            [choice] y = If (c) <
                then_branch = t () => (float[p1,q1,r1] o) { [in] o = local.Outer<axis = 1>(x, c) },
                else_branch = e () => (float[p2,q2,r2] o) { [in] o = local.Outer<axis = 2>(x, c) }
            >
        }
        <domain: "local", opset_import: ["" : 17, "local" : 1]>
        Outer <axis> (x, c) => (y) {
            [deep] y = If (c) <
                then_branch = t () => (o) {
                    one = Constant<value = float {1}>()
                    [in] t = local.Inner<axis : int = @axis>(x)
                    o = Add(t, one)
                },
                else_branch = e () => (t) {
                    [in] t = local.Inner<axis : int = @axis>(x)
                }
            >
        }
        <domain: "local", opset_import: ["" : 17]>
        Inner <axis> (x) => (y) { [n] y = Softmax<axis : int = @axis>(x) }""")
    result = inlined(source, *({"x": X, "c": np.array(flag)} for flag in (True, False)))
    nodes = [node for graph in _graphs(result) for node in graph.node]
    names = [node.name for node in nodes if node.name]
    assert len(set(names)) == len(names)
    # Only the two branches that were there before give the same name.
    made = [name for node in nodes for name in node.output if name != "o"]
    assert len(set(made)) == len(made)
    assert [node.attribute[0].i for node in nodes if node.op_type == "Softmax"] == [1, 1, 2, 2]


def _graphs(found: ModelProto) -> list[onnx.GraphProto]:
    graphs = [found.graph]
    for graph in graphs:
        graphs += [item.g for node in graph.node for item in node.attribute if item.HasField("g")]
    return graphs


def test_inputs_left_out_outputs_nobody_asks_for_and_inputs_given_out_again() -> None:
    # Shape inference wants all outputs to be asked for, ONNX Runtime each name to be there once.
    source = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x, float l) => (float[1,2,3] y, float[1,2,3] same, float[1,2,3] z) {
            [a] y, same = local.F(x, l)
            [b] z = local.F(x)
        }
        <domain: "local", opset_import: ["" : 17]>
        F (x, low) => (y, x) { y = Clip(x, low) }""")
    result = inlined(source, {"x": X, "l": np.array(1, np.float32)}, in_numpy=True)
    assert op_types(result) == ["Clip", "Identity", "Clip"]


def test_a_graph_that_names_its_values_like_those_around_it() -> None:
    function = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x, int64 n) => (float[1,2,3] y) { [a] y = local.F(x, n) }
        <domain: "local", opset_import: ["" : 17]>
        F (x, n) => (y) {
            start = Neg(x)
            y = Loop(n, , start) <
                body = b (int64 i, bool go, float[1,2,3] state) => (bool go, float[1,2,3] next)
                <float one = {1}> { next = Add(state, one) }
            >
        }""")
    result = inlined(function, {"x": X, "n": np.array(3)})
    body = result.graph.node[1].attribute[0].g
    assert body.initializer[0].name == "a_one"
    assert body.input[0].name != body.input[1].name


def full() -> ModelProto:
    """A call and a function with everything that they can have."""
    source = model("""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,2,3] y) <float[2] weight = {1, 2}> {
            [a] y = local.F:special(x)
        }
        <domain: "local", overload: "special", opset_import: ["" : 17]>
        F (p) => (q) <float[N] t> { [n] t = Neg(p) [m] q = Abs(t) }""")
    call, function = source.graph.node[0], source.functions[0]
    call.doc_string = "a call"
    call.metadata_props.add(key="where", value="call")
    call.metadata_props.add(key="both", value="call")
    function.doc_string = "a function"
    function.metadata_props.add(key="both", value="function")
    function.metadata_props.add(key="what", value="function")
    function.node[0].doc_string = "a node"
    function.node[0].metadata_props.add(key="both", value="node")
    function.opset_import.add(domain="ai.onnx.ml", version=3)
    del function.value_info[:]
    for name in ("p", "t", "q"):
        info = function.value_info.add(name=name, doc_string="said of it")
        info.type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [1, "N", 3]))
    unknown = b"\xfa\x3e\x03new"
    for message in (source, source.graph, function.node[0]):
        message.MergeFromString(unknown)
    return source


def test_nothing_is_lost() -> None:
    source = full()
    result = inlined(source, {"x": X})
    first, second = result.graph.node
    assert [first.doc_string, second.doc_string] == ["a node", "a call"]
    said = [{entry.key: entry.value for entry in node.metadata_props} for node in (first, second)]
    assert said == [
        {"both": "node", "where": "call", "what": "function"},
        {"both": "call", "where": "call", "what": "function"},
    ]
    assert b"new" in first.SerializeToString()
    # Its own dimension N is no other function's or graph's.
    (info,) = result.graph.value_info
    assert (info.name, info.doc_string) == ("a_t", "said of it")
    dims = info.type.tensor_type.shape.dim
    assert [(dim.dim_value, dim.dim_param) for dim in dims] == [(1, ""), (0, ""), (3, "")]
    assert {item.domain: item.version for item in result.opset_import} == {
        "": 17,
        "local": 1,
        "ai.onnx.ml": 3,
    }
    expected = full()
    del expected.functions[:]
    del expected.graph.node[:]
    expected.graph.node.extend(result.graph.node)
    expected.graph.value_info.extend(result.graph.value_info)
    expected.opset_import.add(domain="ai.onnx.ml", version=3)
    assert result == expected


def test_the_same_bytes_each_time() -> None:
    contents = {inlined(full()).SerializeToString() for _ in range(3)}
    assert len(contents) == 1


@pytest.mark.parametrize(("domain", "version"), [("", 16), ("local", 2)])
def test_imports_that_differ(domain: str, version: int) -> None:
    source = full()
    function = source.functions[0]
    assert can_inline(source, function)
    del function.opset_import[:]
    function.opset_import.add(domain=domain, version=version)
    assert not can_inline(source, function)


# Conversions that need it


def strings() -> ModelProto:
    """Before opset 9 a Constant holds floats only, and a function has no initializers."""
    return model("""<ir_version: 10, opset_import: ["" : 13, "local" : 1]>
        g (string[2] x) => (bool[2] y, bool[2] z) {
            [a] y = local.Outer(x)
            [b] z = local.Same(x)
        }
        <domain: "local", opset_import: ["" : 13]>
        Same (x) => (y) {
            more = Constant<value_strings = ["more"]>()
            [n] s = Shape(x)
            [m] j = Concat<axis = 0>(x, more)
            d = Shape(j)
            [less] l = Equal(d, s)
            y = Expand(l, s)
        }
        <domain: "local", opset_import: ["" : 13, "local" : 1]>
        Outer (x) => (y) { [in] t = local.Same(x) y = Not(t) }""")


def test_texts_that_are_not_utf_8_are_not_inherited() -> None:
    source = strings()
    source.functions[0].doc_string = source.graph.node[0].doc_string = "~~~~"
    source.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "~~~~"
    content = source.SerializeToString().replace(b"~~~~", b"a\xc0\xffb")
    conversion = Conversion(ModelProto.FromString(content), 8)
    assert conversion.plan().inlined


def test_constants_that_only_a_graph_holds() -> None:
    source = strings()
    result = converts(source, 8, {"x": np.array(["a", "b"], object)}, exact=True)
    assert not result.functions
    plan = onnxreduce_cli.plan(source, 8)
    assert plan.possible
    assert [str(item) for item in plan.inlined] == [
        "function local.Same: inlined for a_in, b",
        "function local.Outer: inlined for a",
    ]
    # Where they can stay functions they do.
    assert not onnxreduce_cli.plan(source, 9).inlined
    assert len(onnxreduce_cli.convert(source, 9).functions) == 2


def test_its_sites_are_checked_and_it_is_inspected() -> None:
    conversion = Conversion(strings(), 8)
    report = check_sites(conversion)
    assert report.ok
    assert report.checked == report.distinct > 0
    assert not inspect(strings()).reach[8]


def test_the_command_says_so(tmp_path: Path) -> None:
    given, made = str(tmp_path / "m.onnx"), str(tmp_path / "n.onnx")
    onnx.save(strings(), given)
    line = "  function local.Same: inlined for a_in, b\n"
    for options in (["--dry-run"], ["-o", made]):
        shown = CliRunner().invoke(cli, ["convert", given, "--opset", "8", *options])
        assert (shown.exit_code, line in shown.output) == (0, True)


@pytest.mark.parametrize("target", [5, 3, 1])
def test_values_that_no_inference_types_within_a_function(target: int) -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,2,3] y) { [a] y = local.F(x) }
        <domain: "local", opset_import: ["" : 17]>
        F (x) => (y) { t = Neg(x) u = Add(t, x) v = Exp(u) y = Abs(v) }""")
    result = converts(source, target, {"x": X}, in_numpy=True)
    assert not result.functions


def uncalled() -> ModelProto:
    return model("""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,2,3] y) { y = local.Good(x) }
        <domain: "local", opset_import: ["" : 17]>
        Good (x) => (y) { y = Neg(x) }
        <domain: "local", opset_import: ["" : 17, "local" : 1]>
        Caller (x) => (y) { y = local.Bad(x) }
        <domain: "local", opset_import: ["" : 17]>
        Bad (x) => (y) { [n] y = StringNormalizer<case_change_action = "LOWER">(x) }
        <domain: "local", opset_import: ["" : 17]>
        Fine (x) => (y) { y = Elu(x) }""")


def test_functions_that_nothing_calls_are_not_in_the_way() -> None:
    source = uncalled()
    result = converts(source, 9, {"x": X}, exact=True)
    assert [function.name for function in result.functions] == ["Good", "Fine"]
    assert [str(item) for item in onnxreduce_cli.plan(source, 9).inlined] == [
        "function local.Caller: removed, nothing calls it",
        "function local.Bad: removed, nothing calls it",
    ]
    assert len(converts(source, 13, {"x": X}, exact=True).functions) == 4


def test_in_place_and_the_plan_leaves_the_model_alone() -> None:
    source = strings()
    content = source.SerializeToString()
    onnxreduce_cli.plan(source, 8)
    assert source.SerializeToString() == content
    result = onnxreduce_cli.convert(source, 8)
    assert onnxreduce_cli.convert(source, 8, in_place=True) is source
    assert source == result


def test_where_inlining_does_not_help_the_function_is_named() -> None:
    source = uncalled()
    source.graph.node[0].op_type = "Bad"
    del source.functions[1]
    for value in (source.graph.input[0], source.graph.output[0]):
        value.CopyFrom(helper.make_tensor_value_info(value.name, onnx.TensorProto.STRING, [2]))
    (bad,) = (function for function in source.functions if function.name == "Bad")
    lower = helper.make_node("StringNormalizer", ["x"], ["y"], name="n", case_change_action="LOWER")
    bad.node[0].CopyFrom(lower)
    (blocker,) = blockers(source, 9)
    assert (blocker.scope, blocker.node) == ("function local.Bad", "n")


def test_other_functions_are_specialised_beside_it() -> None:
    source = strings()
    source.graph.input.add().CopyFrom(helper.make_tensor_value_info("f", 1, [1, 2, 3]))
    for index, axis in enumerate((1, -1)):
        name = f"f{index}"
        source.graph.node.append(
            helper.make_node("Top", ["f"], [name], domain="local", dims=[axis])
        )
        shape = [1, 1, 3] if axis == 1 else [1, 2, 1]
        source.graph.output.add().CopyFrom(helper.make_tensor_value_info(name, 1, shape))
    top: FunctionProto = onnx.parser.parse_function(
        '<domain: "local", opset_import: ["" : 13]>'
        "Top <dims> (a) => (b) { b = ReduceMax<axes : ints = @dims>(a) }"
    )
    source.functions.append(top)
    feeds = {"x": np.array(["a", "b"], object), "f": X}
    result = converts(source, 8, feeds, exact=True)
    assert [function.name for function in result.functions] == ["Top_1", "Top_2"]
    plan = onnxreduce_cli.plan(source, 8)
    assert len(plan.specialised[0].copies) == len(plan.inlined) == 2


def test_weights_are_where_they_were() -> None:
    source = strings()
    weight = np.arange(100_000, dtype=np.float32)
    source.graph.initializer.append(onnx.numpy_helper.from_array(weight, "weight"))
    source.graph.node.append(helper.make_node("Neg", ["weight"], ["w"]))
    source.graph.output.add().CopyFrom(helper.make_tensor_value_info("w", 1, [100_000]))
    result = converts(source, 8, {"x": np.array(["a", "b"], object)}, exact=True)
    assert source.graph.initializer[0] in result.graph.initializer
