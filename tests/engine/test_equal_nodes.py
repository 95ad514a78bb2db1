"""Nodes that are equal but for names are each planned by what is known around them."""

import gc
import weakref

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.graph.scope import Scope


def model(*nodes: onnx.NodeProto, opset: int = 13) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "z")],
        [helper.make_empty_tensor_value_info(nodes[-1].output[0])],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("other", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def mixed() -> ModelProto:
    """Reductions equal and not, among nodes that no boundary touches."""
    nodes = []
    for index in range(4):
        names = {"name": f"n{index}", "doc_string": f"the {index}."}
        nodes += [
            helper.make_node("ReduceMean", ["x"], [f"a{index}"], axes=[1], **names),
            helper.make_node("ReduceMean", ["z"], [f"b{index}"], axes=[index % 2], **names),
            helper.make_node("ReduceMean", ["x"], [f"c{index}"], axes=[1], keepdims=0),
            helper.make_node("ReduceMax", [f"a{index}"], [f"d{index}"], name=f"m{index}"),
            helper.make_node("ReduceMax", [f"a{index}"], [f"e{index}"]),
            helper.make_node("Split", ["x"], [f"s{index}", f"t{index}"], axis=0),
            helper.make_node("Softmax", ["x"], [f"f{index}"]),
            helper.make_node("Pad", ["x", "pads"], [f"g{index}"], domain="other"),
        ]
        nodes[-8].metadata_props.add(key="from", value=f"layer {index}")
    return model(*nodes)


def test_equal_nodes_that_read_values_of_different_shapes() -> None:
    wide = helper.make_tensor_value_info("wide", TensorProto.FLOAT, [2, 3, 4])
    nodes = [
        helper.make_node("Softmax", [name], [f"y_{name}"], axis=1) for name in ("x", "wide", "z")
    ]
    found = model(*nodes, opset=12)
    found.graph.input.append(wide)
    Conversion(found, 13).apply()
    assert [node.op_type for node in found.graph.node] == [
        "Softmax",
        "Flatten",
        "Softmax",
        "Reshape",
        "Softmax",
    ]


def axes_as_inputs(*axes: list[int], like: str = "ReduceMean") -> ModelProto:
    """A reduction over each of the axes, which initializers of their own hold."""
    nodes = [helper.make_node(like, ["x", f"a{i}"], [f"y{i}"]) for i in range(len(axes))]
    found = model(*nodes, opset=18)
    for place, values in enumerate(axes):
        tensor = helper.make_tensor(f"a{place}", TensorProto.INT64, [len(values)], values)
        found.graph.initializer.append(tensor)
    return found


def test_equal_nodes_that_read_different_constants() -> None:
    found = axes_as_inputs(*[[0], [1], [1, 0]] * 20)
    Conversion(found, 17).apply()
    assert [list(node.attribute[0].ints) for node in found.graph.node] == [[0], [1], [1, 0]] * 20
    assert not found.graph.initializer


def test_constants_of_another_dtype_are_told_apart() -> None:
    """Only integers can be axes."""
    found = axes_as_inputs([0], [0])
    found.graph.initializer[1].CopyFrom(helper.make_tensor("a1", TensorProto.FLOAT, [1], [0.0]))
    with pytest.raises(InvalidModelError, match="'a1' is tensor\\(float\\)"):
        Conversion(found, 17)


def test_what_a_caller_may_override_is_told_from_constants() -> None:
    found = axes_as_inputs([0], [0], [0], [0])
    found.graph.input.append(helper.make_tensor_value_info("a2", TensorProto.INT64, [1]))
    sites = Conversion(found, 17).sites
    assert [len(site.result) == 1 for site in sites] == [True, True, False, True]


def test_a_kind_that_blocks_is_told_from_one_that_does_not() -> None:
    half = helper.make_tensor_value_info("h", TensorProto.BFLOAT16, [2, 3])
    nodes = [
        helper.make_node("Add", [name, f"{name}{name}"], [f"y{count}_{name}"])
        for count in range(3)
        for name in ("x", "h")
    ]
    made = [helper.make_node("Identity", [name], [f"{name}{name}"]) for name in ("x", "h")]
    found = model(*made, *nodes)
    found.graph.input.append(half)
    blocked = [blocker.node for blocker in Conversion(found, 12).blockers]
    assert blocked == ["making 'hh'", *(f"making 'y{count}_h'" for count in range(3))]


def test_a_conversion_is_freed_at_once() -> None:
    """The collector need not run, which takes long with many nodes."""
    found = Conversion(mixed(), 18)
    scope: weakref.ref[Scope] = weakref.ref(found.scopes[0])
    gc.disable()
    try:
        del found
        assert scope() is None
    finally:
        gc.enable()


def test_nodes_that_read_a_value_twice() -> None:
    nodes = [
        helper.make_node("Mul", ["x", other], [f"y{place}"], broadcast=1)
        for place, other in enumerate("xzxz")
    ]
    found = Conversion(model(*nodes, opset=6), 7)
    assert [site.result[0].input[:] for site in found.sites] == [["x", "x"], ["x", "z"]] * 2


MANY = 100


def in_two_shapes(op_type: str, opset: int, **attributes: int) -> ModelProto:
    """A long chain of one operator's nodes, whose second half reads values of another shape."""
    nodes, half = [], MANY // 2
    for index in range(MANY):
        value = f"n{index - 1}" if index else "x"
        if index == half:
            node = helper.make_node("Concat", [value, value], [f"n{index}"], axis=0)
        else:
            others = [["z"], ["c"]][index > half] if op_type == "Add" else []
            node = helper.make_node(op_type, [value, *others], [f"n{index}"], **attributes)
        nodes.append(node)
    found = model(*nodes, opset=opset)
    found.graph.input.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, [3]))
    return found


def test_what_is_stated_falsely_of_one_of_many() -> None:
    """What makes it is looked at, though its reader is equal to others."""
    found = in_two_shapes("Softmax", 13, axis=-1)
    true, false = f"n{MANY // 2 - 20}", f"n{MANY // 2 - 10}"
    found.graph.value_info.append(helper.make_tensor_value_info(true, TensorProto.FLOAT, [2, 3]))
    assert not Conversion(found, 10).blockers
    found.graph.value_info.append(helper.make_tensor_value_info(false, TensorProto.FLOAT, [2]))
    with pytest.raises(InvalidModelError, match=f"making '{false}'"):
        Conversion(found, 10)
