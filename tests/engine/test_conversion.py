"""The engine: nothing is lost, nothing is done twice or by halves, everything is everywhere."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import ModelProto, helper, numpy_helper

import onnxreduce_cli
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.schemas import newest_opset
from tests.support import assert_same, blockers, converts, model, op_types, run

X = np.array([[[1.5, -2.0, 0.25], [3.0, 4.0, 7.0]]], np.float32)


def full() -> ModelProto:
    """A model that has everything an ONNX model can have, with a node to convert everywhere."""
    source = model("""<ir_version: 10, opset_import: ["" : 18, "local" : 1, "ai.onnx.ml" : 3],
            producer_name: "maker", producer_version: "1.2", domain: "org.example",
            model_version: 7, doc_string: "all of it", metadata_props: ["who": "me", "why": ""]>
        main (float[1,2,3] x, bool c) => (float[1,1,3] y, float[1,2,1] z, float[1,2,3] w)
        <int64[1] axes = {1}, float[1,1,3] mid, float[2] unread = {1, 2}> {
            [first] mid = ReduceMax(x, axes)
            [call] y = local.Twice(mid)
            [choice] z = If (c) <
                then_branch = then_graph () => (float[1,2,1] t) <int64[1] inner = {2}> {
                    [in_then] t = ReduceMin(x, inner)
                },
                else_branch = else_graph () => (float[1,2,1] e) {
                    last = Constant<value_ints = [-1]>()
                    [in_else] e = ReduceMean(x, last)
                }
            >
            [scale] w = ai.onnx.ml.Scaler<offset = [0.0], scale = [1.0]>(x)
        }
        <domain: "local", opset_import: ["" : 18], doc_string: "twice">
        Twice (a) => (b) {
            all = Constant<value_ints = [-1]>()
            m = ReduceSum<keepdims = 0>(a, all)
            u = Unsqueeze(m, all)
            s = Sub(u, u)
            b = Add(a, s)
        }""")
    graph = source.graph
    graph.doc_string = "the main graph"
    graph.metadata_props.add(key="graph", value="meta")
    graph.value_info[0].doc_string = "in the middle"
    graph.value_info[0].metadata_props.add(key="value", value="meta")
    graph.input[0].doc_string = "the input"
    for node in graph.node:
        node.doc_string = f"of {node.name}"
        node.metadata_props.add(key="node", value=node.name)
    inner = graph.node[2].attribute[0].g
    inner.doc_string = "a branch"
    inner.node[0].doc_string = "in a branch"
    inner.node[0].metadata_props.add(key="deep", value="down")
    annotation = graph.quantization_annotation.add(tensor_name="mid")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="unread")
    values = helper.make_tensor("sparse", onnx.TensorProto.FLOAT, [1], [3.0])
    indices = helper.make_tensor("", onnx.TensorProto.INT64, [1], [2])
    graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    outside = graph.initializer.add(name="outside", data_type=onnx.TensorProto.FLOAT, dims=[2])
    outside.data_location = onnx.TensorProto.EXTERNAL
    outside.external_data.add(key="location", value="weights.bin")
    outside.external_data.add(key="offset", value="4096")
    training = source.training_info.add()
    training.algorithm.CopyFrom(
        onnx.parser.parse_graph(
            "step () => (float[1,1,3] loss) <int64[1] ax = {1}> { loss = ReduceL1(mid, ax) }"
        )
    )
    training.update_binding.add(key="unread", value="loss")
    function = source.functions[0]
    function.metadata_props.add(key="function", value="meta")
    function.node[1].doc_string = "in a function"
    # What a later onnx may add: fields of numbers that this one does not know.
    unknown = b"\xfa\x3e\x03new"
    for message in (source, graph, graph.node[0], graph.node[1], inner, function):
        message.MergeFromString(unknown)
    return source


def test_nothing_is_lost() -> None:
    source = full()
    result = onnxreduce_cli.convert(source, 17)
    expected = copy.deepcopy(source)
    # Exactly this is different, and nothing else.
    expected.opset_import[0].version = 17
    expected.functions[0].opset_import[0].version = 17
    expected.ir_version = 8  # That of opset 17, and of functions.
    graph, branches = expected.graph, expected.graph.node[2].attribute
    for node, axes in (
        (graph.node[0], [1]),
        (branches[0].g.node[0], [2]),
        (branches[1].g.node[1], [-1]),
        (expected.training_info[0].algorithm.node[0], [1]),
    ):
        del node.input[1:]
        node.attribute.append(helper.make_attribute("axes", axes))
    del graph.initializer[0]
    del branches[0].g.initializer[:]
    del branches[1].g.node[0]
    del expected.training_info[0].algorithm.initializer[:]
    assert result == expected
    assert result.SerializeToString(deterministic=True) == expected.SerializeToString(
        deterministic=True
    )


def unknown_fields(message: Any) -> list[tuple[int, Any]]:
    """What of a message itself, not of those within, is not known to the installed onnx."""
    return [(field.field_number, field.data) for field in UnknownFieldSet(message)]


@pytest.mark.parametrize("target", [7, 9, 11, 13, 15, 17, 18, 19, 21])
def test_nothing_is_lost_at_any_opset(target: int) -> None:
    source = full()
    result = onnxreduce_cli.convert(source, target)
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        assert getattr(result, name) == getattr(source, name)
    assert result.metadata_props == source.metadata_props
    others = {entry.domain: entry.version for entry in source.opset_import[1:]}
    # ai.onnx.ml goes down with the opset, to the version that onnx released together with it.
    learned = {7: 1, 9: 1, 11: 2, 13: 2, 15: 2}.get(target, 3)
    expected = others | {"ai.onnx.ml": learned}
    assert {entry.domain: entry.version for entry in result.opset_import[1:]} == expected
    assert result.opset_import[0].version == target
    before, after = source.graph, result.graph
    for name in (
        "name",
        "doc_string",
        "metadata_props",
        "input",
        "output",
        "quantization_annotation",
        "sparse_initializer",
    ):
        assert getattr(after, name) == getattr(before, name), name
    assert list(before.value_info) == [v for v in after.value_info if v.name == "mid"]
    kept = {tensor.name: tensor for tensor in after.initializer}
    for tensor in before.initializer:
        if tensor.name != "axes":
            assert kept[tensor.name] == tensor
    assert ("axes" in kept) == (target >= 18)
    for node in before.node:
        (same,) = (item for item in after.node if item.name == node.name)
        assert (same.op_type, same.domain, list(same.output)) == (
            node.op_type,
            node.domain,
            list(node.output),
        )
        assert same.doc_string == node.doc_string
        assert same.metadata_props == node.metadata_props
    branch = next(n for n in after.node if n.name == "choice").attribute[0].g
    assert branch.doc_string == "a branch"
    (deep,) = (node for node in branch.node if node.doc_string)
    assert (deep.doc_string, deep.metadata_props[0].value) == ("in a branch", "down")
    function = result.functions[0]
    assert function.doc_string == "twice"
    assert function.metadata_props == source.functions[0].metadata_props
    assert [node.op_type for node in function.node if node.doc_string] == ["ReduceSum"]
    training = result.training_info[0]
    assert training.update_binding == source.training_info[0].update_binding
    assert training.algorithm.output == source.training_info[0].algorithm.output
    for message in (result, after, after.node[0], branch, function):
        assert unknown_fields(message) == [(1007, b"new")]


def test_the_full_model_gives_the_same_numbers() -> None:
    source = full()
    source.graph.ClearField("sparse_initializer")
    del source.graph.initializer[-1:]
    source.ClearField("training_info")
    source.graph.ClearField("quantization_annotation")
    for target in (7, 9, 12, 13, 17, 19, 21):
        converts(source, target, {"x": X, "c": np.array(True)}, {"x": X, "c": np.array(False)})


@pytest.mark.parametrize("build", [full])
def test_its_own_opset_gives_the_same_bytes(build: Any) -> None:
    source = build()
    source.ir_version = 8
    content = source.SerializeToString()
    assert onnxreduce_cli.convert(source, 18).SerializeToString() == content
    assert onnxreduce_cli.convert(source, 18, in_place=True) is source
    assert source.SerializeToString() == content
    plan = onnxreduce_cli.plan(source, 18)
    assert (plan.changes, plan.removed, plan.blockers) == ((), (), ())


@pytest.mark.parametrize("target", [7, 9, 11, 12, 13, 17, 21])
def test_the_same_input_gives_the_same_bytes(target: int) -> None:
    contents = {onnxreduce_cli.convert(full(), target).SerializeToString() for _ in range(3)}
    assert len(contents) == 1


def test_in_place_or_not() -> None:
    source = full()
    content = source.SerializeToString()
    result = onnxreduce_cli.convert(source, 13)
    assert result is not source
    assert source.SerializeToString() == content
    assert onnxreduce_cli.convert(source, 13, in_place=True) is source
    assert source == result


def test_a_plan_touches_nothing_and_tells_what_conversion_does() -> None:
    source = full()
    content = source.SerializeToString()
    plan = onnxreduce_cli.plan(source, 17)
    assert source.SerializeToString() == content
    assert plan.possible
    assert (plan.source, plan.target, plan.ir_version, plan.target_ir_version) == (18, 17, 10, 8)
    assert [(c.node, c.op_type, c.scope, c.result) for c in plan.changes] == [
        ("first", "ReduceMax", "", ("ReduceMax",)),
        ("in_then", "ReduceMin", "choice.then_branch", ("ReduceMin",)),
        ("in_else", "ReduceMean", "choice.else_branch", ("ReduceMean",)),
        ("making 'loss'", "ReduceL1", "training_info[0].algorithm", ("ReduceL1",)),
    ]
    assert sorted(plan.removed) == ["ax", "axes", "inner", "last"]


def test_every_blocker_is_reported_at_once_and_nothing_touched() -> None:
    source = model("""<ir_version: 9, opset_import: ["" : 20, "local" : 1]>
        g (string[n] x, bool c) => (bool[n] y, string[n] z) {
            one = Constant<value_ints = [0]>()
            good = Unsqueeze(x, one)
            [top] y = RegexFullMatch<pattern = "a.*">(x)
            z = If (c) <
                then_branch = t () => (string[n] o) { [deep] o = StringConcat(x, x) },
                else_branch = e () => (string[n] o) { o = local.F(x) }
            >
        }
        <domain: "local", opset_import: ["" : 20]>
        F (a) => (b) { b = StringConcat(a, a) }""")
    found = blockers(source, 13)
    assert [(b.node, b.op_type, b.scope) for b in found] == [
        ("top", "RegexFullMatch", ""),
        ("deep", "StringConcat", "If.then_branch"),
        ("making 'b'", "StringConcat", "function local.F"),
    ]
    plan = onnxreduce_cli.plan(source, 13)
    assert not plan.possible
    assert plan.blockers == found


def test_no_such_opset() -> None:
    for target in (0, -1, newest_opset() + 1):
        with pytest.raises(ValueError, match=f"there is no opset {target}"):
            onnxreduce_cli.convert(full(), target)


# Names


def test_generated_names_avoid_every_name_there_is() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,2,3] x, float[1] n_axes) => (float[1,1,3] y, float[1,1,3] z, float[1] w)
        <float[1] n_axes_2 = {5}, int64[1] n_axes_4> {
            [n] y = ReduceMax<axes = [1]>(x)
            [n_axes_1] z = ReduceMin<axes = [1]>(x)
            n_axes_3 = Add(n_axes, n_axes_2)
            w = Neg(n_axes_3)
        }""")
    feeds = {"x": X, "n_axes": np.ones(1, np.float32)}
    result = converts(source, 18, feeds, exact=True)
    names = [tensor.name for tensor in result.graph.initializer]
    assert len(set(names)) == 2
    # The types that a model states of values it does not have are not those of generated ones.
    assert names == ["n_axes_2", "n_axes_5"]


