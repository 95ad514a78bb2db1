"""What is in the way to all opsets and runtimes is what conversions say."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.conversion_request import ConversionRequest
from onnxreduce_cli.engine.converted_nodes import ConvertedNode
from onnxreduce_cli.engine.inspection import inspect
from onnxreduce_cli.engine.new_constants import ConstantMaker
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.planning import make_plan
from onnxreduce_cli.engine.reach import Reach
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.targets.allowed import operator_list_target
from onnxreduce_cli.targets.requirement import Target, find_target
from tests.support import conversions, model, several_times
from tests.test_models import OWN
from tests.test_round_trips import SAMPLES

OPSETS = range(1, schemas.newest_opset() + 1)

#: Runtimes that refuse much, or get much wrong that can be written in another way.
RUNTIMES = ("opencv==4.5", "nncase", "onnxruntime==1.3", "ncnn")


def differing(found: ModelProto) -> list[int | str]:
    """The opsets, and the runtimes, of which a conversion says another thing."""
    reach = Reach(found)
    wrong: list[int | str] = []
    for whole in conversions(found):
        outcome = reach.to(whole.target)
        wrong += [] if outcome.blockers == whole.blockers else [whole.target]
    for name in RUNTIMES:
        target, opset = find_target(name), 13
        whole = Conversion(found, opset, runtime=target, facts=reach.facts)
        wrong += [] if reach.to(opset).suits(target) is not bool(whole.blockers) else [name]
    return wrong


@pytest.mark.parametrize(
    "path", sorted([*OWN.glob("*.onnx"), *SAMPLES.glob("*.onnx")]), ids=lambda path: path.stem
)
def test_models(path: Path) -> None:
    assert not differing(onnx.load(path))


def test_what_a_step_states_of_the_models_values_holds_for_one_opset() -> None:
    found = model(
        """<ir_version: 10, opset_import: ["" : 23]>
        g (float[2,3,4,8] q, float[2,3,N,8] k) => (float[2,3,4,8] y, float[2,3,4,N] z) {
          y, keys, values, scores = Attention(q, k, k)
          z = Softmax<axis=1>(scores)
        }"""
    )
    assert not differing(found)
    reach = Reach(found)
    reach.to(22)
    assert reach.drafts is None


def chain(count: int) -> ModelProto:
    """A ReduceMean, a Softmax and an Add in turns."""
    kinds = [("ReduceMean", {"axes": [1]}), ("Softmax", {"axis": -1}), ("Add", {})]
    nodes, value = [], "x"
    for index in range(count):
        op_type, attributes = kinds[index % 3]
        given = [value, "x"] if op_type == "Add" else [value]
        value = f"v{index}"
        nodes.append(helper.make_node(op_type, given, [value], name=value, **attributes))
    info = helper.make_tensor_value_info
    inputs = [info("x", TensorProto.FLOAT, [2, 3])]
    graph = helper.make_graph(nodes, "g", inputs, [info(value, TensorProto.FLOAT, None)])
    opset = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def test_each_node_that_blocks_is_told() -> None:
    found = model("""<ir_version: 8, opset_import: ["" : 13]>
    g (bfloat16[2,3] x, float[2,3] f) => (bfloat16[2,3] a, float[2,3] b, bfloat16[2,3] c)
    { a = Add(x, x) b = Add(f, f) d = Mul(x, x) e = Mul(x, x) c = Add(x, x) }""")
    blockers = Reach(found).to(12).blockers
    assert [blocker.node for blocker in blockers] == [f"making {name!r}" for name in "adec"]
    assert not differing(found)


def test_values_that_are_read_twice_are_told_apart() -> None:
    """Add<x, x> needs no broadcast at opset 6; Add<x, y> does."""
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[n,k] x, float[k] y) => (float[n,k] a, float[n,k] b, float[n,k] c)
    { a = Add(x, x) b = Add(x, y) c = Add(x, y) }"""
    assert not differing(model(text))


def test_what_is_written_without_initializers_is_not_taken_where_there_are_some() -> None:
    reach = Reach(
        model("""<ir_version: 8, opset_import: ["" : 9]>
    g (int64[1] x) => (int64[1] y) { c = Constant<value=int64[1] {5}>() y = Sub(x, c) }""")
    )
    written = []
    for ir_version in (3, 8, 3):
        request = ConversionRequest(reach.own, 8, Options(ir_version=ir_version))
        (site,) = make_plan(reach.input, request, drafts=reach.drafts).sites
        written.append((*site.operators, *(tensor.name for tensor in site.initializers)))
    assert written == [("Constant", "Cast"), ("c",), ("Constant", "Cast")]


