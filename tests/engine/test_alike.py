"""Functions that are alike are planned once, and come out as if each was planned by itself."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, helper

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pairs.making import PairMaker
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.model import scope as scope_module
from onnxreduce_cli.model import shape_inference
from onnxreduce_cli.model.gate.model import _Nodes
from onnxreduce_cli.model.scope import Scope
from tests.support import check_sites, model

#: The models that need a newer opset.
NEW = ("constants that go", "constants given by calls", "what becomes several nodes")

HEAD = '<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]>'
OWN = '<domain: "local", opset_import: ["" : {opset}, "local" : 1]>'

#: Of each model three functions or more have one body, by what is special about them.
MODELS = {
    "each called once": """
        g (float[2,3,4] x) => (float[n,m,k] y) {
            a = local.F(x) b = local.G(a) c = local.H(b) y = Softmax<axis = 1>(c)
        }
        F (p) => (q) { [r] t = ReduceMean<axes = [1]>(p) [s] q = Softmax<axis = 1>(t) }
        G (p) => (q) { [r] t = ReduceMean<axes = [1]>(p) [s] q = Softmax<axis = 1>(t) }
        H (p) => (q) { [r] t = ReduceMean<axes = [1]>(p) [s] q = Softmax<axis = 1>(t) }""",
    "called with several types": """
        g (float[2,3,4] x, double[2,3] z) => (float[n,m,k] y, double[n,m] w) {
            a = local.F(x) b = local.G(a) y = local.H(b)
            c = local.F(z) d = local.G(c) w = local.I(d)
        }
        F (p) => (q) { [r] t = ReduceMax<axes = [1]>(p) q = Softmax<axis = 1>(t) }
        G (p) => (q) { [r] t = ReduceMax<axes = [1]>(p) q = Softmax<axis = 1>(t) }
        H (p) => (q) { [r] t = ReduceMax<axes = [1]>(p) q = Softmax<axis = 1>(t) }
        I (p) => (q) { [r] t = ReduceMax<axes = [1]>(p) q = Softmax<axis = 1>(t) }""",
    "constants that go": """
        g (float[2,3,4] x) => (float[n,m,k] y) {
            a = local.F(x) b = local.G(a) c = local.H(b) y = Abs(c)
        }
        F (p) => (q) { axes = Constant<value = int64[1] {1}>() q = ReduceMean(p, axes) }
        G (p) => (q) { axes = Constant<value = int64[1] {1}>() q = ReduceMean(p, axes) }
        H (p) => (q) { axes = Constant<value = int64[1] {1}>() q = ReduceMean(p, axes) }""",
    "constants given by calls": """
        g (float[2,3,4] x) => (float[n,m,k] y)
        <int64[1] one = {1}, int64[1] two = {2}, int64[1] same = {1}> {
            a = local.F(x, one) b = local.G(a, two) y = local.H(b, same)
        }
        F (p, axes) => (q) { q = ReduceMean(p, axes) }
        G (p, axes) => (q) { q = ReduceMean(p, axes) }
        H (p, axes) => (q) { q = ReduceMean(p, axes) }""",
    "attributes": """
        g (float[2,3,4] x) => (float[n,m,k] y) {
            a = local.F<dims = [1]>(x) b = local.G<dims = [-1]>(a) c = local.H<dims = [1]>(b)
            d = local.F<dims = [2]>(c) y = local.H<dims = [1]>(d)
        }
        F <dims> (p) => (q) { [n] q = ReduceMax<axes : ints = @dims>(p) }
        G <dims> (p) => (q) { [n] q = ReduceMax<axes : ints = @dims>(p) }
        H <dims> (p) => (q) { [n] q = ReduceMax<axes : ints = @dims>(p) }""",
    "calling others": """
        g (float[2,3,4] x) => (float[n,m,k] y) {
            a = local.F(x) b = local.G(a) y = local.H(b)
        }
        F (p) => (q) { t = local.I(p) q = Softmax<axis = 1>(t) }
        G (p) => (q) { t = local.I(p) q = Softmax<axis = 1>(t) }
        H (p) => (q) { t = local.I(p) q = Softmax<axis = 1>(t) }
        I (p) => (q) { [r] q = ReduceMin<axes = [1]>(p) }
        J (p) => (q) { [r] q = ReduceMin<axes = [1]>(p) }""",
    "nobody calls them": """
        g (float[2,3,4] x) => (float[n,m,k] y) { y = Relu(x) }
        F (p) => (q) { [r] q = ReduceMean<axes = [1]>(p) }
        G (p) => (q) { [r] q = ReduceMean<axes = [1]>(p) }
        H (p) => (q) { [r] q = ReduceMean<axes = [1]>(p) }""",
    "graphs within": """
        g (float[2,3,4] x, bool c) => (float[n,m,k] y) {
            a = local.F(x, c) b = local.G(a, c) y = local.H(b, c)
        }
        F (p, c) => (q) { q = If (c) <
            then_branch = t () => (u) { u = ReduceMean<axes = [1]>(p) },
            else_branch = e () => (v) { v = Identity(p) }> }
        G (p, c) => (q) { q = If (c) <
            then_branch = t () => (u) { u = ReduceMean<axes = [1]>(p) },
            else_branch = e () => (v) { v = Identity(p) }> }
        H (p, c) => (q) { q = If (c) <
            then_branch = t () => (u) { u = ReduceMean<axes = [1]>(p) },
            else_branch = e () => (v) { v = Identity(p) }> }""",
    "what becomes several nodes": """
        g (float[2,3,4] x) => (float[n,m,k] y) {
            a = local.F(x) b = local.G(a) c = local.H(b) d = local.I(c) y = Mish(d)
        }
        F (p) => (q) { [m] t = Mish(p) [h] q = HardSwish(t) }
        G (p) => (q) { [m] t = Mish(p) [h] q = HardSwish(t) }
        H (p) => (q) { [m] t = Mish(p) [h] q = HardSwish(t) }
        I (p) => (q) { [m] t = Mish(p) [h] q = HardSwish(t) }""",
    "random values": """
        g (float[2,3,4] x) => (float[n,m,k] y) {
            a = local.F(x) b = local.G(a) y = local.H(b)
        }
        F (p) => (q) { [m] t = RandomNormalLike(p) [d] q = Softmax<axis = 1>(t) }
        G (p) => (q) { [m] t = RandomNormalLike(p) [d] q = Softmax<axis = 1>(t) }
        H (p) => (q) { [m] t = RandomNormalLike(p) [d] q = Softmax<axis = 1>(t) }""",
}


def source(what: str, opset: int) -> ModelProto:
    """A model of those above; its functions' text names the domain and imports each time."""
    lines = MODELS[what].strip().splitlines()
    own = [
        OWN.format(opset=opset) + line if line.strip()[:2] in _starts() else line for line in lines
    ]
    return model(HEAD.format(opset=opset) + "\n".join(own))