def test_nodes_of_one_name_and_of_none() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 12]>
        g (float[1,2,3] x) => (float[1,2,3] a, float[1,2,3] b, float[1,2,3] c) {
            [same] a = Softmax<axis = 1>(x)
            [same] b = Softmax<axis = 1>(x)
            c = Softmax<axis = 1>(x)
        }""")
    # ONNX Runtime does not take two nodes of one name.
    result = converts(source, 13, {"x": X}, in_numpy=True)
    names = [node.name for node in result.graph.node if node.op_type != "Softmax"]
    assert len(names) == len(set(names)) == 6
    assert all(name.startswith(("same_", "c_")) for name in names)
    outputs = [name for node in result.graph.node for name in node.output]
    assert len(outputs) == len(set(outputs))


def test_branches_that_use_the_same_names() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,2,3] x, bool c) => (float[p,q,r] y) {
            y = If (c) <
                then_branch = t () => (float[p1,q1,r1] o) { [n] o = ReduceMax<axes = [1]>(x) },
                else_branch = e () => (float[p2,q2,r2] o) { [n] o = ReduceMax<axes = [2]>(x) }
            >
        }""")
    feeds = [{"x": X, "c": np.array(flag)} for flag in (True, False)]
    up = converts(source, 18, *feeds, exact=True)
    back = converts(up, 17, *feeds, exact=True)
    assert back.graph == source.graph


