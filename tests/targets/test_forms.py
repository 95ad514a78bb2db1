"""The forms of a node that runtimes tell apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper

from onnxreduce_cli.emit.node_facts import Lookups, NodeFacts, Workspace
from onnxreduce_cli.model.graph.edit import Constants
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.targets.forms import FORMS
from tests.support import model, one_node

X = np.zeros((2, 3, 4), np.float32)
AXES = np.array([1], np.int64)
NONE = np.array([], np.int64)
PADS = np.array([1, 1], np.int64)


def of(
    op_type: str,
    opset: int,
    *constants: np.ndarray | None,
    last: np.ndarray | None = None,
    **more: Any,
) -> set[str]:
    """The forms of a node of float data of shape [2, 3, 4], of constants and a run-time input."""
    inputs: dict[str, np.ndarray | None] = {"x": X}
    inputs |= {f"c{index}": array for index, array in enumerate(constants)}
    if last is not None:
        inputs["last"] = last
    held = tuple(f"c{index}" for index in range(len(constants)))
    return forms(
        one_node(op_type, opset, inputs, initializers=held, output_shapes=[[None] * 3], **more)
    )


#: Forms that are asked of some operators alone.
ASKED = {
    "Clip": {"computed bounds", "infinite bound"},
    "LSTM": {"final states"},
    "Squeeze": {"no axes"},
    "GridSample": {"border"},
    "DequantizeLinear": {"4 bits", "axis beyond rank"},
    "Concat": {"lists from the end"},
    "LeakyRelu": {"like a second Relu"},
    "InstanceNormalization": {"no epsilon"},
    "Mul": {"smaller constant", "norm", "norm of another"},
    "Div": {"norm", "norm of another"},
    "Add": {
        *("broadcast", "inner broadcast", "broadcast of rank 5", "operand of rank 1"),
        *("like Gelu", "like Gelu in order"),
    },
    "Sub": {"integers with a constant", "smaller first"},
    "ReduceL2": {"single elements", "no image", "outer axes"},
    "ReduceProd": {"negative axes"},
    "ReduceLogSum": {"in threads"},
    "ReduceSum": {"kept dimensions"},
    "ReduceMin": {
        "all axes",
        "three kept",
        "last kept",
        "three reduced",
        "three reduced, not last",
    },
    "Max": {"broadcast before image", "constant operand", "more than two"},
    "Cast": {"float to integer", "number to bool"},
    "Gemm": {"alpha or beta", "computed C"},
    "ArgMax": {"vector"},
    "Unsqueeze": {"several axes"},
    "Tile": {"inner repeats"},
    "Gather": {"several indices", "list of indices", "rows of strings"},
    "Identity": {"input to output", "constant operand", "constant to output"},
    "Pow": {"scaled next"},
    "Conv": {
        "no kernel_shape",
        "no kernel_shape of three",
        "dequantized operands",
        "flat depthwise",
    },
    "Constant": {"no tensor", "list", "list of floats"},
    "Shape": {"start or end"},
    "Reshape": {"allowzero and -1"},
    "Less": {"narrow integer", "int8"},
    "Upsample": {"outer dimensions", "not of rank 4"},
}
OTHERS = set(FORMS) - {"any", "exact"}.union(*ASKED.values())


def forms(source: ModelProto) -> set[str]:
    names = forms_of_last(source, set(FORMS))
    assert "any" in names
    assert ("tanh" in names) != ("exact" in names)
    return names & ASKED.get(source.graph.node[-1].op_type, OTHERS)


def forms_of_last(source: ModelProto, asked: set[str], index: int = -1) -> set[str]:
    """The forms of the last node, or another one, of those that are asked about."""
    facts = admit(source)
    (scope,) = facts.scopes
    opset = scope.opset or 0
    workspace = Workspace(facts.extended(), Names([scope]), Constants(), GraphProto())
    node = NodeFacts(scope.nodes[index], scope, opset, workspace, Lookups())
    return {name for name in asked if FORMS[name](node)}


def test_axes() -> None:
    assert of("ReduceMax", 18, AXES) == {"axes input"}
    assert of("ReduceMax", 18, last=AXES) == {"axes input"}
    assert of("ReduceMax", 18, NONE) == set()
    assert of("ReduceMax", 18) == set()
    assert of("ReduceMax", 13, axes=[1]) == {"axes attribute"}
    assert of("Pad", 18, PADS, None, AXES) == {"axes input"}
    assert of("Pad", 18, np.zeros(6, np.int64)) == set()


def test_noop_with_empty_axes() -> None:
    assert of("ReduceMax", 18, noop_with_empty_axes=1) == {"noop"}
    assert of("ReduceMax", 18, NONE, noop_with_empty_axes=1) == {"noop"}
    assert of("ReduceMax", 18, AXES, noop_with_empty_axes=1) == {"axes input"}
    unknown = of("ReduceMax", 18, last=AXES, noop_with_empty_axes=1)
    assert unknown == {"axes input", "noop"}


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
def test_flattening(op_type: str) -> None:
    assert of(op_type, 11) == of(op_type, 11, axis=0) == {"flattening"}
    assert of(op_type, 11, axis=-2) == {"flattening", "flattening from the end"}
    assert of(op_type, 11, axis=2) == of(op_type, 11, axis=-1) == set()
    assert of(op_type, 13) == of(op_type, 13, axis=2) == set()
    assert of(op_type, 13, axis=1) == of(op_type, 13, axis=-2) == {"inner axis"}


def test_flattening_dimensions_of_size_1() -> None:
    ones = np.zeros((2, 3, 1), np.float32)
    assert forms(one_node("Softmax", 11, {"x": ones}, axis=1)) == set()
    assert forms(one_node("Softmax", 11, {"x": ones}, axis=0)) == {"flattening"}


def test_flattening_where_the_rank_is_not_known() -> None:
    hidden = one_node("Softmax", 11, {"x": X}, axis=2, shapes={"x": None})
    assert "flattening" in forms(hidden)
    assert "flattening" not in forms(one_node("Softmax", 11, {"x": X}, axis=-1, shapes={"x": None}))


def reduced(*shape: int, axes: list[int] | None, opset: int = 13) -> set[str]:
    more = {} if axes is None else {"axes": axes}
    return forms(one_node("ReduceL2", opset, {"x": np.zeros(shape, np.float32)}, **more))


def test_what_a_reduction_reduces() -> None:
    assert reduced(1, 3, 4, 5, axes=[0]) == reduced(1, 3, 1, 5, axes=[0, -2]) - {"outer axes"}
    assert reduced(1, 3, 4, 5, axes=[0]) == {"single elements"}
    assert reduced(1, 1, 1, axes=None) == {"single elements"}
    assert reduced(1, 3, 4, 5, axes=[0, 1]) == reduced(2, 3, 4, 5, axes=[3, 2]) == {"outer axes"}
    assert reduced(1, 3, 4, 5, axes=[2, 3]) == reduced(1, 3, 4, axes=[-1]) == set()
    assert reduced(1, 3, 4, 5, axes=None) == set()
    assert reduced(3, 4, axes=[1]) == {"no image"}
    assert of("ReduceL2", 18, AXES) == set()
    assert of("ReduceL2", 18, last=AXES) == {"outer axes"}


def test_input_to_output() -> None:
    assert of("Identity", 13) == {"input to output"}
    between = model("""<ir_version: 7, opset_import: ["" : 13]>
        g (float[2] x) => (float[2] y) { n = Neg(x) y = Identity(n) }""")
    assert forms(between) == set()


def test_identity_of_a_constant() -> None:
    source = one_node("Identity", 13, {"x": X}, initializers=("x",))
    assert forms(source) == {"constant operand", "constant to output"}
    between = model("""<ir_version: 7, opset_import: ["" : 13]>
        g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> { y = Add(x, c) d = Identity(c) }""")
    assert forms(between) == {"constant operand"}


def test_integers_with_a_constant() -> None:
    numbers, two = np.zeros((2, 3), np.int64), np.array(2, np.int64)
    given = one_node("Sub", 13, {"x": numbers, "c": two}, initializers=("c",))
    assert forms(given) == {"integers with a constant"}
    given = one_node("Sub", 13, {"c": two, "x": numbers}, initializers=("c",))
    assert forms(given) == {"integers with a constant"}
    assert forms(one_node("Sub", 13, {"x": numbers, "z": numbers})) == set()
    given = one_node("Sub", 13, {"x": numbers[0], "c": two}, initializers=("c",))
    assert forms(given) == set()
    assert of("Sub", 13, np.float32(2)) == set()


def test_after_a_transpose() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Hardmax", ["t"], ["y"], axis=-1),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, [2, 3, 4])],
        [value("y", TensorProto.FLOAT, [2, 4, 3])],
    )
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    assert forms(found) == {"after Transpose"}


def test_attributes() -> None:
    factors = np.array([1, 2, 2], np.float32)
    assert of("Resize", 18, None, factors, mode="linear") == {
        "linear",
        "linear, no coordinates",
    }
    mapped = of("Resize", 18, None, factors, mode="linear", coordinate_transformation_mode="x")
    assert mapped == {"linear"}
    assert of("Resize", 18, None, factors, mode="linear", antialias=1) == {"antialias"}
    assert of("Resize", 18, None, factors) == set()
    assert of("Gelu", 20) == set()
    assert of("Gelu", 20, approximate="tanh") == {"tanh"}
    where, new = np.zeros((1, 1), np.int64), np.zeros((1, 3, 4), np.float32)
    assert "reduction" not in of("ScatterND", 16, where, new, reduction="none")
    assert "reduction" in of("ScatterND", 16, where, new, reduction="add")
    assert of("HardSigmoid", 13, alpha=1 / 6, beta=0.5) == {"default beta"}
    assert of("HardSigmoid", 13, alpha=1 / 6) == of("HardSigmoid", 13, beta=0.5) == set()
    assert of("Split", 18, outputs=2, num_outputs=2) == {"num_outputs"}


def test_no_epsilon() -> None:
    ones = np.ones(3, np.float32)
    assert "no epsilon" in of("InstanceNormalization", 13, ones, ones)
    assert "no epsilon" not in of("InstanceNormalization", 13, ones, ones, epsilon=1e-3)


@pytest.mark.parametrize("shape", [(4,), (1, 1, 4), (2, 1, 1), (3, 4)])
def test_smaller_constant(shape: tuple[int, ...]) -> None:
    assert "smaller constant" in of("Mul", 13, np.ones(shape, np.float32))


@pytest.mark.parametrize("shape", [(), (1, 1), (2, 3, 4), (1, 3, 1), (3, 1)])
def test_no_smaller_constant(shape: tuple[int, ...]) -> None:
    assert "smaller constant" not in of("Mul", 13, np.ones(shape, np.float32))


@pytest.mark.parametrize(
    ("dims", "others", "of_add", "of_max"),
    [
        ((2, 3, 4, 5), (2, 3, 4, 5), False, False),
        ((2, 3, 4, 5), (1, 3, 4, 5), False, True),
        ((2, 3, 4, 5), (1, 3, 1, 1), False, True),
        ((3, 3, 3, 1), (1, 3, 1, 1), False, True),
        ((1, 3, 4, 5), (1, 3, 1, 1), False, False),
        ((2, 3, 4, 5), (1, 3, 1, 5), True, True),
        ((2, 3, 4, 5), (2, 3, 4, 1), True, True),
        ((2, 3, 4, 5), (2, 3, 1, 1), True, False),
        ((2, 3, 4, 5), (2, 1, 1, 1), True, True),
        ((2, 3, 4, 5), (1, 1, 1, 1), True, True),
        ((2, 3, 4, 5), (5,), True, True),
        ((2, 1, 4), (2, 3, 1), True, True),
        ((2, 3, 4), (2, 3, 1), True, False),
        ((2, 3), (2, 1), True, True),
    ],
)
def test_broadcast(
    dims: tuple[int, ...], others: tuple[int, ...], of_add: bool, of_max: bool
) -> None:
    inputs = {"x": np.zeros(dims, np.float32), "z": np.zeros(others, np.float32)}
    whole = [[None] * len(dims)]
    assert ("broadcast" in forms(one_node("Add", 13, inputs, output_shapes=whole))) == of_add
    of = forms(one_node("Max", 13, inputs, output_shapes=whole))
    assert ("broadcast before image" in of) == of_max
    turned = dict(reversed(inputs.items()))
    of = forms(one_node("Max", 13, turned, output_shapes=whole))
    assert ("broadcast before image" in of) == of_max
    # The smaller operand may not be the first.
    turned_add = "broadcast" in forms(one_node("Add", 13, turned, output_shapes=whole))
    assert turned_add == (dims != others)


def test_unknown_sizes_are_not_broadcast() -> None:
    shapes = {"x": ["n", 4, None, "w"], "z": ["n", 4, "h", None]}
    inputs = {name: np.zeros((2, 4, 3, 3), np.float32) for name in shapes}
    source = one_node("Add", 13, inputs, shapes=shapes, output_shapes=[[None] * 4])
    assert "broadcast" not in forms(source)


def test_an_initializer_that_is_an_input_too_counts_as_constant() -> None:
    inputs = {"x": X, "z": np.ones((1, 3, 1), np.float32)}
    source = one_node("Add", 8, inputs, initializers=("z",), output_shapes=[[None] * 3])
    source.graph.input.append(helper.make_tensor_value_info("z", 1, [1, 3, 1]))
    source.ir_version = 3
    assert forms(source) == set()


def test_smaller_first() -> None:
    wide, small = np.ones((2, 3, 4), np.float32), np.ones((2, 3, 1), np.float32)
    for inputs, found in (((small, wide), True), ((wide, small), False), ((wide, wide), False)):
        first, second = inputs
        source = one_node("Sub", 13, {"x": first, "z": second}, output_shapes=[[2, 3, 4]])
        assert ("smaller first" in forms(source)) is found
    assert "smaller first" not in of("Sub", 13, small)


def test_a_constant_is_not_broadcast_but_constant() -> None:
    assert of("Max", 13, np.ones((2, 1, 1), np.float32)) == {"constant operand"}
    assert of("Max", 13, last=np.ones((2, 1, 1), np.float32)) == {"broadcast before image"}


@pytest.mark.parametrize(("dtype", "found"), [(np.float16, True), (np.float32, False)])
def test_halves(dtype: type, found: bool) -> None:
    assert ("16-bit float" in forms(one_node("Softmax", 13, {"x": X.astype(dtype)}))) == found


def test_several_indices() -> None:
    assert "several indices" in of("Gather", 13, np.array([0, 1]))
    assert "several indices" in of("Gather", 13, last=np.array([0]))
    assert of("Gather", 13, np.array([1])) == {"list of indices"}
    assert of("Gather", 13, np.array(1)) == set()


@pytest.mark.parametrize(
    ("axis", "found"), [(0, True), (1, True), (2, False), (-1, False), (-2, True)]
)
def test_rows_of_strings(axis: int, found: bool) -> None:
    x, index = np.full((2, 3, 4), "a", object), np.array(0)
    source = one_node("Gather", 13, {"x": x, "i": index}, initializers=("i",), axis=axis)
    assert forms(source) == ({"rows of strings"} if found else set())


@pytest.mark.parametrize(
    ("then", "found"),
    [
        ("y = Add(p, one)", True),
        ("y = Mul(factors, p)", False),
        ("y = Sub(one, p)", True),
        ("y = Div(p, one)", True),
        ("y = Div(one, p)", False),
        ("y = Mul(p, x)", False),
        ("y = Neg(p)", True),
        ("y = BatchNormalization(p, factors, factors, factors, factors)", True),
        ("y = ReduceMean<axes=[1]>(p)", False),
        ("y = Sqrt(p)", False),
        ("r = Relu(x) y = Add(r, one)", False),
        (
            "y = If(c) <then_branch = t () => (z) { z = Add(p, one) },"
            " else_branch = e () => (w) { w = Exp(x) }>",
            True,
        ),
    ],
)
@pytest.mark.parametrize("overridable", [False, True])
def test_scaled_next(then: str, found: bool, overridable: bool) -> None:
    nodes = f"two = Constant<value_float=2.0>() p = Pow(x, two) {then}"
    source = model(f"""<ir_version: 8, opset_import: ["" : 13]>
    g (float[2,4,4] x, bool c) => (float[a,b,d] y)
    <float one = {{1.0}}, float[4] factors = {{1.0, 2.0, 3.0, 4.0}}> {{ {nodes} }}""")
    if overridable:
        source.graph.input.append(helper.make_tensor_value_info("one", TensorProto.FLOAT, []))
    facts = admit(source)
    scope = facts.scopes[0]
    workspace = Workspace(facts.extended(), Names(facts.scopes), Constants(), GraphProto())
    node = NodeFacts(scope.nodes[1], scope, 13, workspace, Lookups())
    assert FORMS["scaled next"](node) is found
    assert node.lookups.more


@pytest.mark.parametrize(
    ("shape", "axes", "found"),
    [
        ((2, 3, 4, 5), [1], set()),
        ((4, 3, 4, 5), [1], {"three kept"}),
        ((2, 3, 4, 5), [0], {"three kept", "last kept"}),
        ((3, 2, 4, 5), [0], set()),
        ((2, 3, 4, 5), [0, 1], {"last kept"}),
        ((2, 3, 4, 5), [0, 2], set()),
        ((2, 3, 4, 5), [0, 1, 2], set()),
        ((4, 3, 4, 5), [0, 1, 2], {"three reduced", "three reduced, not last"}),
        ((2, 3, 4, 5), [-1, 1, 2], {"three reduced"}),
        ((2, 3, 4, 5), [0, 1, 2, 3], {"all axes"}),
        ((4, 6, 8), [0], {"last kept"}),
        ((2, 3), [0, -1], {"all axes"}),
        ((2, 3), None, set()),
        ((2, 3, 4, 5, 6), [1, 3], set()),
        ((2, 3, 4, 5, 6), [4], {"three kept"}),
        ((2, 3, 4, 5, 6), [1, 2, 4], {"three reduced", "three reduced, not last"}),
        ((2, 3, 4, 5, 6), [2, 3, 4], {"three reduced"}),
    ],
)
def test_how_many_are_kept_and_reduced(
    shape: tuple[int, ...], axes: list[int] | None, found: set[str]
) -> None:
    more = {} if axes is None else {"axes": axes}
    assert forms(one_node("ReduceMin", 13, {"x": np.zeros(shape, np.float32)}, **more)) == found


@pytest.mark.parametrize(
    ("shape", "axes", "found"),
    [
        ((1535, 3), [1], False),
        ((1536, 3), [-1], True),
        ((3, 39), [0], False),
        ((3, 40), [0], True),
        ((1, 8, 1, 1), [1], False),
        ((48, 32, 1), [2], False),
        ((2, 3, 16, 16), [2, 3], False),
        ((2, 3, 16, 16), [2, 1], True),
        ((9, 16, 11), [1, 2], False),
        ((9, 16, 13), [0, 1], False),
        ((10, 16, 13), [0, 1], True),
        ((1600, 2), [0, 1], False),
        ((1600, 0, 2), [2], False),
        (("N", 3), [1], True),
        ((2, "N"), [1], False),
        (("N", 2), [0, 1], False),
        (None, [1], True),
        (None, None, False),
    ],
)
def test_in_threads(shape: tuple[Any, ...] | None, axes: list[int] | None, found: bool) -> None:
    x = np.zeros([2 if isinstance(dim, str) else dim for dim in shape or (2, 2)], np.float32)
    more = {} if axes is None else {"axes": axes}
    source = one_node("ReduceLogSum", 11, {"x": x}, shapes={"x": shape}, **more)
    assert forms(source) == ({"in threads"} if found else set())


def test_kept_dimensions() -> None:
    assert of("ReduceSum", 11) == of("ReduceSum", 11, keepdims=1) == {"kept dimensions"}
    assert of("ReduceSum", 11, keepdims=0) == set()


@pytest.mark.parametrize(
    ("axes", "keepdims", "found"),
    [
        ([1, 3], 0, set()),
        ([-1], 0, set()),
        ([-3, 3], 0, set()),
        ([1, -1], 0, {"negative axes"}),
        ([1, -1], 1, set()),
        (None, 0, set()),
    ],
)
def test_dropped_by_negative_axes(axes: list[int] | None, keepdims: int, found: set[str]) -> None:
    data = {"x": np.zeros((2, 3, 4, 5), np.float32)}
    more = {} if axes is None else {"axes": axes}
    assert forms(one_node("ReduceProd", 13, data, keepdims=keepdims, **more)) == found


def test_how_many_are_reduced_where_the_rank_is_not_known() -> None:
    def of_axes(*axes: int) -> set[str]:
        return forms(one_node("ReduceMin", 13, {"x": X}, axes=axes, shapes={"x": None}))

    assert of_axes(1, 2) == {"three kept", "last kept"}
    assert forms(one_node("ReduceMin", 13, {"x": X}, shapes={"x": None})) == set()
    assert of_axes(1, 2, 3) == ASKED["ReduceMin"] - {"all axes"}


@pytest.mark.parametrize(
    ("dims", "others", "found"),
    [
        ((2, 3, 4, 5), (2, 3, 4, 1), False),
        ((2, 3, 4, 5), (2, 1, 1, 1), False),
        ((2, 3, 4, 5), (1, 3, 4, 5), False),
        ((2, 3, 4, 5), (4, 5), False),
        ((2, 3, 4, 5), (1, 1, 1, 1), False),
        ((2, 3, 4, 5), (1, 3, 1, 5), True),
        ((2, 3, 4, 5), (3, 1, 5), True),
        ((1, 3, 1, 5), (2, 1, 4, 1), True),
    ],
)
def test_broadcast_within(dims: tuple[int, ...], others: tuple[int, ...], found: bool) -> None:
    inputs = {"x": np.zeros(dims, np.float32), "z": np.zeros(others, np.float32)}
    whole = [[None] * 4]
    assert ("inner broadcast" in forms(one_node("Add", 13, inputs, output_shapes=whole))) == found


def test_operands_of_rank_1_and_5() -> None:
    def added(*shapes: tuple[int, ...]) -> set[str]:
        inputs = {f"x{index}": np.zeros(shape, np.float32) for index, shape in enumerate(shapes)}
        whole = [[None] * max(map(len, shapes))]
        return forms(one_node("Add", 13, inputs, output_shapes=whole)) - {"broadcast"}

    assert added((2, 3), (3,)) == added((3,), (2, 3)) == {"operand of rank 1"}
    assert added((3,), (3,)) == added((2, 3), (1, 3)) == set()
    assert of("Add", 13, np.ones(4, np.float32)) == set()
    assert added((2, 3, 4, 5, 6), (2, 3, 4, 5, 1)) == {"broadcast of rank 5"}
    assert added((2, 3, 4, 5, 6), (1, 3, 4, 5, 6)) == set()
    assert added((2, 3, 4, 5), (2, 3, 4, 1)) == set()


def test_more_than_two() -> None:
    assert "more than two" in of("Max", 13, X, X)
    assert "more than two" not in of("Max", 13, X)


@pytest.mark.parametrize(
    ("repeats", "found"),
    [
        ([3, 1, 1], False),
        ([2, 2, 2], False),
        ([2, 2, 1], False),
        ([1, 2, 1], True),
        ([2, 1, 2], True),
    ],
)
def test_inner_repeats(repeats: list[int], found: bool) -> None:
    assert ("inner repeats" in of("Tile", 13, np.array(repeats))) is found


def test_inner_repeats_that_are_not_known_and_of_single_elements() -> None:
    assert "inner repeats" in of("Tile", 13, last=np.array([1, 1, 1]))
    one = {"x": np.zeros((1, 3), np.float32), "r": np.array([1, 2])}
    assert "inner repeats" not in forms(one_node("Tile", 13, one, initializers=("r",)))


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("n = ReduceL2<axes=[1]>(x) y = Div(x, n)", set()),
        ("n = ReduceL2<axes=[-2]>(x) y = Div(x, n)", set()),
        ("n = ReduceL2<axes=[2]>(x) y = Div(x, n)", {"norm"}),
        ("n = ReduceL2<axes=[1]>(x) y = Div(z, n)", {"norm of another"}),
        ("n = ReduceL2<axes=[1, 2]>(x) y = Div(x, n)", {"norm", "norm of another"}),
        ("n = ReduceL2<axes=[0]>(x) y = Div(z, n)", {"norm", "norm of another"}),
        ("n = ReduceL2<axes=[1]>(x) y = Div(n, x)", set()),
        ("n = ReduceL2<axes=[2]>(x) y = Mul(x, n)", set()),
        ("n = ReduceL2<axes=[2]>(x) m = Neg(n) y = Div(x, m)", set()),
        ("n = ReduceL2<axes=[2]>(x) c = Clip<min=0.1>(n) s = Shape(x) e = Expand(c, s)"
         " y = Div(x, e)", {"norm"}),
        ("q = Pow(x, one) n = ReduceSum<axes=[2]>(q) r = Sqrt(n) a = Add(one, r) y = Div(x, a)",
         {"norm"}),
        ("q = Mul(x, x) n = ReduceSum<axes=[2]>(q) m = Max(n, one) r = Sqrt(m)"
         " i = Reciprocal(r) y = Mul(i, x)", {"norm"}),
    ],
)  # fmt: skip
def test_norms(nodes: str, found: set[str]) -> None:
    source = model(f"""<ir_version: 7, opset_import: ["" : 10]>
    g (float[2,3,4] x, float[2,3,4] z) => (float[2,3,4] y) <float one = {{1.0}}> {{ {nodes} }}""")
    assert forms(source) == found


def test_several_axes() -> None:
    assert of("Unsqueeze", 13, AXES) == of("Unsqueeze", 11, axes=[1]) == set()
    assert of("Unsqueeze", 13, np.array([0, 1])) == of("Unsqueeze", 11, axes=[0, 1])
    assert of("Unsqueeze", 11, axes=[0, 1]) == {"several axes"}
    assert of("Unsqueeze", 13, last=AXES) == {"several axes"}


def test_vector() -> None:
    matrix = {"x": np.zeros((2, 3), np.float32)}
    assert forms(one_node("ArgMax", 13, matrix, axis=1, keepdims=0)) == {"vector"}
    assert forms(one_node("ArgMax", 13, matrix, axis=1)) == of("ArgMax", 13, keepdims=0) == set()
    hidden = one_node("ArgMax", 13, matrix, keepdims=0, shapes={"x": None})
    assert forms(hidden) == {"vector"}


def test_gemm() -> None:
    def gemm(*held: str, **more: float) -> set[str]:
        shapes = {"a": (2, 3), "b": (3, 4), "c": (4,)}
        inputs = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        return forms(one_node("Gemm", 13, inputs, initializers=held, **more))

    assert gemm("b", "c") == gemm("b", "c", alpha=1.0, beta=1.0) == set()
    assert gemm("b", "c", alpha=2.0) == gemm("b", "c", beta=2.0) == {"alpha or beta"}
    assert gemm("b") == {"computed C"}
    dequantized = model("""<ir_version: 7, opset_import: ["" : 13]>
    g (float[2,3] a, float[3,4] b) => (float[2,4] y) <int8[1] q = {1}, float s = {2.0}>
    { c = DequantizeLinear(q, s) y = Gemm(a, b, c) }""")
    assert forms(dequantized) == set()
    two = {name: np.zeros((3, 3), np.float32) for name in "ab"}
    assert forms(one_node("Gemm", 13, two, beta=2.0)) == set()


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("y = Cast<to=7>(x)", True),
        ("y = Cast<to=9>(x)", True),
        ("y = Cast<to=10>(x)", False),
        ("f = Floor(x) y = Cast<to=6>(f)", False),
        ("f = Floor(x) g = Floor(f) s = Sub(f, g) y = Cast<to=6>(s)", False),
        ("s = Sub(x, x) y = Cast<to=6>(s)", True),
        ("i = Cast<to=6>(x) y = Cast<to=7>(i)", False),
        ("c = Constant<value_float=1.5>() y = Cast<to=7>(c)", False),
    ],
)
def test_float_to_integer(nodes: str, found: bool) -> None:
    source = onnx.parser.parse_model(f"""<ir_version: 7, opset_import: ["" : 13]>
    g (float[2,3] x) => (float y) {{ {nodes} }}""")
    source.graph.output[0].ClearField("type")
    source = onnx.shape_inference.infer_shapes(source)
    assert (forms(source) - {"number to bool"} == {"float to integer"}) is found


@pytest.mark.parametrize(
    ("elem_type", "found"),
    [("double", True), ("bfloat16", True), ("uint4", False), ("int4", False), ("string", False),
     ("bool", False), ("float8e4m3fn", False), ("uint64", False)],
)  # fmt: skip
def test_what_casts_of_floats_are(elem_type: str, found: bool) -> None:
    source = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]>
    g ({elem_type}[2,3] x) => (int32[2,3] y) {{ y = Cast<to=6>(x) }}""")
    assert (forms(source) == {"float to integer"}) is found


