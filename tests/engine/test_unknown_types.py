"""Blocked nodes behind one value of unknown type: that value is reported, once."""

from __future__ import annotations

from onnx import ModelProto, TensorProto, helper

import onnxreduce_cli
from tests.support import model


def behind_custom(nodes: str, output: str = "float[N,M] z") -> ModelProto:
    """A model whose nodes read `y`, which an operator of another domain gives."""
    found = model(f"""<ir_version: 8, opset_import: ["" : 18, "my.ops" : 1]>
    g (float[2,3] x) => ({output}) {{ y = my.ops.Foo(x) {nodes} }}""")
    found.graph.node[0].name = "foo"
    return found


def untyped(nodes: str) -> ModelProto:
    """The same, whose output `z` has no type."""
    found = behind_custom(nodes)
    found.graph.output[0].CopyFrom(helper.make_empty_tensor_value_info("z"))
    return found


CHAIN = untyped("a = Relu(y) b = Relu(a) c = Relu(b) d = Abs(y) z = Relu(c)")


def test_all_nodes_behind_an_unknown_dtype_are_one_blocker() -> None:
    (blocker,) = onnxreduce_cli.plan(CHAIN, 13).blockers
    assert str(blocker) == (
        "Foo node foo (opset 18): the type of 'y', which it gives as a node of domain 'my.ops', is "
        "not known: 4 nodes behind it cannot be converted (Relu node making 'a', ...); state it, "
        "such as: --type y=float"
    )
    assert onnxreduce_cli.plan(CHAIN, 13, types={"y": "float"}).blockers == ()


def test_a_dtype_that_its_nodes_take_is_the_example() -> None:
    source = untyped("""k = Constant<value_ints=[1]>() v, i = TopK(y, k)
    z = BitShift<direction="LEFT">(y, y)""")
    (blocker,) = onnxreduce_cli.plan(source, 10).blockers
    assert blocker.advice == "state it, such as: --type y=uint16"


def test_all_nodes_behind_an_unknown_rank_are_one_blocker() -> None:
    source = behind_custom("a = Mish(y) b = Mish(a) z = Abs(b)")
    (blocker,) = onnxreduce_cli.plan(source, 6).blockers
    assert "the rank of 'y', which it gives as a node of domain 'my.ops'" in blocker.reason
    assert "2 nodes behind it" in blocker.reason
    assert blocker.advice == "state it, such as: --type 'y=float[N,3,224]'"
    assert onnxreduce_cli.plan(source, 6, types={"y": "float[N,3]"}).blockers == ()


def test_each_root_is_reported_once() -> None:
    source = behind_custom("v = my.ops.Foo(x) a = Mish(y) b = Mish(v) c = Mish(b) z = Add(a, c)")
    first, second = onnxreduce_cli.plan(source, 6, types={"y": "float"}).blockers
    assert (first.node, second.node) == ("foo", "making 'v'")
    assert "a node behind it" in first.reason or "nodes behind it" in first.reason


def test_nodes_within_subgraphs_are_behind_what_is_around_them() -> None:
    source = untyped("""c = Constant<value_ints=[1]>() t = Cast<to=9>(c) s = Squeeze(t)
    z = If(s) <then_branch = one () => (float u) { u = Relu(y) },
               else_branch = two () => (float w) { w = Relu(y) }>""")
    for attribute in source.graph.node[-1].attribute:
        name = attribute.g.output[0].name
        attribute.g.output[0].CopyFrom(helper.make_empty_tensor_value_info(name))
    (blocker,) = onnxreduce_cli.plan(source, 13).blockers
    assert blocker.node == "foo"
    assert blocker.scope == ""
    assert "3 nodes behind it" in blocker.reason


def test_what_an_operator_of_the_default_domain_hides_is_a_root_for_several_nodes() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
    g (float[6] x, int64[R] s) => (float[N,M] z) {
      y = Reshape(x, s) a = Mish(y) b = Mish(a) z = Abs(b) }""")
    (blocker,) = onnxreduce_cli.plan(source, 6).blockers
    assert blocker.node == "making 'y'"
    assert "the rank of 'y', which it gives, is not known: 2 nodes" in blocker.reason


def test_other_blockers_stay_as_they_are() -> None:
    source = untyped("a = Relu(y) b = Relu(a) c = Abs(x) z = Relu(b)")
    source.graph.node[3].CopyFrom(helper.make_node("ImageDecoder", ["bytes"], ["c"], name="dec"))
    source.graph.input.append(helper.make_tensor_value_info("bytes", TensorProto.UINT8, [9]))
    source.opset_import[0].version = 20
    assert [item.node for item in onnxreduce_cli.plan(source, 13).blockers] == ["foo", "dec"]
