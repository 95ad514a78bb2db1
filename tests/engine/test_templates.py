"""Alike nodes: what steps made of one is made of all, and nothing else."""

import gc
import weakref
from collections.abc import Callable

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from onnxreduce_cli.engine import carry
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.templates import Template
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model import alike_types, signatures
from onnxreduce_cli.model.scope import Scope


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
    """Reductions alike and not, among nodes that no boundary touches."""
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


@pytest.mark.parametrize("target", [11, 14, 18, 20])
def test_the_result_is_that_of_each_node_alone(
    target: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, alone = mixed(), mixed()
    first = Conversion(together, target)
    first.apply()
    monkeypatch.setattr(Scope, "signatures", property(lambda self: [None] * len(self.nodes)))
    second = Conversion(alone, target)
    second.apply()
    assert first.plan() == second.plan()
    assert together.SerializeToString() == alone.SerializeToString()


def typed() -> ModelProto:
    """Nodes at opset 18 of which steps ask for types, of values of several types."""
    nodes = []
    for index, to in enumerate([TensorProto.DOUBLE, TensorProto.INT32, TensorProto.DOUBLE] * 3):
        nodes += [
            helper.make_node("Cast", ["x"], [f"a{index}"], to=to),
            helper.make_node("Add", [f"a{index}", f"a{index}"], [f"b{index}"]),
            helper.make_node("Add", [f"b{index}", f"a{index}"], [f"c{index}"]),
            helper.make_node("Relu", [f"c{index}"], [f"d{index}"]),
            helper.make_node("ReduceMax", [f"d{index}"], [f"e{index}"]),
        ]
    return model(*nodes, opset=18)


@pytest.mark.parametrize("target", [6, 11, 13])
def test_the_result_is_the_same_where_types_are_inferred_for_alike_nodes(
    target: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = typed(), typed()
    first = Conversion(one, target)
    monkeypatch.setattr(alike_types, "FEW", 1)
    monkeypatch.setattr(alike_types, "_ALIKE", 1)
    monkeypatch.setattr(signatures, "_FEW", 1)
    second = Conversion(other, target)
    assert second.given_facts.groups(second.given_scopes[0]) is not None
    assert first.plan() == second.plan()
    if not first.blockers:
        first.apply()
        second.apply()
        assert one.SerializeToString() == other.SerializeToString()


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators of the nodes that steps have looked at."""
    seen: list[str] = []
    original: Callable[..., carry.Context] = carry.Context

    def counted(node: onnx.NodeProto, *others: object, **options: bool) -> carry.Context:
        seen.append(node.op_type)
        return original(node, *others, **options)

    monkeypatch.setattr(carry, "Context", counted)
    return seen


def test_a_step_looks_at_one_of_many_alike(contexts: list[str]) -> None:
    nodes = [helper.make_node("ReduceMean", ["x"], [f"y{i}"], axes=[1]) for i in range(1000)]
    plan = Conversion(model(*nodes), 18).plan()
    assert len(plan.changes) == 1000
    assert contexts == ["ReduceMean"]


def test_a_step_that_asks_about_values_looks_at_each(contexts: list[str]) -> None:
    wide = helper.make_tensor_value_info("wide", TensorProto.FLOAT, [2, 3, 4])
    nodes = [
        helper.make_node("Softmax", [name], [f"y_{name}"], axis=1) for name in ("x", "wide", "z")
    ]
    found = model(*nodes, opset=12)
    found.graph.input.append(wide)
    Conversion(found, 13).apply()
    assert contexts.count("Softmax") >= 3
    assert [node.op_type for node in found.graph.node] == [
        "Softmax",
        "Flatten",
        "Softmax",
        "Reshape",
        "Softmax",
    ]


def test_a_step_that_asks_for_kinds_looks_at_one_of_each(contexts: list[str]) -> None:
    """Add lost bfloat16 on the way below 13: each type is looked at, once."""
    integer = helper.make_tensor_value_info("i", TensorProto.INT32, [2, 3])
    nodes = [
        helper.make_node("Add", [name, f"{name}{name}"], [f"y{count}_{name}"])
        for count in range(50)
        for name in ("x", "i")
    ]
    made = [helper.make_node("Identity", [name], [f"{name}{name}"]) for name in ("x", "i")]
    found = model(*made, *nodes)
    found.graph.input.append(integer)
    assert not Conversion(found, 12).blockers
    assert contexts == ["Identity", "Identity", "Add", "Add"]


def axes_as_inputs(*axes: list[int], like: str = "ReduceMean") -> ModelProto:
    """A reduction over each of the axes, which initializers of their own hold."""
    nodes = [helper.make_node(like, ["x", f"a{i}"], [f"y{i}"]) for i in range(len(axes))]
    found = model(*nodes, opset=18)
    for place, values in enumerate(axes):
        tensor = helper.make_tensor(f"a{place}", TensorProto.INT64, [len(values)], values)
        found.graph.initializer.append(tensor)
    return found


def test_a_step_that_asks_for_constants_looks_at_one_of_each(contexts: list[str]) -> None:
    found = axes_as_inputs(*[[0], [1], [1, 0]] * 20)
    Conversion(found, 17).apply()
    assert len(contexts) == 3
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
    assert sites[0].template is sites[1].template is not None


def test_large_constants_are_not_compared(contexts: list[str]) -> None:
    found = axes_as_inputs(*[[0] * 65] * 3)
    Conversion(found, 17)
    assert len(contexts) == 3


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


def test_nodes_that_read_a_value_twice_have_no_template() -> None:
    """Which of its two inputs a step meant by the name cannot be told."""
    nodes = [
        helper.make_node("Mul", ["x", other], [f"y{place}"], broadcast=1)
        for place, other in enumerate("xzxz")
    ]
    found = Conversion(model(*nodes, opset=6), 7)
    assert [site.result[0].input[:] for site in found.sites] == [["x", "x"], ["x", "z"]] * 2
    twice = [site.template for site in found.sites[::2]]
    assert twice == [None, None]
    assert found.sites[3].template is not None


#: More nodes than inference of the whole graph is asked for.
MANY = 2100


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


@pytest.mark.parametrize(
    ("op_type", "attributes", "opset", "target"),
    [
        ("Add", {}, 13, 6),
        ("Softmax", {"axis": -1}, 13, 10),
        ("Softmax", {"axis": 1}, 9, 13),
    ],
)
def test_a_step_that_asks_for_shapes_looks_at_one_of_each(
    op_type: str,
    attributes: dict[str, int],
    opset: int,
    target: int,
    contexts: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = (in_two_shapes(op_type, opset, **attributes) for _ in range(2))
    first = Conversion(one, target)
    assert contexts.count(op_type) < 12
    monkeypatch.setattr(alike_types, "FEW", 2 * MANY)
    second = Conversion(other, target)
    assert contexts.count(op_type) > MANY
    assert first.plan() == second.plan()
    first.apply()
    second.apply()
    assert one.SerializeToString() == other.SerializeToString()


def test_what_is_stated_falsely_of_one_of_many() -> None:
    """What makes it is looked at, though its reader is like others."""
    found = in_two_shapes("Softmax", 13, axis=-1)
    true, false = f"n{MANY // 2 - 20}", f"n{MANY // 2 - 10}"
    found.graph.value_info.append(helper.make_tensor_value_info(true, TensorProto.FLOAT, [2, 3]))
    assert not Conversion(found, 10).blockers
    found.graph.value_info.append(helper.make_tensor_value_info(false, TensorProto.FLOAT, [2]))
    with pytest.raises(InvalidModelError, match=f"making '{false}'"):
        Conversion(found, 10)


@pytest.mark.parametrize(
    ("given", "made", "other", "expected"),
    [
        (["a", "b"], ["b", "a"], ["x", "y"], ["y", "x"]),
        (["a", "b"], ["a"], ["x", "y"], ["x"]),
        (["a"], ["a", "c"], ["x"], ["x", "c"]),
        (["a", ""], ["a"], ["x", ""], ["x", ""]),
        (["a", "b"], ["a", "b"], ["x", "y"], ["x", "y"]),
        (["a", "b"], ["a", "c"], ["x", "y"], ["x", "c"]),
    ],
)
def test_a_node_that_a_template_is_filled_for(
    given: list[str], made: list[str], other: list[str], expected: list[str]
) -> None:
    node = helper.make_node("Old", given, ["o"], name="n", axis=1)
    template = Template.of(node, [helper.make_node("New", made, ["o"], k=2)], (), False)
    assert template is not None
    filled = helper.make_node("Old", other, ["p"], name="m", axis=1)
    template.fill([filled])
    assert filled == helper.make_node("New", expected, ["p"], name="m", k=2)