def test_kernel_shape() -> None:
    w = np.zeros((4, 3, 2), np.float32)
    volume, kernels = np.zeros((1, 2, 3, 4, 4), np.float32), np.zeros((4, 2, 3, 3, 3), np.float32)
    assert forms(one_node("Conv", 13, {"x": X, "w": w}, kernel_shape=[2])) == set()
    assert forms(one_node("Conv", 13, {"x": X, "w": w})) == {"no kernel_shape"}
    given = {"x": volume, "w": kernels}
    assert forms(one_node("Conv", 13, given)) == {"no kernel_shape", "no kernel_shape of three"}
    assert forms(one_node("Conv", 13, given, kernel_shape=[3, 3, 3])) == set()


@pytest.mark.parametrize(
    ("attribute", "found"),
    [
        ("value = float {1.5}", set()),
        ("value_float = 1.5", {"no tensor"}),
        ("value_ints = [1, 2]", {"no tensor", "list"}),
        ("value_floats = [1.5]", {"no tensor", "list", "list of floats"}),
    ],
)
def test_constants(attribute: str, found: set[str]) -> None:
    source = onnx.parser.parse_model(f"""<ir_version: 7, opset_import: ["" : 13]>
        g () => (float y) {{ y = Constant<{attribute}>() }}""")
    source.graph.output[0].ClearField("type")
    assert forms(onnx.shape_inference.infer_shapes(source)) == found


