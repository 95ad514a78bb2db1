"""Functions that are equal but for their names keep these."""

from __future__ import annotations

from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, helper

from onnxreduce_cli.engine.conversion import Conversion
from tests.support import model


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
