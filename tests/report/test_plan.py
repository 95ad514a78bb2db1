"""Plans as text, as dictionaries and for notebooks."""

from __future__ import annotations

import json

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import onnxreduce_cli
from onnxreduce_cli.engine.changes import Change
from onnxreduce_cli.errors import Blocker, ConversionError
from onnxreduce_cli.report.plan import blockers_text, plan_text
from tests.support import as_converted, model

HTML = '<b onclick="x()">&amp;</b>'


def chain(opset: int, nodes: list[tuple[str, dict[str, int]]], dtype: int) -> ModelProto:
    """Nodes that each read x, of shape [2, 3, 4]."""
    made = [
        helper.make_node(op_type, ["x"], [f"y{index}"], name=f"n{index}", **attributes)
        for index, (op_type, attributes) in enumerate(nodes)
    ]
    outputs = [helper.make_tensor_value_info(f"y{len(nodes) - 1}", dtype, None)]
    inputs = [helper.make_tensor_value_info("x", dtype, [2, 3, 4])]
    opsets = [helper.make_opsetid("", opset)]
    graph = helper.make_graph(made, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.fixture(scope="module")
def many() -> ModelProto:
    """A thousand nodes of some kinds."""
    kinds = [("Softmax", {"axis": axis}) for axis in (-1, -2, -3)]
    kinds += [(op, {"keepdims": k}) for op in ("ArgMax", "ArgMin") for k in (0, 1)]
    kinds += [("Flatten", {"axis": axis}) for axis in (-1, -2, -3)]
    nodes = [kinds[index % len(kinds)] for index in range(1_000)]
    nodes = [(op, {"axis": -1, **attributes}) for op, attributes in nodes]
    return chain(12, nodes, TensorProto.FLOAT)


def test_many_changes_take_few_lines(many: ModelProto) -> None:
    plan = onnxreduce_cli.plan(many, 9)
    assert len(plan.changes) == 1_000
    text = plan_text(as_converted(plan))
    lines = text.splitlines()
    assert len(lines) < 20
    assert max(map(len, lines)) <= 100
    assert "  100 Softmax: axis -1 → 2: n0, n10, n20 and 97 more" in lines
    each = plan_text(as_converted(plan), verbose=True).splitlines()
    assert len(each) == 1_002
    assert "  Softmax: axis -1 → 2: n990" in each


def test_sources_of_what_is_known_of_a_runtime() -> None:
    source = chain(
        18, [("ReduceMax", {"noop_with_empty_axes": 1}), ("Relu", {})], TensorProto.FLOAT
    )
    plan = onnxreduce_cli.plan(source, runtime="onnxruntime==1.14")
    assert plan.coverage is not None
    table, quirk = plan.coverage.sources
    assert "OperatorKernels.md" in table
    assert "lab/measured.json" in quirk
    text = " ".join(plan_text(as_converted(plan), verbose=True).split())
    assert f"known from: {table} known from: {quirk}" in text
    assert "known from" not in plan_text(as_converted(plan))


def test_changes_of_very_many_kinds_are_told_by_the_most_frequent() -> None:
    plan = onnxreduce_cli.plan(chain(12, [("Flatten", {"axis": -1})], TensorProto.FLOAT), 10)
    changes = [
        Change(f"n{index}{number}", f"Operator{index}", "", ("a dropped",), (f"Operator{index}",))
        for index in range(40)
        for number in range(index + 1)
    ]
    text = plan_text(as_converted(type(plan)(12, 10, 8, 8, tuple(changes), (), ())))
    assert len(text.splitlines()) < 20
    assert "40 Operator39: a dropped: n390, n391, n392 and 37 more" in text
    assert "Operator0" not in text
    assert "other kinds of change, of " in text
    assert "--verbose lists all" in text


def test_values_that_differ_are_left_out_where_kinds_are_many() -> None:
    changes = tuple(
        Change(f"n{index}", "Reshape", "", (f"shape [1, {index}] → attribute",), ("Reshape",))
        for index in range(30)
    )
    text = plan_text(as_converted(onnxreduce_cli.Plan(13, 4, 8, 8, changes, (), ())))
    assert "  30 Reshape: shape ... → attribute: n0, n1, n2 and 27 more" in text


def test_nodes_blocked_for_one_reason_take_one_line() -> None:
    nodes = [(op, {}) for op in ("ReduceMax", "ReduceMin") for _ in range(100)]
    given = chain(18, nodes, TensorProto.BFLOAT16)
    plan = onnxreduce_cli.plan(given, 11)
    assert len(plan.blockers) == 200
    assert repr(plan) == "<Plan opset 18 → 11: blocked by 200 nodes>"
    text = blockers_text(plan.blockers)
    start = "200 nodes (100 ReduceMax, 100 ReduceMin; opset 18) n0, n1, n2 and 197 more: it has a "
    assert " ".join(text.split()).startswith(start)
    assert max(map(len, text.splitlines())) <= 100
    assert len(plan_text(as_converted(plan)).splitlines()) < 20
    with pytest.raises(ConversionError) as caught:
        onnxreduce_cli.convert(given, 11)
    assert len(str(caught.value).splitlines()) == 2
    assert len(caught.value.blockers) == 200
    assert len(blockers_text(plan.blockers, verbose=True).split("ReduceM")) == 201


def test_of_many_reasons_the_first_are_told() -> None:
    blockers = [Blocker("n", "Op", 13, "", f"reason {chr(97 + index)}") for index in range(26)]
    lines = blockers_text(blockers).splitlines()
    assert lines[-1] == "and 16 other reasons, of 16 nodes; --verbose lists all"
    assert len(lines) == 11


def test_a_blocker_names_what_is_the_same_for_all() -> None:
    blockers = [Blocker(n, "Op", 13, "", f"its input {n!r} is unknown before 9") for n in "ab"]
    assert blockers_text(blockers) == (
        "2 Op nodes (opset 13) a, b: its input ... is unknown before 9"
    )


def test_the_summary_shows_what_it_costs() -> None:
    at_run_time = onnxreduce_cli.plan(
        model("""<ir_version: 8, opset_import: ["" : 18]>
            g (float[2,3] x, int64[N] a) => (float y) { [r] y = ReduceMax(x, a) }"""),
        11,
    )
    text = plan_text(as_converted(at_run_time))
    (change,) = at_run_time.changes
    assert f"1 → {change.nodes} nodes" in text
    assert at_run_time.control_flow == {"If": change.control_flow.count("If")}
    assert f"control flow added: {len(change.control_flow)} If, for r" in text
    plan = onnxreduce_cli.Plan(
        16, 15, 8, 8, (Change("g", "GridSample", "", (), ("Add", "Mul"), nodes=92),), (), ()
    )
    text = plan_text(as_converted(plan))
    assert "1 GridSample → Add, Mul (+91 nodes): g" in text
    assert "up to 92 nodes for one GridSample: g" in text


def test_what_is_contracted_is_told_and_what_nearly_was_too() -> None:
    source = model("""<ir_version: 9, opset_import: ["" : 20]>
        g (float[4] x) => (float[4] z, float[4] t2) {
            s = Softplus(x) t = Tanh(s) y = Mul(x, t) s2 = Softplus(y) t2 = Tanh(s2)
            [m] z = Mul(y, t2)
        }""")
    plan = onnxreduce_cli.plan(source, 20, contract=["Mish"])
    lines = plan_text(as_converted(plan), verbose=True).splitlines()
    assert lines[0] == "Can be converted at opset 20: 1 node changed"
    assert lines[1] == "  opset 20 as it was, 6 → 4 nodes"
    assert lines[2] == "  Mul with Softplus, Tanh before it → Mish (-2 nodes): making 'y'"
    near = "Mul m might end a Mish, but 't2', which Tanh gives, is read elsewhere, too"
    assert plan.near_misses == (near,)
    assert f"  not contracted: {near}" in lines
    assert "not contracted" not in plan_text(as_converted(plan))
    (change,) = plan.changes
    assert change.absorbed == ("Softplus", "Tanh")
    converted = onnxreduce_cli.convert(source, 20, contract=["Mish"])
    assert len(converted.graph.node) == plan.target_nodes


def test_as_data() -> None:
    plan = onnxreduce_cli.plan(chain(12, [("Flatten", {"axis": -1})], TensorProto.FLOAT), 10)
    found = json.loads(json.dumps(plan.to_dict()))
    assert found["changes"][0]["edits"] == ["axis -1 → 2"]
    assert (found["source"], found["target"], found["possible"]) == (12, 10, True)
    assert plan.changes[0].to_dict()["op_type"] == "Flatten"
    assert repr(plan) == "<Plan opset 12 → 10: 1 → 1 nodes, 1 changed>"
    assert repr(plan.changes[0]) == "<Change Flatten: axis -1 → 2: n0>"
    blocker = Blocker("n", "Op", 13, "", "r" * 500, "do")
    assert blocker.to_dict()["reason"] == "r" * 500
    assert len(repr(blocker)) < 150


def test_for_notebooks_all_is_escaped() -> None:
    given = chain(12, [("Flatten", {"axis": -1})], TensorProto.FLOAT)
    given.graph.node[0].name = HTML
    plan = onnxreduce_cli.plan(given, 10)
    blocker = Blocker(HTML, HTML, 13, HTML, HTML, HTML)
    blocked = onnxreduce_cli.Plan(13, 4, 8, 8, (), (), (blocker,))
    for item in (plan, plan.changes[0], blocker, blocked):
        text = item._repr_html_()
        assert text.startswith("<table>")
        assert "&lt;b onclick=&quot;x()&quot;&gt;&amp;amp;&lt;/b&gt;" in text
        assert "<b" not in text


def test_what_is_to_be_typed_is_not_broken_apart() -> None:
    for length in range(60, 100):
        blocker = Blocker("n", "Op", 13, "", "r" * 9 + " s" * (length // 2), "--type y=float[N]")
        assert "--type y=float[N]" in blockers_text([blocker])


def test_operators_of_onnx_runtimes_domain_are_named() -> None:
    found = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
        g (float[2,4] x, float[4,3] w) => (y) {
            a = com.microsoft.FusedMatMul <alpha = 2.0> (x, w)
            b = com.microsoft.FusedMatMul (x, w)
            c = com.microsoft.Own (b)
            y = Sum (a, c)
        }
        <domain: "com.microsoft", opset_import: ["" : 18]> Own (x) => (y) { y = Neg (x) }""")
    plan = onnxreduce_cli.plan(found, 13)
    assert plan.foreign == (("FusedMatMul", 2),)
    line = "of ONNX Runtime's own domain, as they were: 2 FusedMatMul; --expand com.microsoft"
    assert line in plan_text(as_converted(plan))


def test_what_was_done_twice_to_a_node_is_told_once():
    reason = "opencv 4.6 refuses a constant that is broadcast: its constant made as large"
    change = Change("n", "Mul", "", edits=(reason, "axis dropped", reason), result=("Mul",))
    assert change.summary == f"Mul: {reason}; axis dropped"