def test_start_or_end() -> None:
    assert of("Shape", 15) == of("Shape", 15, start=0) == set()
    assert of("Shape", 15, start=-1) == of("Shape", 15, end=3) == {"start or end"}


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("a = Add(e, one) p = Mul(x, a) y = Mul(p, half)", set()),
        ("a = Add(e, one) p = Mul(x, a) y = Mul(half, p)", {"like Gelu"}),
        ("a = Add(one, e) p = Mul(x, a) y = Mul(p, half)", {"like Gelu"}),
        ("a = Add(e, one) p = Mul(half, a) y = Mul(x, p)", {"like Gelu"}),
        ("a = Add(e, one) p = Mul(half, a) y = Mul(p, x)", {"like Gelu", "like Gelu in order"}),
        ("a = Add(e, one) n = Neg(x) p = Mul(n, a) y = Mul(p, half)",
         {"like Gelu", "like Gelu in order"}),
        ("a = Add(e, x) p = Mul(x, a) y = Mul(p, half)", {"like Gelu", "like Gelu in order"}),
        ("a = Add(e, one) h = Constant<value_float=0.5>() p = Mul(x, a) y = Mul(p, h)",
         {"like Gelu", "like Gelu in order"}),
        ("a = Add(e, one) h = Constant<value=float {0.5}>() p = Mul(x, a) y = Mul(p, h)", set()),
        ("a = Add(e, one) p = Mul(half, x) y = Mul(p, a)", set()),
        ("a = Add(d, one) p = Mul(half, a) y = Mul(x, p)", set()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("root", [2**0.5, 3.0])
def test_like_gelu(nodes: str, found: set[str], root: float) -> None:
    source = model(f"""<ir_version: 7, opset_import: ["" : 13]>
        g (float[2,3] x) => (float[2,3] y)
        <float r = {{{root}}}, float one = {{1}}, float half = {{0.5}}>
        {{ d = Div(x, r) e = Erf(d) {nodes} }}""")
    facts = admit(source)
    (scope,) = facts.scopes
    workspace = Workspace(facts.extended(), Names([scope]), Constants(), GraphProto())
    (add,) = [node for node in scope.nodes if node.op_type == "Add"]
    node = NodeFacts(add, scope, 13, workspace, Lookups())
    held = {name for name in ("like Gelu", "like Gelu in order") if FORMS[name](node)}
    assert held == (found if root < 2 else set())


@pytest.mark.parametrize(
    ("scales", "found"),
    [
        ([1, 1, 2, 2], set()),
        ([1, 2, 2, 1], {"outer dimensions"}),
        ([2, 1, 1, 1], {"outer dimensions"}),
        ([1, 1, 1, 1], set()),
        ([1, 2], {"outer dimensions", "not of rank 4"}),
        ([1, 1, 2], {"not of rank 4"}),
    ],
)
def test_what_a_resize_changes(scales: list[float], found: set[str]) -> None:
    x = np.zeros((2, 3, 4, 5)[: len(scales)], np.float32)
    size = np.array([int(dim * scale) for dim, scale in zip(x.shape, scales, strict=True)])
    held = {"s": np.float32(scales)}
    assert forms(one_node("Upsample", 7, {"x": x}, scales=[float(s) for s in scales])) == found
    assert forms(one_node("Upsample", 9, {"x": x, **held}, initializers=("s",))) == found
    resized = {"outer dimensions", "not of rank 4"}
    given = one_node("Resize", 10, {"x": x, **held}, initializers=("s",))
    assert forms_of_last(given, resized) == found
    inputs = {"x": x, "roi": None, "scales": None, "s": size}
    given = one_node("Resize", 13, inputs, initializers=("s",))
    assert forms_of_last(given, resized) == found
    given = one_node("Resize", 13, inputs)
    assert forms_of_last(given, resized) == set()


def test_allowzero() -> None:
    given = {"x": X, "s": np.array([2, -1])}
    assert forms(one_node("Reshape", 14, given, initializers=("s",), allowzero=1)) == {
        "allowzero and -1"
    }
    assert forms(one_node("Reshape", 14, given, initializers=("s",))) == set()
    assert forms(one_node("Reshape", 14, given, allowzero=1)) == set()
    whole = {"x": X, "s": np.array([2, 12])}
    assert forms(one_node("Reshape", 14, whole, initializers=("s",), allowzero=1)) == set()


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("b = Cast<to=9>(i) y = Cast<to=6>(b)", True),
        ("b = Cast<to=9>(x) y = Not(b)", True),
        ("b = Cast<to=9>(i) y = Where(b, x, x)", False),
        ("b = Cast<to=9>(i) n = Not(b) y = Where(b, x, x)", True),
        ("g = Greater(x, x) c = Cast<to=7>(g) b = Cast<to=9>(c) y = Not(b)", False),
        ("b = Cast<to=6>(x) y = Neg(b)", False),
        ("c = Constant<value_int=2>() b = Cast<to=9>(c) y = Not(b)", False),
    ],
)
def test_number_to_bool(nodes: str, found: bool) -> None:
    source = onnx.parser.parse_model(f"""<ir_version: 7, opset_import: ["" : 13]>
        g (float[2,3] x, int32[2,3] i) => (float y) {{ {nodes} }}""")
    source.graph.output[0].ClearField("type")
    facts = admit(onnx.shape_inference.infer_shapes(source))
    (scope,) = facts.scopes
    workspace = Workspace(facts.extended(), Names([scope]), Constants(), GraphProto())
    (cast,) = [item for item in scope.nodes if item.output[0] == "b"]
    node = NodeFacts(cast, scope, 13, workspace, Lookups())
    assert FORMS["number to bool"](node) is found


