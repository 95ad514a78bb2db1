"""Functions that are equal but for their names keep these, and are planned once."""

from __future__ import annotations

import pytest
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, helper

from onnxreduce_cli.engine import equal_functions
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.node_converter import NodeConverter
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.sites import Site
from tests.engine.test_memo import same_without_memo
from tests.support import model


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators of the nodes that are planned, not taken over with a whole function."""
    found: list[str] = []
    convert = NodeConverter.convert

    def told(self: NodeConverter, site: Site, opset: int) -> None:
        found.append(site.node.op_type)
        convert(self, site, opset)

    monkeypatch.setattr(NodeConverter, "convert", told)
    return found


def many(number: int, *, overloads: bool = False) -> ModelProto:
    """Functions of one body, each called once."""
    functions, calls = [], []
    for index in range(number):
        body = [
            helper.make_node("ReduceMean", ["a"], ["b"], axes=[1]),
            helper.make_node("Softmax", ["b"], ["c"], axis=1),
        ]
        name, overload = ("F", f"o{index}") if overloads else (f"F{index}", "")
        opsets = [helper.make_opsetid("", 13)]
        functions.append(
            helper.make_function("f", name, ["a"], ["c"], body, opsets, overload=overload)
        )
        made = f"y{index}"
        calls.append(helper.make_node(name, ["x"], [made], domain="f", overload=overload))
    return _model(calls, functions)


def _model(calls: list[NodeProto], functions: list[FunctionProto]) -> ModelProto:
    info = helper.make_tensor_value_info
    outputs = [info(calls[-1].output[0], TensorProto.FLOAT, None)]
    graph = helper.make_graph(calls, "g", [info("x", TensorProto.FLOAT, [2, 3, 4])], outputs)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("f", 1)]
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=10)


def test_names_and_overloads_stay() -> None:
    for how in ({"overloads": True}, {}):
        given = many(4, **how)
        before = [(item.name, item.overload) for item in given.functions]
        conversion = Conversion(given, 18)
        conversion.apply()
        assert [(item.name, item.overload) for item in given.functions] == before
        bodies = {tuple(node.SerializeToString() for node in item.node) for item in given.functions}
        assert len(bodies) == 1


def test_an_overload_that_is_stated_to_be_empty_stays() -> None:
    given = many(4)
    given.functions[0].ClearField("overload")
    given.functions[1].overload = "one"
    given.functions[2].overload = ""
    given.functions[3].ClearField("overload")
    before = [(item.name, item.HasField("overload"), item.overload) for item in given.functions]
    Conversion(given, 18).apply()
    after = [(item.name, item.HasField("overload"), item.overload) for item in given.functions]
    assert after == before
    assert [(name, value) for name, _, value in after] == [
        ("F0", ""),
        ("F1", "one"),
        ("F2", ""),
        ("F3", ""),
    ]


def test_what_blocks_is_told_of_each() -> None:
    given = model("""<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
        g (string[2] x) => (string[n] y, string[n] z) { y = local.F(x) z = local.G(x) }
        <domain: "local", opset_import: ["" : 20]>
        F (p) => (q) { [n] q = StringConcat(p, p) }
        <domain: "local", opset_import: ["" : 20]>
        G (p) => (q) { [n] q = StringConcat(p, p) }""")
    blocked = Conversion(given, 12).blockers
    assert [(item.node, item.scope) for item in blocked] == [
        ("n", "function local.F"),
        ("n", "function local.G"),
    ]


def calling(
    nodes: str, *given: str, opset: int = 11, attributes: str = "", learned: str = ""
) -> ModelProto:
    """Functions of the same nodes, from v to w, each called once with one of two values."""
    calls = " ".join(f"y{at} = f.F{at}{attributes}({name})" for at, name in enumerate(given))
    formals = "<axis>" if attributes else ""
    imports = f'["": {opset}{learned}]'
    functions = " ".join(
        f'<domain: "f", opset_import: {imports}> F{at} {formals} (v) => (w) {{ {nodes} }}'
        for at, _ in enumerate(given)
    )
    return model(f"""<ir_version: 8, opset_import: ["": {opset}, "f": 1{learned}]>
        g (float[2,3] x, float[2,3,4] z) => (float[a,b] y0) {{ {calls} }} {functions}""")


def test_equal_functions_are_planned_once(planned: list[str]) -> None:
    conversion = Conversion(many(4), 18)
    assert planned == ["ReduceMean"]
    sites = conversion.sites
    assert [site.scope.label for site in sites] == [f"function f.F{at}" for at in range(4)]
    for site in sites:
        assert site.node is site.scope.nodes[0]
        (name,) = conversion.constants(site.scope).arrays
        assert conversion.facts.constant(site.scope, name) == [1]
        assert conversion.facts.type(site.scope, name) is not None


@pytest.mark.parametrize(("most", "count"), [(16, 2), (1, 3)])
def test_one_that_answers_otherwise_is_planned_too(
    planned: list[str], monkeypatch: pytest.MonkeyPatch, most: int, count: int
) -> None:
    """By the rank of its input; what was not asked, as its size, makes no difference."""
    monkeypatch.setattr(equal_functions, "_MOST", most)
    source = calling("w = Flatten<axis=-1>(v)", "x", "z", "x", "z")
    same_without_memo(source, 10)
    planned.clear()
    Conversion(source, 10).apply()
    assert len(planned) == count
    axes = [function.node[0].attribute[0].i for function in source.functions]
    assert axes == [1, 2, 1, 2]


def test_a_type_that_a_step_states_is_stated_in_each() -> None:
    """Of the scores no length is known once Attention is written out, but the rank."""
    body = '<domain: "f", opset_import: ["": 23]> {} (v) => (w) {{ w, , , q = Attention(v, v, v) }}'
    functions = " ".join(map(body.format, "FG"))
    source = model(f"""<ir_version: 10, opset_import: ["": 23, "f": 1]>
        g (float[1,2,3,4] x) => (float[a,b,c,d] y, float[k,l,m,n] z)
        {{ y = f.F(x) z = f.G(x) }} {functions}""")
    same_without_memo(source, 22)
    conversion = Conversion(source, 22)
    _, *functions = conversion.scopes
    (first, second) = (conversion.facts.type(scope, "q") for scope in functions)
    assert first == second
    assert first is not None
    assert first.dims == (None,) * 4


def test_a_node_that_stays_is_each_functions_own() -> None:
    source = calling("u = Relu(v) w = Flatten<axis=-1>(u)", "x", "x", opset=13)
    source.functions[0].node[0].name = source.functions[1].node[0].name = "relu"
    same_without_memo(source, 12)
    for site in Conversion(source, 12).sites:
        assert not site.stays or site.result[0] is site.node


def test_functions_that_refer_to_attributes_are_planned_singly(planned: list[str]) -> None:
    """What these are depends on the calls, of which nothing is noted."""
    nodes = "w = Softmax<axis: int = @axis>(v)"
    Conversion(calling(nodes, "x", "x", opset=13, attributes="<axis=1>"), 12)
    assert len(planned) == 2


def test_functions_with_nodes_of_machine_learning_are_planned_singly(planned: list[str]) -> None:
    """These nodes are planned after all others, and generate names too."""
    nodes = "u = ReduceMean<axes=[1]>(v) w = ai.onnx.ml.Binarizer<threshold=0.5>(u)"
    source = calling(nodes, "x", "x", opset=13, learned=', "ai.onnx.ml": 3')
    same_without_memo(source, 18, Options(ml_opset=1))
    planned.clear()
    Conversion(source, 18, Options(ml_opset=1))
    assert planned.count("ReduceMean") == 2


def test_contractions_are_found_in_each() -> None:
    nodes = "e = Exp(v) p = Sigmoid(v) w = Mul(v, p)"
    source = calling(nodes, "x", "x", opset=22)
    same_without_memo(source, 24, Options(contract=("all",)))


def test_what_makes_constants_is_the_same_in_each() -> None:
    """Below opset 9 an int64 is computed of further constants."""
    nodes = """starts = Constant<value = int64[2] {1, 1}>()
        ends = Constant<value = int64[2] {9007199254740993, 9223372036854775807}>()
        w = Slice(v, starts, ends)"""
    for target in (9, 8, 7):
        same_without_memo(calling(nodes, "x", "x", "z", opset=16), target)
