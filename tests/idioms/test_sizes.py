"""Sizes and numbers that nodes compute: how far, and how often, they are looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import pytest
from onnx import AttributeProto, NodeProto, helper

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.sizes import Sizes, number
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.calls import UNKNOWN
from onnxreduce_cli.model.graph.values import ValueType, tensor_type


class _Node:
    """A node in a function; it is not known what calls of that set."""

    def __init__(self, node: NodeProto) -> None:
        self._node = node

    def known_value(self, name: str, default: Any = None) -> Any:
        found = attributes.find(self._node, name)
        if found is None:
            return default
        return UNKNOWN if found.ref_attr_name else attributes.value(found)


class _Facts:
    """Nodes by what they make, constants by name; it counts how often a constant is asked for."""

    def __init__(
        self,
        nodes: list[NodeProto],
        ranks: Mapping[str, int] | None = None,
        dims: Mapping[str, Sequence[Any]] | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        self._nodes = {node.output[0]: node for node in nodes}
        self._dims = {name: (None,) * rank for name, rank in (ranks or {}).items()}
        self._dims.update({name: tuple(found) for name, found in (dims or {}).items()})
        self._constants = constants or {}
        self.asked = 0

    def about(self, node: NodeProto) -> _Node:
        return _Node(node)

    def producer(self, name: str) -> NodeProto | None:
        return self._nodes.get(name)

    def constant(self, name: str) -> Any:
        self.asked += 1
        if name in self._constants:
            return np.array(self._constants[name])
        return np.float32(int(name)) if name.isdigit() else None

    def elements(self, name: str) -> Any:
        return self._constants.get(f"elements of {name}")

    def type(self, name: str) -> ValueType | None:
        return tensor_type(1, self._dims[name]) if name in self._dims else None

    def rank(self, name: str) -> int | None:
        return len(self._dims[name]) if name in self._dims else None


def _number(facts: _Facts, name: str) -> float | None:
    return number(cast(NodeFacts, facts), name)


def test_a_scale_that_nodes_compute() -> None:
    facts = _Facts(
        [helper.make_node("Sqrt", ["64"], ["root"]), helper.make_node("Div", ["1", "root"], ["y"])]
    )
    assert _number(facts, "y") == 0.125


@pytest.mark.parametrize("op_type", ["Div", "Add", "Concat"])
def test_a_chain_that_doubles_is_not_followed_each_way(op_type: str) -> None:
    count = 100 if op_type == "Concat" else 2
    nodes = [
        helper.make_node(op_type, [f"v{level - 1}"] * count, [f"v{level}"]) for level in range(40)
    ]
    facts = _Facts(nodes)
    assert _number(facts, "v39") is None
    assert facts.asked < 100


def test_a_tensor_of_rank_0_has_no_dimension_to_follow() -> None:
    facts = _Facts([helper.make_node("Transpose", ["x"], ["y"])], {"x": 0, "y": 0})
    assert Sizes(cast(NodeFacts, facts)).of("y", 0) == ("y", 0)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_product_has_the_rows_of_its_first_factor_alone(axis: int) -> None:
    facts = _Facts([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": 3, "w": 2, "y": 3})
    sizes = Sizes(cast(NodeFacts, facts))
    assert (sizes.of("y", axis) == sizes.of("x", axis)) is (axis < 2)


def _sizes(facts: _Facts, name: str, rank: int, **options: Any) -> list[Any]:
    """The dimensions of a value; None for those that are its own, whatever they are."""
    sizes = Sizes(cast(NodeFacts, facts))
    found = [sizes.of(name, axis, **options) for axis in range(rank)]
    assert [sizes.of(name, axis - rank, **options) for axis in range(rank)] == found
    return [None if size == (name, axis) else size for axis, size in enumerate(found)]


@pytest.mark.parametrize(
    ("op_type", "attributes", "given", "expected"),
    [
        ("Transpose", {"perm": [2, 0, 1]}, ["abc"], "cab"),
        ("Transpose", {}, ["abc"], "cba"),
        ("Transpose", {"perm": [0, 3, 1, 2]}, ["abcd"], "adbc"),
        ("Cast", {}, ["abc"], "abc"),
        ("Softmax", {}, ["abc"], "abc"),
        ("Softmax", {}, ["ab"], "..."),
        ("Softmax", {}, ["abcd"], "..."),
        ("ReduceMean", {}, ["abc"], "abc"),
        ("ReduceMean", {}, ["abc", "1"], "abc"),
        ("ReduceMean", {}, ["abc", "unknown"], "..."),
        ("Add", {}, ["abc", "bc"], "abc"),
        ("Add", {}, ["bc", "abc"], "abc"),
        ("Add", {}, ["abcd", "bcd"], "abcd"),
        ("Add", {}, ["cd", "abcd"], "abcd"),
        ("Add", {}, ["1111", "cd"], "11cd"),
        ("Sub", {}, ["1bc", "a1c"], "abc"),
        ("Mul", {}, ["abc", "adc"], "a.c"),
        ("Div", {}, ["11", "1"], "11"),
        ("Pow", {}, ["ab", "unknown"], ".."),
        ("Concat", {"axis": 1}, ["abc", "adc"], "a.c"),
        ("Concat", {"axis": -1}, ["abc", "abd"], "ab."),
        ("Concat", {"axis": 0}, ["abc", "abc"], ".bc"),
        ("Concat", {}, ["abc", "abc"], "..."),
        ("Slice", {}, ["abc", "0", "9", "of 1"], "a.c"),
        ("Slice", {}, ["abc", "0", "9", "of -1"], "ab."),
        ("Slice", {}, ["abc", "0", "9", "of 0 and -1"], ".b."),
        ("Slice", {}, ["abc", "0", "9", "unknown"], "..."),
        ("Slice", {}, ["abc", "0", "9"], "..."),
        ("Unsqueeze", {"axes": [0]}, ["abc"], ".abc"),
        ("Unsqueeze", {"axes": [1]}, ["abc"], "a.bc"),
        ("Unsqueeze", {}, ["abc", "of -1"], "abc."),
        ("Unsqueeze", {}, ["abc", "of 0 and -1"], ".abc."),
        ("Unsqueeze", {}, ["abc"], "...."),
        ("Unsqueeze", {}, ["abc", "unknown"], "...."),
        ("MatMul", {}, ["abc", "ce"], "ab."),
        ("MatMul", {}, ["abc", "ace"], "..."),
        ("Reshape", {}, ["abc", "unknown"], "..."),
        ("Reshape", {}, ["abc"], "..."),
        ("Gemm", {}, ["ab", "bc"], ".."),
    ],
)
def test_dimensions_that_a_node_leaves(
    op_type: str, attributes: dict[str, Any], given: list[str], expected: str
) -> None:
    """Letters are names of dimensions; a dot is a dimension that may be any."""
    lists = {"of 0 and -1": [0, -1], "of -1": [-1], "of 0": [0], "of 1": [1]}
    dims = {
        name: [1 if dim == "1" else dim for dim in name]
        for name in given
        if name not in lists and {*name} <= {*"abcde1"}
    }
    dims["y"] = [None] * len(expected)
    facts = _Facts([helper.make_node(op_type, given, ["y"], **attributes)], None, dims, lists)
    found = _sizes(facts, "y", len(expected))
    added = [None if dim == "." else 1 if dim == "1" else dim for dim in expected]
    if op_type == "Unsqueeze" and len(given) < 3 and "unknown" not in given:
        # Of those that it adds it is known that they are 1: they are not asked for.
        found = [size if want else None for size, want in zip(found, added, strict=True)]
    assert found == added


@pytest.mark.parametrize(
    ("op_type", "name", "rank"),
    [("Transpose", "perm", 2), ("Concat", "axis", 2), ("Unsqueeze", "axes", 3)],
)
def test_attributes_that_callers_of_a_function_set_leave_any_dimension(
    op_type: str, name: str, rank: int
) -> None:
    node = helper.make_node(op_type, ["x"], ["y"])
    node.attribute.add(name=name, ref_attr_name="p", type=AttributeProto.INTS)
    facts = _Facts([node], None, {"x": "ab", "y": [None] * rank})
    assert _sizes(facts, "y", rank) == [None] * rank


def test_a_dimension_has_its_size_or_its_name_or_is_its_own() -> None:
    node = helper.make_node("Gemm", ["a", "b"], ["y"])
    assert _sizes(_Facts([node], None, {"y": [7, "n", None]}), "y", 3) == [7, "n", None]
    # What was followed says more than a name.
    node = helper.make_node("Identity", ["x"], ["y"])
    facts = _Facts([node], None, {"x": [7, "m", None, None], "y": [None, "n", None, "k"]})
    assert _sizes(facts, "y", 4) == [7, "m", ("x", 2), ("x", 3)]
    assert Sizes(cast(NodeFacts, facts)).of("z", 1) == ("z", 1)


@pytest.mark.parametrize(("count", "followed"), [(1, True), (150, True), (151, False)])
def test_so_many_nodes_are_followed(count: int, followed: bool) -> None:
    for op_type in ("Identity", "Add", "Concat", "Transpose"):
        kept = {"axis": 1} if op_type == "Concat" else {}
        kept = {"perm": [0, 1]} if op_type == "Transpose" else kept
        nodes = [
            helper.make_node(op_type, [f"v{level}"], [f"v{level + 1}"], **kept)
            for level in range(count)
        ]
        dims = {f"v{level}": [None, None] for level in range(1, count + 1)}
        facts = _Facts(nodes, None, {"v0": [7, 8], **dims})
        expected = 7 if followed else ("v1", 0)
        assert Sizes(cast(NodeFacts, facts)).of(f"v{count}", 0) == expected
        assert Sizes(cast(NodeFacts, facts)).of(f"v{count}", 0, 0) == (f"v{count}", 0)


SHAPE = (
    helper.make_node("Shape", ["x"], ["shape"]),
    helper.make_node("Gather", ["shape", "which"], ["size"]),
    helper.make_node("Unsqueeze", ["size", "zero"], ["listed"]),
    helper.make_node("Cast", ["listed"], ["cast"]),
)


@pytest.mark.parametrize(
    ("constants", "expected"),
    [
        ({"which": 1}, ["b", None]),
        ({"which": [2]}, ["c", None]),
        ({"which": [[-3]]}, ["a", None]),
        ({"which": [0, 1]}, [None, None]),
        ({}, [None, None]),
        ({"which": 1, "elements of sizes": [None, 5]}, ["b", 5]),
        ({"which": 1, "elements of sizes": [4, 1]}, [4, 1]),
        ({"which": 1, "elements of sizes": [0, -1]}, ["b", None]),
        ({"which": 1, "elements of sizes": [4, 5, 6]}, ["b", None]),
    ],
)
def test_dimensions_that_a_list_of_sizes_gives(
    constants: dict[str, Any], expected: list[Any]
) -> None:
    joined = helper.make_node("Concat", ["cast", "other"], ["sizes"], axis=0)
    made = helper.make_node("Reshape", ["x", "sizes"], ["y"])
    dims = {"x": "abc", "y": [None, None]}
    facts = _Facts([*SHAPE, joined, made], None, dims, constants)
    assert _sizes(facts, "y", 2) == expected
    # A list of more sizes, or one that nodes make otherwise, tells nothing.
    if "elements of sizes" not in constants:
        for op_type, given in (("Concat", ["cast", "other", "more"]), ("Add", ["cast", "other"])):
            joined = helper.make_node(op_type, given, ["sizes"])
            facts = _Facts([*SHAPE, joined, made], None, dims, constants)
            assert _sizes(facts, "y", 2) == [None, None]


def test_only_the_whole_shape_counts_as_it() -> None:
    part = helper.make_node("Shape", ["x"], ["shape"], start=1)
    joined = helper.make_node("Concat", ["cast", "other"], ["sizes"], axis=0)
    made = helper.make_node("Reshape", ["x", "sizes"], ["y"])
    constants = {"which": 1}
    dims = {"x": "abc", "y": [None, None]}
    for other in (part, *(helper.make_node(name, ["x"], ["shape"]) for name in ("Size", "Abs"))):
        facts = _Facts([other, *SHAPE[1:], joined, made], None, dims, constants)
        assert _sizes(facts, "y", 2) == [None, None]
        facts = _Facts([other, *SHAPE[1:]], None, {"x": [7, 8, 9]}, constants)
        assert _number(facts, "cast") is None
    other = helper.make_node("GatherND", ["shape", "which"], ["size"])
    facts = _Facts([SHAPE[0], other, *SHAPE[2:], joined, made], None, dims, constants)
    assert _sizes(facts, "y", 2) == [None, None]


@pytest.mark.parametrize(
    ("start", "step", "expected"),
    [(0, 1, "b"), ([0], [1], "b"), (1, 1, None), (0, 2, None), (0, -1, None), (-1, 1, None)],
)
def test_the_length_of_a_range(start: Any, step: Any, expected: str | None) -> None:
    made = helper.make_node("Range", ["start", "cast", "step"], ["y"])
    constants = {"which": 1, "start": start, "step": step}
    for missing in (None, "start", "step"):
        known = {name: value for name, value in constants.items() if name != missing}
        facts = _Facts([*SHAPE, made], None, {"x": "abc", "y": [None]}, known)
        assert _sizes(facts, "y", 1) == [None if missing else expected]


@pytest.mark.parametrize(
    ("constants", "expected"),
    [
        ({"which": 1}, 8.0),
        ({"which": [-1]}, 9.0),
        ({"which": [0]}, None),
        ({"which": [1, 2]}, None),
        ({}, None),
    ],
)
def test_a_number_that_is_a_size(constants: dict[str, Any], expected: float | None) -> None:
    facts = _Facts([*SHAPE], None, {"x": ["n", 8, 9]}, constants)
    assert _number(facts, "cast") == expected


@pytest.mark.parametrize(
    ("starts", "ends", "expected"),
    [
        ([-1], [1000], 9.0),
        ([-1], [2**63 - 1], 9.0),
        ([-1], [999], None),
        ([-2], [1000], None),
        ([1], [1000], None),
        ([-1, -1], [1000, 1000], None),
        (None, [1000], None),
        ([-1], None, None),
    ],
)
def test_a_number_that_is_the_last_size(starts: Any, ends: Any, expected: float | None) -> None:
    cut = helper.make_node("Slice", ["shape", "starts", "ends"], ["y"])
    given = {"starts": starts, "ends": ends}
    constants = {name: value for name, value in given.items() if value is not None}
    dims = {"x": [7, 8, 9]}
    assert _number(_Facts([SHAPE[0], cut], None, dims, constants), "y") == expected
    assert _number(_Facts([SHAPE[0], cut], None, {"x": [7, "n"]}, constants), "y") is None
    part = helper.make_node("Shape", ["x"], ["shape"], end=2)
    for made in (part, *(helper.make_node(name, ["x"], ["shape"]) for name in ("Size", "Abs"))):
        assert _number(_Facts([made, cut], None, dims, constants), "y") is None
    assert _number(_Facts([cut], None, dims, constants), "y") is None


@pytest.mark.parametrize(
    ("op_type", "given", "expected"),
    [
        ("Sqrt", ["64"], 8.0),
        ("Sqrt", ["0"], 0.0),
        ("Sqrt", ["minus"], None),
        ("Sqrt", ["x"], None),
        ("Div", ["6", "4"], 1.5),
        ("Div", ["0", "4"], 0.0),
        ("Div", ["6", "0"], None),
        ("Div", ["x", "4"], None),
        ("Div", ["6", "x"], None),
        ("Cast", ["6"], 6.0),
        ("Squeeze", ["one"], 5.0),
        ("Identity", ["two"], None),
        ("Mul", ["6", "6"], None),
    ],
)
def test_a_number_that_a_node_computes(
    op_type: str, given: list[str], expected: float | None
) -> None:
    constants = {"minus": -4.0, "one": [[5.0]], "two": [1.0, 2.0]}
    facts = _Facts([helper.make_node(op_type, given, ["y"])], None, None, constants)
    assert _number(facts, "y") == expected


@pytest.mark.parametrize(
    ("op_type", "count", "followed"),
    [
        ("Cast", 16, True),
        ("Cast", 17, False),
        ("Sqrt", 16, True),
        ("Sqrt", 17, False),
        ("Div", 5, True),
        ("Div", 6, False),
    ],
)
def test_so_many_nodes_make_a_number(op_type: str, count: int, followed: bool) -> None:
    more = ["1"] if op_type == "Div" else []
    nodes = [
        helper.make_node(op_type, ["1" if not level else f"v{level}", *more], [f"v{level + 1}"])
        for level in range(count)
    ]
    assert _number(_Facts(nodes), f"v{count}") == (1.0 if followed else None)


@pytest.mark.parametrize(("count", "followed"), [(15, True), (16, False)])
@pytest.mark.parametrize("op_type", ["Gather", "Slice"])
def test_so_many_nodes_are_followed_to_a_size(op_type: str, count: int, followed: bool) -> None:
    inputs = {"Gather": ["shape", "which"], "Slice": ["shape", "last", "end"]}[op_type]
    nodes = [helper.make_node("Identity", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    nodes += [
        helper.make_node("Shape", [f"v{count}"], ["shape"]),
        helper.make_node(op_type, inputs, ["y"]),
    ]
    dims: dict[str, Any] = {f"v{i}": [None, None] for i in range(1, count + 1)}
    constants = {"which": 1, "last": [-1], "end": [1000]}
    facts = _Facts(nodes, None, {**dims, "v0": [7, 8]}, constants)
    assert _number(facts, "y") == (8.0 if followed else None)