@pytest.mark.parametrize(
    ("dtype", "found"),
    [
        (np.int8, {"narrow integer", "int8"}),
        (np.uint32, {"narrow integer"}),
        (np.int32, set()),
        (np.uint64, set()),
        (np.float32, set()),
    ],
)
def test_integers_without_a_kernel(dtype: type, found: set[str]) -> None:
    x = np.zeros((2, 3), dtype)
    assert forms(one_node("Less", 13, {"x": x, "z": x})) == found


def test_integers_of_4_bits() -> None:
    for dtype, found in (("uint4", True), ("int4", True), ("uint8", False)):
        source = model(f"""<ir_version: 10, opset_import: ["" : 21]>
            g ({dtype}[2,3] x, float s) => (float[2,3] y) {{ y = DequantizeLinear(x, s) }}""")
        assert (forms_of_last(source, {"4 bits"}) == {"4 bits"}) is found


@pytest.mark.parametrize(
    ("nodes", "form", "found"),
    [
        ("y = Clip(x, , c)", "computed bounds", False),
        ("m = Neg(c) y = Clip(x, m)", "computed bounds", False),
        ("m = ReduceMin<keepdims=0>(x) y = Clip(x, m)", "computed bounds", True),
        ("y = Clip(x, c, most)", "infinite bound", True),
        ("m = Neg(most) y = Clip(x, m)", "infinite bound", True),
        ("y = Clip(x, c)", "infinite bound", False),
        ("m = ReduceMax<keepdims=0>(x) y = Clip(x, c, m)", "infinite bound", False),
        ("v = Conv(x, x) r = Relu(v) k = Sub(r, c) y = LeakyRelu(k)", "like a second Relu", True),
        ("v = Conv(x, x) r = Relu(v) k = Mul(c, r) y = LeakyRelu(k)", "like a second Relu", True),
        ("v = Conv(x, x) r = Relu(v) y = LeakyRelu(r)", "like a second Relu", False),
        ("r = Relu(x) k = Sub(r, c) y = LeakyRelu(k)", "like a second Relu", False),
        ("v = Conv(x, x) k = Sub(v, c) y = LeakyRelu(k)", "like a second Relu", False),
        ("d = DequantizeLinear(q, c) y = Softmax(d)", "quantized", False),
        ("v = Reshape(x, n) y = Squeeze(v)", "no axes", True),
        ("a = Constant<value_ints=[0]>() v = Reshape(x, n) y = Squeeze(v, a)", "no axes", False),
        ('y = Resize<mode="cubic">(x, , s)', "cubic", True),
        ("y = Resize(x, , s)", "cubic", False),
        (
            "d = DequantizeLinear(q, c) w = DequantizeLinear(q, c) y = Conv(d, w)",
            "dequantized operands",
            True,
        ),
        ("w = DequantizeLinear(q, c) y = Conv(x, w)", "dequantized operands", False),
    ],
)
def test_forms_of_single_operators(nodes: str, form: str, found: bool) -> None:
    dims = "a" if form == "no axes" else "a,b,c,d"
    source = model(f"""<ir_version: 8, opset_import: ["" : 13]>
        g (float[1,1,3,3] x, uint8[1,1,3,3] q) => (float[{dims}] y)
        <float c = {{2}}, float most = {{inf}}, float[4] s = {{1, 1, 2, 2}}, int64[2] n = {{1, 9}}>
        {{ {nodes} }}""")
    assert (forms_of_last(source, {form}) == {form}) is found