def test_the_same_local_names_for_different_axes() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,2,3] x, bool c) => (float[p,q,r] y) {
            y = If (c) <
                then_branch = t () => (float[p1,q1,r1] o) <int64[1] ax = {1}> {
                    [n] o = ReduceMax(x, ax)
                },
                else_branch = e () => (float[p2,q2,r2] o) <int64[1] ax = {2}> {
                    [n] o = ReduceMax(x, ax)
                }
            >
        }""")
    feeds = [{"x": X, "c": np.array(flag)} for flag in (True, False)]
    for target in (17, 12, 11, 10, 7):
        converts(source, target, *feeds, exact=True)


# Depth


def nested(depth: int) -> ModelProto:
    """A reduction at the bottom of `depth` branches, with axes from the top."""
    inner = "[n] o = ReduceMax(x, axes)"
    for level in range(depth):
        inner = f"""o = If (c) <
            then_branch = t{level} () => (float[1,1,3] o) {{ {inner} }},
            else_branch = e{level} () => (float[1,1,3] f{level}) {{
                f{level} = ReduceMin(x, axes)
            }}
        >"""
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,2,3] x, bool c) => (float[1,1,3] o) <int64[1] axes = {{1}}> {{ {inner} }}""")


def renamed(source: ModelProto) -> ModelProto:
    """The same with a name of its own for every branch's output."""
    waiting = [(source.graph, "o")]
    while waiting:
        graph, name = waiting.pop()
        for node in graph.node:
            node.output[0] = name
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    own = f"{name}_{attribute.name[0]}"
                    attribute.g.output[0].name = own
                    waiting.append((attribute.g, own))
    return source