def test_what_is_dead_is_not_in_the_way() -> None:
    """At opset 10 nothing reads the axes of a Squeeze any more, so that nothing makes them."""
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[1,3] x) => (float[3] y, float[3] z)
    {
      a = Constant<value_ints=[0]>() i = Constant<value_ints=[1]>() j = Sub(i, i)
      k = Add(j, a) y = Squeeze(x, k) l = Add(j, a) z = Squeeze(x, l)
    }"""
    assert not differing(model(text))


@pytest.mark.parametrize("count", [2, 5])
def test_a_later_node_that_cannot_be_there_is_told_by_its_name(count: int) -> None:
    """The last of several alike is stated to give another rank than it gives."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("ReduceSum", ["x"], [f"y{index}"], name=f"n{index}", axes=[0], keepdims=0)
        for index in range(count)
    ]
    nodes += [helper.make_node("Add", [f"y{i}", "b"], [f"z{i}"]) for i in range(count)]
    stated = [info(f"y{i}", TensorProto.FLOAT, [3]) for i in range(count - 1)]
    stated.append(info(f"y{count - 1}", TensorProto.FLOAT, [2, 3]))
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", TensorProto.FLOAT, [2, 3]), info("b", TensorProto.FLOAT, [1])],
        [info(f"z{i}", TensorProto.FLOAT, None) for i in range(count)],
        value_info=stated,
    )
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    with pytest.raises(InvalidModelError) as whole:
        Conversion(found, 5)
    with pytest.raises(InvalidModelError) as reached:
        Reach(found).to(5)
    assert str(reached.value) == str(whole.value)
    assert f"n{count - 1}" in str(reached.value)


def test_what_makes_a_later_value_may_not_give_it() -> None:
    """All that the Adds read is stated alike, and one value is made of another shape."""
    text = """<ir_version: 3, opset_import: ["" : 7]>
    g (float[2,3] x, float[3] v) => (float[2,3] a, float[2,3] b, float[2,3] c)
    <float[3] p, float[3] q, float[3] r>
    { p = Relu(v) a = Add(x, p) q = Relu(v) b = Add(x, q) r = Relu(x) c = Add(x, r) }"""
    found = onnx.parser.parse_model(text)
    with pytest.raises(InvalidModelError) as whole:
        Conversion(found, 6)
    with pytest.raises(InvalidModelError) as reached:
        Reach(found).to(6)
    assert str(reached.value) == str(whole.value)
    assert "'r'" in str(reached.value)


def test_each_node_is_told_that_blocks_for_want_of_its_constants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That is known only when all nodes are planned."""

    def refuse(*_: object) -> None:
        raise Blocked("no node makes it", "")

    monkeypatch.setattr(ConstantMaker, "read_in", refuse)
    found = several_times(
        model("""<ir_version: 3, opset_import: ["" : 7]>
        g (float[2,1] x, float[1,3] y) => (float[2,3] z) { z = Sub(x, y) }"""),
        3,
    )
    blockers = Reach(found).to(6).blockers
    assert len(blockers) == 3
    assert blockers == Conversion(found, 6).blockers


def test_a_runtime_s_quirk_is_found_in_a_later_node() -> None:
    """nncase gets a Hardmax wrong of which no element is positive; it is written by comparisons."""
    target: Target = find_target("nncase")
    found = several_times(
        model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3] x) => (float[2,3] y) { y = Hardmax(x) }"""),
        4,
    )
    assert Reach(found).to(13).suits(target)
    assert Conversion(found, 13, runtime=target).avoided.total() == 4


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators of the nodes that something else was written in place of, each time."""
    found = []
    write = ConvertedNode._write

    def noted(node: ConvertedNode, *args: Any) -> Sequence[ConvertedNode] | None:
        found.append(node.node.op_type)
        return write(node, *args)

    monkeypatch.setattr(ConvertedNode, "_write", noted)
    return found


def test_what_can_be_written_is_written_once_for_all_runtimes(written: list[str]) -> None:
    reach = Reach(
        model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3,3] x) => (float[2] y) { y = Det(x) }""")
    ).to(13)
    lists = (["Softmax", "Add"], ["Abs", "ReduceSum", "Add"], ["ReduceL1"])
    first, *others = [operator_list_target(names) for names in lists]
    assert not reach.suits(first)
    done = [*written]
    assert "Det" in done
    assert not any(reach.suits(target) for target in others)
    assert written == done