@pytest.mark.parametrize(
    ("data", "axis", "found"),
    [
        *[("uint8[2]", 1, True), ("uint8[2]", 0, False), ("uint8[2]", -2, True)],
        *[("uint8", 1, True), ("uint8", 0, False), ("uint8[2,3]", 1, False)],
    ],
)
def test_an_axis_that_the_data_does_not_have(data: str, axis: int, found: bool) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 13]>
        g ({data} x, float s) => ({data.replace("uint8", "float")} y)
        {{ y = DequantizeLinear<axis = {axis}>(x, s) }}""")
    assert (forms_of_last(source, {"axis beyond rank"}) == {"axis beyond rank"}) is found


@pytest.mark.parametrize(
    ("shape", "axis", "found"), [((2,), -1, True), ((2,), 0, False), ((2, 3), -1, False)]
)
def test_lists_that_are_joined_from_the_end(shape: tuple[int, ...], axis: int, found: bool) -> None:
    source = one_node("Concat", 13, {"x": np.zeros(shape, np.int64)}, axis=axis)
    assert (forms(source) == {"lists from the end"}) is found


@pytest.mark.parametrize(
    ("dims", "kernel", "attributes", "found"),
    [
        ((2, 4, 1, 5), (4, 1, 3, 3), "group = 4", True),
        ((2, 4, 5, 1), (8, 1, 3, 3), "group = 4", True),
        ((2, 4, 1, 1), (4, 1, 3, 3), "group = 4, dilations = [1, 1]", True),
        ((2, 4, 1, 5), (4, 1, 3, 3), "group = 4, dilations = [1, 2]", False),
        ((2, 4, 2, 5), (4, 1, 3, 3), "group = 4", False),
        ((2, 4, 1, 5), (4, 1, 1, 3), "group = 4", False),
        ((2, 4, 1, 5), (4, 2, 3, 3), "group = 2", False),
        ((2, 1, 1, 5), (4, 1, 3, 3), "group = 1", False),
    ],
)
def test_convolutions_of_a_row(
    dims: tuple[int, ...], kernel: tuple[int, ...], attributes: str, found: bool
) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 13]>
        g (float{list(dims)} x, float{list(kernel)} w) => (float[a,b,c,d] y)
        {{ y = Conv<{attributes}, pads = [2, 2, 2, 2]>(x, w) }}""")
    assert (forms_of_last(source, {"flat depthwise"}) == {"flat depthwise"}) is found


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("a = Softmax(d) y = QuantizeLinear(a, s)", True),
        ("a = Softmax(d) y = QuantizeLinear(a, s) b = Neg(a)", True),
        ("a = Softmax(d) b = Neg(a) y = QuantizeLinear(b, s)", False),
        ("b = Neg(d) a = Softmax(b) y = QuantizeLinear(a, s)", False),
    ],
)
def test_a_softmax_that_is_quantized(nodes: str, found: bool) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 13]>
        g (uint8[2,3] x, float s) => (uint8[2,3] y) {{ d = DequantizeLinear(x, s) {nodes} }}""")
    index = [node.op_type for node in source.graph.node].index("Softmax")
    assert (forms_of_last(source, {"quantized"}, index) == {"quantized"}) is found


@pytest.mark.parametrize(
    ("outputs", "read", "found"),
    [
        *[("v", "v", False), ("v, h", "v", False), ("v, h", "h", True)],
        *[("v, h, c", "h", True), ("v, h, c", "c", True), (", h", "h", True)],
    ],
)
def test_final_states(outputs: str, read: str, found: bool) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 14]>
        g (float[5,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float y)
        {{ {outputs} = LSTM<hidden_size=2>(x, w, r) y = ReduceMax<keepdims=0>({read}) }}""")
    assert (forms_of_last(source, {"final states"}, 0) == {"final states"}) is found


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_padding_by_the_border(padding: str) -> None:
    grid = np.zeros((1, 2, 2, 2), np.float32)
    source = one_node(
        "GridSample", 16, {"x": np.ones((1, 1, 3, 3), np.float32), "g": grid}, padding_mode=padding
    )
    assert (forms_of_last(source, {"border"}) == {"border"}) is (padding == "border")