@pytest.mark.parametrize("depth", [1, 2, 5, 12])
def test_deep_nesting(depth: int) -> None:
    source = renamed(nested(depth))
    feeds = [{"x": X, "c": np.array(flag)} for flag in (True, False)]
    result = converts(source, 13, *feeds, exact=True)
    assert not result.graph.initializer
    assert len(onnxreduce_cli.plan(source, 13).changes) == depth + 1
    again = converts(result, 18, *feeds, exact=True)
    assert "ReduceMax" in str(again)


def test_a_loop_and_a_scan() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,2,3] x, int64 n) => (float[1,2,3] y, float[s,2,1] z)
        <bool yes = {1}, int64[1] last = {-1}> {
            y = Loop (n, yes, x) <body = body (int64 i, bool going, float[1,2,3] v)
                    => (bool on, float[1,2,3] w) {
                on = Identity(going)
                top = ReduceMax(v, last)
                w = Sub(v, top)
            }>
            z = Scan (x) <num_scan_inputs = 1, body = step (float[2,3] row) => (float[2,1] low) {
                low = ReduceMin(row, last)
            }>
        }""")
    feeds = {"x": X, "n": np.array(2)}
    for target in (17, 12, 11):
        result = converts(source, target, feeds, exact=True)
        assert [t.name for t in result.graph.initializer] == ["yes"]


# Functions


def test_functions_are_read_by_their_own_import() -> None:
    # The checker and ONNX Runtime want one opset throughout, which is what conversion gives.
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[1,2,3] x) => (float[1,1,3] y, float[1,2,1] z) <int64[1] one = {1}> {
            y = ReduceMax(x, one)
            z = local.Old(x)
        }
        <domain: "local", opset_import: ["" : 11]>
        Old (a) => (b) {
            s = ReduceSum<axes = [-1]>(a)
            b = ReduceMax<axes = [-1]>(s)
        }""")
    for target in (21, 18, 17, 13, 12, 10):
        result = onnxreduce_cli.convert(source, target)
        onnx.checker.check_model(result, full_check=True)
        assert result.functions[0].opset_import[0].version == target
        given = {"x": X}
        for name, value in run(source, given, in_numpy=True).items():
            assert_same(value, run(result, given)[name], name)
    body = onnxreduce_cli.convert(source, 18).functions[0].node
    assert [node.op_type for node in body] == ["Constant", "ReduceSum", "ReduceMax"]
    assert body[1].input[1] == body[2].input[1] == body[0].output[0]