def _starts() -> set[str]:
    return {f"{letter} " for letter in "FGHIJ"}


def outcome(given: ModelProto, target: int, **options: Any) -> tuple[Any, ...]:
    """All that a conversion tells, and what it makes."""
    copy = ModelProto()
    copy.CopyFrom(given)
    conversion = Conversion(copy, target, **options)
    told = [conversion.plan().to_dict(), conversion.blockers, conversion.avoided]
    if conversion.blockers:
        return tuple(told)
    told += [check_sites(conversion).to_dict(), conversion.wrong_elsewhere]
    told += [[(site.scope.label, site.node.SerializeToString()) for site in conversion.sites]]
    conversion.apply()
    return (*told, copy.SerializeToString(deterministic=True))


@pytest.mark.parametrize("target", [7, 9, 10, 12, 18, 21])
@pytest.mark.parametrize("what", MODELS)
def test_it_is_as_if_each_was_planned_by_itself(
    what: str, target: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = source(what, 18 if what in NEW else 13)
    together = outcome(given, target)
    numbers = count()
    monkeypatch.setattr(scope_module, "body_key", lambda *_: b"%d" % next(numbers))
    assert outcome(given, target) == together


def many(number: int, *, overloads: bool = False, chained: bool = False) -> ModelProto:
    """Functions of one body, each called once."""
    functions, calls, value = [], [], "x"
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
        calls.append(helper.make_node(name, [value], [made], domain="f", overload=overload))
        value = made if chained else "x"
    return _model(calls, functions)


def _model(calls: list[NodeProto], functions: list[FunctionProto]) -> ModelProto:
    info = helper.make_tensor_value_info
    outputs = [info(calls[-1].output[0], TensorProto.FLOAT, None)]
    graph = helper.make_graph(calls, "g", [info("x", TensorProto.FLOAT, [2, 3, 4])], outputs)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("f", 1)]
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("target", [12, 18])
@pytest.mark.parametrize("how", [{}, {"overloads": True}, {"chained": True}], ids=str)
def test_the_work_is_done_once_for_all(
    how: dict[str, bool], target: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked: list[str] = []

    def counted(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def count_call(*arguments: Any, **named: Any) -> Any:
            worked.append(name)
            return original(*arguments, **named)

        monkeypatch.setattr(owner, name, count_call)

    for owner, name in (
        (SitePlan, "_plan_node"),
        (PairMaker, "pair"),
        (_Nodes, "_problem"),
        (shape_inference, "call_skeleton"),
        (scope_module, "walked"),
    ):
        counted(owner, name)

    def work(number: int) -> dict[str, int]:
        worked.clear()
        conversion = Conversion(many(number, **how), target)
        conversion.plan()
        assert check_sites(conversion).sites == number
        conversion.apply()
        return {name: worked.count(name) for name in set(worked)}

    few = work(5)
    assert few == work(50)
    assert few["pair"] <= 4
    assert few["_plan_node"] <= 4
    # The call, and the two nodes of the body.
    assert few["_problem"] == 3


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


def test_scopes_of_functions_alike_know_it() -> None:
    found = scope_module.scopes(many(3))
    main, first, *others = found
    assert main.like is None
    assert first.like is None
    assert [scope.like for scope in others] == [first, first]
    assert isinstance(others[0], Scope)
    assert others[0].op_types == ["ReduceMean", "Softmax"]
