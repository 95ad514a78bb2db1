"""Nodes with graphs in graphs are checked to a depth: all work grows with the model alone."""

import pytest
from onnx import ModelProto, TensorProto, helper

from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.pairs.attribute_values import AttributeValues
from onnxreduce_cli.engine.pairs.bodies import DEEPEST, TruncatedNode
from onnxreduce_cli.engine.pairs.making import PairMaker
from onnxreduce_cli.engine.pairs.pair import UncheckableError
from onnxreduce_cli.model.graph.scope import with_inner
from onnxreduce_cli.steps.dispatch import step_for
from tests.support import model
from tests.verification.sites.test_checking import plant

IF = ("If", 11, "down")


def nested(depth: int, *, typed: bool = True) -> ModelProto:
    """Ifs in Ifs, each of branches that give different shapes.

    Args:
        depth: how many.
        typed: whether shape inference knows the types of what they give.
    """
    domain = "" if typed else "other"
    inner = [helper.make_node("Exp", ["x"], ["y0"], domain=domain)]
    for level in range(depth):
        below, given, other = f"y{level}", f"y{level + 1}", f"other{level}"
        op_type = "Neg" if level == 7 else "Abs"
        arms = [(inner, below), ([helper.make_node(op_type, ["v"], [other], domain=domain)], other)]
        graphs = {
            arm: helper.make_graph(nodes, arm, [], [helper.make_empty_tensor_value_info(name)])
            for arm, (nodes, name) in zip(("then_branch", "else_branch"), arms, strict=True)
        }
        if not typed:
            for graph in graphs.values():
                graph.output[0].ClearField("type")
        inner = [helper.make_node("If", ["c"], [given], name=f"if{level}", **graphs)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    v = helper.make_tensor_value_info("v", TensorProto.FLOAT, [1])
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    inner.append(helper.make_node("Exp", [f"y{depth}"], ["y"], domain=domain))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("other", 1)]
    graph = helper.make_graph(inner, "g", [x, v, c], [y])
    return helper.make_model(graph, opset_imports=opsets[: 1 if typed else 2], ir_version=8)


def test_what_nests_deep_is_not_in_the_pairs_of_all_around_it() -> None:
    conversion = Conversion(nested(12), 8, Options(emulate=True))
    maker = PairMaker(conversion)
    sites = [site for site in conversion.sites if site.node.op_type == "If"]
    pairs = [maker.pair(site, AttributeValues(conversion.facts, {})) for site in sites]
    assert len(pairs) == 12
    # Two Ifs, what is in their other branches, and an Identity for what nests deeper.
    assert max(sum(1 for _ in with_inner(pair.reference.graph.node)) for pair in pairs) == 5
    # The innermost two hold the Exp, three a Neg, and all others are alike.
    assert len({pair.key for pair in pairs}) == 2 * DEEPEST + 1


def test_all_of_deep_graphs_is_checked() -> None:
    report = check_sites(Conversion(nested(12), 8, Options(emulate=True)))
    assert report.ok
    assert not report.unchecked
    assert report.sites == 12


def test_a_mistake_deep_within_graphs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = step_for(*IF).apply
    assert right is not None

    def wrong(context: Context) -> None:
        right(context)
        for node, _ in context.emitted:
            other = context.attribute("else_branch")
            if node.op_type == "Not" and other and other.g.node[0].op_type == "Neg":
                node.op_type = "Identity"

    plant(monkeypatch, IF, wrong)
    report = check_sites(Conversion(nested(12), 8, Options(emulate=True)))
    assert "If" in [item.op_type for item in report.failures]


def test_what_nests_deep_and_is_of_unknown_type_cannot_be_left_out() -> None:
    conversion = Conversion(nested(4, typed=False), 13)
    (node, _) = conversion.scopes[0].nodes
    with pytest.raises(
        UncheckableError, match="more than 2 subgraphs nest in it, and the type of 'y2'"
    ):
        TruncatedNode(conversion.facts, node)
    inner = node.attribute[0].g.node[0]
    assert TruncatedNode(conversion.facts, inner).node is inner


@pytest.mark.parametrize("text", ["If(c)", "If(d)"])
def test_a_node_is_checked_with_what_is_emulated_in_its_graphs(text: str) -> None:
    source = model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (bool c, float[N,6] x, float[P,6] z, int64[M,6] i, float[M,6] u) => (float[A,B] y) {{
            d = Not(c)
            y = {text} <
                then_branch = a () => (float[P,6] p) {{
                    p = ScatterElements<reduction = "add">(z, i, u)
                }},
                else_branch = b () => (float[N,6] q) {{ q = Neg(x) }}>
        }}"""
    )
    report = check_sites(Conversion(source, 10, Options(emulate=True)))
    assert report.ok
    assert not report.unchecked
    assert {"If", "ScatterElements"} <= {item.op_type for item in report.each}


BODIES = {
    "scan": (
        9,
        [[2], [2, 0]],
        "g (float[N] s, float[A,B] x) => (float[2] y) { y = Scan<num_scan_inputs=1,"
        " scan_input_axes=[1], body = b (float[2] t, float[2] e) => (float[2] u)"
        " { u = Add(t, e) }>(s, x) }",
    ),
    "scan in batches": (
        8,
        [[0, 2], [0, 0, 2]],
        "g (float[C,N] s, float[C,A,B] x) => (float[C,2] y) { y = Scan<num_scan_inputs=1,"
        ' body = b (float[2] t, float[2] e) => (float[2] u) { u = Add(t, e) }>("", s, x) }',
    ),
}


@pytest.mark.parametrize("case", BODIES)
def test_inputs_have_the_dimensions_that_a_body_states(case: str) -> None:
    """Below opset 7 an Add of equal sizes stays as it is: with others it would fail."""
    opset, expected, text = BODIES[case]
    source = model(f'<ir_version: 4, opset_import: ["": {opset}]> {text}')
    conversion = Conversion(source, 6, Options(emulate=True))
    site = next(site for site in conversion.sites if site.node.op_type == "Scan")
    pair = PairMaker(conversion).pair(site, AttributeValues(conversion.facts, {}))
    shapes = [value.type.tensor_type.shape.dim for value in pair.reference.graph.input]
    assert [[dim.dim_value for dim in shape] for shape in shapes] == expected
    report = check_sites(conversion)
    assert report.ok, report.failures
    assert report.checked == report.distinct