def test_a_reference_stays_a_reference() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,1,3] y, float[1,2,1] z) {
            y = local.F<dims = [1]>(x)
            z = local.F<dims = [2]>(x)
        }
        <domain: "local", opset_import: ["" : 17]>
        F <dims> (a) => (b) { [n] b = ReduceMax<axes : ints = @dims>(a) }""")
    up = converts(source, 18, {"x": X}, exact=True)
    constant, node = up.functions[0].node
    assert constant.attribute[0].ref_attr_name == "dims"
    assert list(node.input) == ["a", constant.output[0]]
    down = converts(up, 13, {"x": X}, exact=True)
    (node,) = down.functions[0].node
    assert node.attribute[0].ref_attr_name == "dims"


def test_a_reference_with_a_default() -> None:
    source = model("""<ir_version: 9, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,1,3] y, float[1,2,1] z) {
            y = local.F(x)
            z = local.F<dims = [-1]>(x)
        }
        <domain: "local", opset_import: ["" : 17]>
        F <dims : ints = [1]> (a) => (b) { [n] b = ReduceMax<axes : ints = @dims>(a) }""")
    up = converts(source, 18, {"x": X}, exact=True)
    converts(up, 17, {"x": X}, exact=True)
    # Below 11 one call's axes have to change and the other's not.
    converts(source, 10, {"x": X}, exact=True)


def test_a_reference_that_no_call_sets_means_no_axes() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,1,1] y) { y = local.F(x) }
        <domain: "local", opset_import: ["" : 17]>
        F <dims> (a) => (b) { b = ReduceMax<axes : ints = @dims>(a) }""")
    up = converts(source, 18, {"x": X}, exact=True, in_numpy=True)
    assert [list(node.input) for node in up.functions[0].node] == [["a"]]


def test_a_reference_that_some_calls_set() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,1,1] y, float[1,1,3] z) {
            y = local.F(x)
            z = local.F<dims = [1]>(x)
        }
        <domain: "local", opset_import: ["" : 17]>
        F <dims> (a) => (b) { [n] b = ReduceMax<axes : ints = @dims>(a) }""")
    converts(source, 18, {"x": X}, exact=True, in_numpy=True)


def test_a_function_called_with_different_types_and_ranks() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[1,2,3] x, float[4] v, int8[2,3] i) => (float[a,b,c] y, float[d] z, int8[e,f] w)
        {
            y = local.F(x)
            z = local.F(v)
            w = local.G(i)
        }
        <domain: "local", opset_import: ["" : 18]>
        F (a) => (b) { ax = Constant<value_ints = [-1]>() b = ReduceMax(a, ax) }
        <domain: "local", opset_import: ["" : 18]>
        G (a) => (b) { ax = Constant<value_ints = [-1]>() b = ReduceMax(a, ax) }""")
    feeds = {"x": X, "v": np.ones(4, np.float32), "i": np.array([[1, -2, 3], [4, 5, -6]], np.int8)}
    for target in (11, 10):
        converts(source, target, feeds, exact=True)