def test_only_what_a_runtime_does_not_take_is_written_otherwise(written: list[str]) -> None:
    reach = Reach(
        model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3,3] x) => (float[2,3,1] y) { l = ReduceL1<axes=[2], keepdims=1>(x)
        s = Softmax(x) p = Add(l, s) y = ReduceL1<axes=[2], keepdims=1>(p) }""")
    ).to(13)
    assert reach.suits(operator_list_target(["ReduceL1", "Softmax", "Add"]))
    assert not written
    assert reach.suits(operator_list_target(["Abs", "ReduceSum", "Softmax", "Add"]))
    done = [*written]
    assert {*done} == {"ReduceL1"}
    assert not reach.suits(operator_list_target(["ReduceL1", "Softmax"]))
    assert "Add" in written
    assert written.count("ReduceL1") == len(done)


#: Nodes that something else can be written for, one of them in steps, one whose sizes may be dead
#: afterwards, two in branches, and one of another domain.
VARIOUS = """<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1, "local" : 1]>
g (float[2,3] x, bool c) => (float[2,3] y) <int64[2] a = {4, 3}, int64[2] b = {2, 1}>
{
  m = Mish(x) s = Div(a, b) n = ReduceL1<keepdims=1>(m) e = Expand(n, s)
  i = If (c) <then_branch = t () => (float[2,3] p) { p = Softsign(e) },
              else_branch = f () => (float[2,3] q) { q = Celu(e) }>
  q = com.microsoft.QuickGelu<alpha=1.7>(i) y = HardSwish(q)
}"""

#: The same with a function.
CALLING = VARIOUS.replace(" HardSwish(q)", " local.own(q)")
CALLING += """<domain: "local", opset_import: ["" : 18]> own (v) => (w) { w = HardSwish(v) }"""

_WRITTEN = ("Abs", "Add", "Celu", "Clip", "Div", "Elu", "Exp", "Expand", "HardSwish", "If", "Log")
_WRITTEN += ("Max", "Mish", "Mul", "Neg", "ReduceL1", "ReduceSum", "Relu", "Sigmoid", "Softplus")
_WRITTEN += ("Softsign", "Tanh", "Tile", "Where", "com.microsoft.QuickGelu", "HardSigmoid", "Min")


@given(st.sets(st.sampled_from(_WRITTEN)), st.sampled_from([VARIOUS, CALLING]))
@settings(max_examples=60, deadline=None)
def test_what_runtimes_take_is_what_conversions_for_them_say(lacking: set[str], text: str) -> None:
    found, target = model(text), operator_list_target(["Constant", *sorted({*_WRITTEN} - lacking)])
    whole = Conversion(found, 18, runtime=target)
    assert Reach(found).to(18).suits(target) is not bool(whole.blockers)


@pytest.mark.parametrize("lacking", [[], ["ReduceL1"], ["ReduceL1", "Abs"]])
def test_what_makes_constants_must_be_taken_as_well(lacking: list[str]) -> None:
    """At opset 8 they are nodes: IR version 3, which came with it, has no constant initializers."""
    found = model("""<ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (float[1,1] y) { m = ReduceL1(x) y = Sign(m) }""")
    names = {"Abs", "Cast", "Div", "Greater", "Less", "Or", "ReduceL1", "ReduceSum", "Sub"}
    names = names.difference(lacking)
    reach = Reach(found).to(8)
    targets = [operator_list_target(sorted({*names, *more})) for more in ([], ["Constant"])]
    whole = [not Conversion(found, 8, runtime=target).blockers for target in targets]
    assert [reach.suits(target) for target in targets] == whole
    assert whole == [False, "Abs" not in lacking]


def test_what_a_runtime_does_not_take_may_be_dead_afterwards() -> None:
    """A Constant of axes is, once they are an attribute, and what computes sizes of an Expand."""
    squeezed = Reach(
        model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[1,3] x) => (float[3] y) { a = Constant<value_ints=[0]>() y = Squeeze(x, a) }""")
    )
    target = operator_list_target(["Squeeze"])
    assert [squeezed.to(opset).suits(target) for opset in (12, 13)] == [True, False]
    expanded = Reach(
        model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,1] x) => (float[2,3] y) <int64[2] a = {4, 3}, int64[2] b = {2, 1}>
        { s = Div(a, b) y = Expand(x, s) }""")
    ).to(13)
    lists = (["Tile"], ["Add"])
    assert [expanded.suits(operator_list_target(names)) for names in lists] == [True, False]


def test_a_refused_domain_is_no_reason_for_other_operators() -> None:
    """Of two runtimes that say the same of the default domain, one takes the other operator."""
    reach = Reach(
        model("""<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]>
        g (float[2,3] x) => (float[2,3] z) {
            y = ReduceL1<axes=[1], keepdims=1>(x) z = com.microsoft.BiasDropoutX(x, y) }""")
    ).to(13)
    lists = (["Abs", "ReduceSum"], ["Abs", "ReduceSum", "com.microsoft.BiasDropoutX"])
    assert [reach.suits(operator_list_target(names)) for names in lists] == [False, True]


def test_what_is_written_for_a_runtime_instead_of_its_domain_is_no_reason_to_refuse() -> None:
    found = model("""<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]>
    g (float[2,3] x) => (float[2,3] y) { y = com.microsoft.QuickGelu<alpha=1.7>(x) }""")
    assert not Conversion(found, 13, runtime=find_target("opencv==4.10")).blockers
    assert "opencv" in inspect(found).runtimes.converted


def test_what_was_planned_is_freed_at_once() -> None:
    """The collector need not run, which takes long with many nodes."""
    reach = Reach(chain(60))
    assert not reach.to(6).blockers
    scope = weakref.ref(reach.facts.scopes[0])
    gc.disable()
    try:
        del reach
        assert scope() is None
    finally:
        gc.enable()