def test_functions_that_call_functions() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[1,2,3] x) => (float[1,1,3] y) { y = local.Outer<dims = [1]>(x) }
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        Outer <dims> (a) => (b) {
            ax = Constant<value_ints : ints = @dims>()
            b = local.Inner(a, ax)
        }
        <domain: "local", opset_import: ["" : 18]>
        Inner (a, axes) => (b) { b = ReduceMax(a, axes) }""")
    for target in (17, 12, 10, 7):
        result = converts(source, target, {"x": X}, exact=True)
        assert [n.op_type for n in result.functions[1].node] == ["ReduceMax"]


def test_a_function_that_nobody_calls() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[1,2,3] x) => (float[1,2,3] y) { y = Neg(x) }
        <domain: "local", opset_import: ["" : 18]>
        F (a) => (b) { ax = Constant<value_ints = [1]>() b = ReduceMax(a, ax) }""")
    result = converts(source, 13, {"x": X}, exact=True)
    assert [node.op_type for node in result.functions[0].node] == ["ReduceMax"]


def test_a_function_that_bears_an_operators_name() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,2,3] y) { y = local.ReduceMax(x) }
        <domain: "local", opset_import: ["" : 17]>
        ReduceMax (a) => (b) { b = Neg(a) }""")
    result = converts(source, 18, {"x": X}, exact=True)
    assert result.graph == source.graph


# Domains and imports


def test_the_default_domain_in_its_other_spelling() -> None:
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["ai.onnx" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,1,3] y) {
            a = ReduceMax<axes = [1]>(x)
            y = local.F(a)
        }
        <domain: "local", opset_import: ["ai.onnx" : 17]>
        F (a) => (b) { b = ReduceMin<axes = [1]>(a) }""")
    for node in (source.graph.node[0], source.functions[0].node[0]):
        node.domain = "ai.onnx"
    result = onnxreduce_cli.convert(source, 18)
    assert [(e.domain, e.version) for e in result.opset_import] == [("ai.onnx", 18), ("local", 1)]
    assert len(result.graph.node[0].input) == 2
    assert len(result.functions[0].node[1].input) == 2
    expected = run(source, {"x": X}, in_numpy=True)["y"]
    assert_same(expected, run(result, {"x": X}, in_numpy=True)["y"])


def test_no_import_of_the_default_domain() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[1,2,3] x) => (float[1,1,3] y) { [n] y = ReduceMax<axes = [1]>(x) }""")
    source.opset_import[0].domain = "elsewhere"
    (blocker,) = blockers(source, 18)
    assert blocker.reason.startswith("the default domain is not imported here")
    assert blocker.opset == 0


def test_two_imports_that_contradict_each_other() -> None:
    source = full()
    source.opset_import.add(domain="ai.onnx", version=17)
    with pytest.raises(InvalidModelError, match="at several opsets"):
        onnxreduce_cli.convert(source, 13)


def test_other_domains_are_left_alone() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
        g (float[1,2,3] x) => (float[1,2,3] y) { y = com.example.ReduceMax<axes = [1]>(x) }""")
    result = onnxreduce_cli.convert(source, 18)
    assert result.graph == source.graph


# IR versions


def old(ir_version: int) -> ModelProto:
    """A model of IR version 3, whose initializers are inputs too."""
    weight = numpy_helper.from_array(np.ones(3, np.float32), "w")
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["x", "w"], ["s"]),
            helper.make_node("ReduceMax", ["s"], ["y"], name="n", axes=[1]),
        ],
        "g",
        [
            helper.make_tensor_value_info("x", 1, [1, 2, 3]),
            helper.make_tensor_value_info("w", 1, [3]),
        ],
        [helper.make_tensor_value_info("y", 1, [1, 1, 3])],
        [weight],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=ir_version
    )


def test_ir_version_3_stays() -> None:
    source = old(3)
    for opset in (7, 18):
        result = converts(source, opset, {"x": X})
        assert result.ir_version == 3
        assert [value.name for value in result.graph.input] == ["x", "w"]
        assert [tensor.name for tensor in result.graph.initializer] == ["w"]


def test_a_weight_among_the_inputs_of_a_newer_ir_version_may_be_overridden() -> None:
    source = old(3)
    result = converts(source, 18, {"x": X}, ir_version=8)
    assert result.ir_version == 8
    assert [value.name for value in result.graph.input] == ["x", "w"]
    assert [tensor.name for tensor in result.graph.initializer] == ["w", "n_axes"]
    other = {"x": X, "w": np.array([1, 2, 3], np.float32)}
    expected = run(source, other, in_numpy=True)["y"]
    assert not np.array_equal(run(result, {"x": X})["y"], expected)
    np.testing.assert_array_equal(run(result, other)["y"], expected)


def test_the_least_ir_version_on_the_way_down() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,2,3] x) => (float[1,1,3] y) <float[3] w = {1, 2, 3}, int64[1] axes = {1}> {
            s = Add(x, w)
            y = ReduceMax(s, axes)
        }""")
    given = {"x": X}
    for wanted, least in (("auto", 4), ("keep", 8), (4, 4), (3, 3), (7, 7)):
        copied = copy.deepcopy(source)
        Conversion(copied, 8, Options(ir_version=wanted)).apply()
        assert copied.ir_version == least
        onnx.checker.check_model(copied, full_check=True)
        np.testing.assert_array_equal(run(copied, given)["y"], run(source, given)["y"])
    inputs = {value.name for value in copied.graph.input}
    assert inputs == {"x"}
    three = copy.deepcopy(source)
    Conversion(three, 8, Options(ir_version=3)).apply()
    assert {value.name for value in three.graph.input} == {"x", "w"}


def test_what_needs_a_newer_ir_version_is_named() -> None:
    source = full()
    with pytest.raises(
        onnxreduce_cli.ConversionError,
        match=r"IR version 7 has no place for opset 3 of ai\.onnx\.ml, which needs 8",
    ):
        Conversion(source, 13, Options(ir_version=7, ml_opset=3))
    assert Conversion(source, 13).ir_version == 8


def test_run_time_axes_at_ir_version_3() -> None:
    """Constants that steps add are no inputs, so there they are Constant nodes."""
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,2,3] x, int64[1] axes) => (float[a,b,c] y) { [n] y = ReduceMax(x, axes) }""")
    for target in (8, 9):
        copied = copy.deepcopy(source)
        Conversion(
            copied, target, Options(ir_version=3 if target == 8 else 4, emulate=True)
        ).apply()
        onnx.checker.check_model(copied, full_check=True)
        assert [value.name for value in copied.graph.input] == ["x", "axes"]
        given = {"x": X, "axes": np.array([1])}
        np.testing.assert_array_equal(run(copied, given)["y"], run(source, given)["y"])
    assert op_types(copied)


def test_a_model_of_ir_version_1_means_opset_1() -> None:
    source = model("""<ir_version: 3, opset_import: ["" : 1]>
        g (float[1,2,3] x) => (float[1,1,3] y) { y = ReduceMax<axes = [1]>(x) }""")
    source.ir_version = 1
    source.ClearField("opset_import")
    result = onnxreduce_cli.convert(source, 18)
    assert [(entry.domain, entry.version) for entry in result.opset_import] == [("", 18)]
    assert result.ir_version == 3
    np.testing.assert_array_equal(run(result, {"x": X})["y"], X.max(1, keepdims=True))
    assert onnxreduce_cli.convert(source, 1) == source


def test_an_ir_version_older_than_the_opset_stays() -> None:
    source = old(3)
    source.opset_import[0].version = 13
    assert onnxreduce_cli.convert(source, 13) == source
    assert onnxreduce_cli.convert(source, 12).ir_version == 3


@pytest.mark.parametrize(
    ("opset", "text", "targets"),
    [
        (13, 'y = Split<axis = 0>(x, "")', (12, 10, 6)),
        (18, 'y = Pad(x, p, "", "")', (17, 11)),
    ],
)
def test_inputs_left_out_that_older_definitions_lack_go(
    opset: int, text: str, targets: tuple[int, ...]
) -> None:
    """No step changes such a node, and nothing but its last input, an empty one, is in the way."""
    source = model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[2,3] x) => (float[a,b] y)'
        f" <int64[4] p = {{0, 1, 0, 1}}> {{ {text} }}"
    )
    for target in targets:
        converts(source, target, {"x": np.ones((2, 3), np.float32)}, exact=True)
