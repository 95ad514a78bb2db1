"""Sequences and optional values written out as tensors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

import onnxreduce_cli
from onnxreduce_cli.containers.operators import OPERATORS
from tests.containers.programs import FEEDS, Program
from tests.contract import unread_nodes
from tests.share import share
from tests.support import blockers, converts, model, op_types

X = np.arange(24, dtype=np.float32).reshape(4, 6)
HEAD = '<ir_version: 8, opset_import: ["": 13]> '


def all_nodes(nodes: object) -> Iterator[NodeProto]:
    for node in nodes:  # type: ignore[attr-defined]
        yield node
        for attribute in node.attribute:
            yield from all_nodes(attribute.g.node)


def holds_none(found: ModelProto) -> bool:
    return not any(node.op_type in OPERATORS for node in all_nodes(found.graph.node))


def unread(graph: GraphProto) -> list[str]:
    """The nodes of a graph, and of those within it, that nobody reads."""
    found = [node.name for node in unread_nodes(graph.node, [value.name for value in graph.output])]
    inner = [attribute.g for node in graph.node for attribute in node.attribute]
    return sum(map(unread, inner), found)


@pytest.mark.parametrize("seed", [1, 3])
def test_programs(seed: int) -> None:
    source = Program(seed, 13).model()
    for target in (12, 9):
        result = converts(source, target, *FEEDS, exact=True)
        assert holds_none(result)
        own = {node.name for node in all_nodes(source.graph.node)}
        assert own.issuperset(unread(result.graph))


def test_of_what_stands_for_a_sequence_only_what_is_read_is_written() -> None:
    """Neither the shapes of vectors, nor what only leads to them."""
    found = model(
        HEAD
        + """g (float[N] x, float[M] z, int64 p, bool c) => (float[K] y, int64 n) {
            s = SequenceConstruct(x, z)
            t = SequenceInsert(s, x, p)
            y = SequenceAt(t, p)
            b = If(c) <then_branch = t () => (seq(float[A]) i) { i = SequenceErase(t, p) },
                else_branch = e () => (seq(float[B]) j) { j = SequenceInsert(t, z) }>
            n = SequenceLength(b)
        }""",
    )
    feeds = {
        "x": np.arange(3, dtype=np.float32),
        "z": np.arange(2, dtype=np.float32),
        "p": np.array(1),
        "c": np.array(True),
    }
    result = converts(found, 10, feeds)
    assert unread(result.graph) == []
    assert "Reshape" in {node.op_type for node in result.graph.node}


@pytest.mark.matrix
@pytest.mark.parametrize("seed", share(range(100, 124), each=8))
def test_more_programs(seed: int) -> None:
    source = Program(seed, 13 + seed % 6).model()
    for target in (12, 11, 10, 9, 8, 7):
        result = converts(source, target, *FEEDS, exact=True)
        # From 11 on there are sequences, and some programs carry none into a graph.
        assert target >= 11 or holds_none(result)


# What a Loop appends to


APPENDED = """g (float[4, 6] x, int64 n, bool c, int64 p) => (float[k, 6] y, float[m, a, b] w,
    int64 length, float[i, j] z) {{
        empty = SequenceEmpty<dtype = 1>()
        all = Loop(n, c, empty) <body = b (int64 i, bool more, seq(float[q, 6]) before)
            => (bool again, seq(float[q1, 6]) after) {{
                again = Identity(more)
                {item}
                after = SequenceInsert(before, item)
            }}>
        y = ConcatFromSequence<axis = 0>(all)
        {stacked}
        length = SequenceLength(all)
        z = SequenceAt(all, p)
    }}"""


def feeds(rounds: int, place: int) -> dict[str, np.ndarray]:
    return {"x": X, "n": np.array(rounds), "c": np.array(True), "p": np.array(place)}


@pytest.mark.parametrize("target", [12, 7])
def test_a_loop_appends_tensors_of_one_shape(target: int) -> None:
    text = APPENDED.format(
        item="f = Cast<to = 1>(i)  item = Add(x, f)",
        stacked="w = ConcatFromSequence<axis = 1, new_axis = 1>(all)",
    )
    result = converts(model(HEAD + text), target, feeds(3, 0), feeds(2, -1), exact=True)
    assert holds_none(result)
    # Nothing is laid out flat where all have one shape. At opset 7 constants are nodes.
    made = [node for node in all_nodes(result.graph.node) if node.op_type != "Constant"]
    assert len(made) < 60


@pytest.mark.parametrize("target", [12, 9])
def test_a_loop_appends_tensors_of_different_shapes(target: int) -> None:
    """Of which one has no elements at all."""
    item = (
        "zero = Constant<value_ints = [0]>()  one = Constant<value_ints = [1]>()  "
        "end = Reshape(i, one)  item = Slice(x, zero, end, zero)"
    )
    stacked = "first = Neg(x)  flat = Constant<value_ints = [4, 3, 2]>()  w = Reshape(first, flat)"
    source = model(HEAD + APPENDED.format(item=item, stacked=stacked))
    assert holds_none(converts(source, target, *(feeds(4, p) for p in (0, 2, -1)), exact=True))


def test_a_loop_that_carries_as_many_tensors_as_it_is_given() -> None:
    """Of different ranks, which one tensor could not hold."""
    source = model(
        HEAD + "g (float[4, 6] x, float[5] v, int64 n, bool c) => (float[4, 6] y, float[5] w) "
        "<int64 first = {0}, int64 second = {1}> { "
        "pair = SequenceConstruct(x, v)  y1, total = Loop(n, c, pair) <body = b "
        "(int64 i, bool more, seq(float) before) => (bool again, seq(float) after, float t) { "
        "again = Identity(more)  a = SequenceAt(before, first)  b = SequenceAt(before, second)  "
        "a2 = Neg(a)  b2 = Abs(b)  after = SequenceConstruct(a2, b2)  "
        "t = ReduceSum<keepdims = 0>(a2) }>  "
        "y = SequenceAt(y1, first)  w = SequenceAt(y1, second) }"
    )
    result = converts(source, 12, {**feeds(3, 0), "v": -X[0, :5]}, exact=True)
    assert holds_none(result)
    converts(source, 9, {**feeds(3, 0), "v": -X[0, :5]}, exact=True)


CARRIED = """g (float[2, 3] x, int64 n, bool c) => (float[2, 3] y, int64 l) {{ {nodes} }}"""


@pytest.mark.parametrize(
    "nodes",
    [
        """s = SequenceConstruct(x, x)
        y, r = Loop(n, c, x, s) <body = b (int64 i, bool k, float[2, 3] u, seq(float[2, 3]) w)
            => (bool m, float[2, 3] v, seq(float[2, 3]) z)
            { m = Identity(k)  v = Neg(u)  z = SequenceInsert(w, u) }>
        l = SequenceLength(r)""",
        """s = SequenceConstruct(x, x)
        , y = Loop(n, c, s, x) <body = b (int64 i, bool k, seq(float[2, 3]) w, float[2, 3] u)
            => (bool m, seq(float[2, 3]) z, float[2, 3] v)
            { m = Identity(k)  v = Neg(u)  z = SequenceInsert(w, u) }>
        l = SequenceLength(s)""",
        """s = SequenceConstruct(x, x)
        r = Loop(, c, s) <body = b (int64 i, bool k, seq(float[2, 3]) w)
            => (bool m, seq(float[2, 3]) z) {
                two = Constant<value_int = 2>()  m = Less(i, two)  z = SequenceInsert(w, x) }>
        y = Neg(x)  l = SequenceLength(r)""",
        """s = SequenceEmpty()
        r = Loop(n, c, s) <body = b (int64 i, bool k, seq(float[2, 3]) w)
            => (bool m, seq(float[2, 3]) z)
            { m = Identity(k)  a = SequenceInsert(w, x)  z = SequenceErase(a) }>
        y = Neg(x)  l = SequenceLength(r)""",
    ],
    ids=["beside a tensor", "that nobody reads", "without a limit", "of no known elements"],
)
@pytest.mark.parametrize("target", [12, 9])
def test_sequences_that_a_loop_carries(nodes: str, target: int) -> None:
    given = [{"x": X[:2, :3], "n": np.array(n), "c": np.array(True)} for n in (0, 2)]
    # ONNX Runtime ends the process where a sequence that a Loop carries is read by nobody.
    source = model(HEAD + CARRIED.format(nodes=nodes))
    assert holds_none(converts(source, target, *given, exact=True, in_numpy=True))


@pytest.mark.parametrize(
    "nodes",
    [
        """r = Loop(n, c, s) <body = b (int64 i, bool k, seq(float[]) w) => (bool m, seq(float[]) z)
            { m = Identity(k)  z = Identity(w) }>""",
        """r = If(c) <then_branch = t () => (seq(float[]) u) { u = SequenceEmpty() },
            else_branch = e () => (seq(float[]) v) { v = Identity(s) }>""",
    ],
    ids=["Loop", "If"],
)
@pytest.mark.parametrize("target", [12, 9])
def test_of_what_only_gives_nothing_nothing_is_left(nodes: str, target: int) -> None:
    head = HEAD.replace("13", "14")
    nodes = f"s = SequenceEmpty()  {nodes}  l = SequenceLength(r)  y = Neg(x)"
    source = onnx.parser.parse_model(head + CARRIED.format(nodes=nodes))
    given = {"x": X[:2, :3], "n": np.array(2), "c": np.array(True)}
    result = converts(source, target, given, exact=True)
    assert {"If", "Loop"}.isdisjoint(op_types(result))


@pytest.mark.parametrize(
    ("node", "changed"),
    [
        (
            """y = Scan<num_scan_inputs = 1, body = b (float[3] a) => (float[3] o) {
                i = Constant<value_int = 0>()  q = SequenceAt(s, i)  o = Add(a, q) }>(x)""",
            True,
        ),
        (
            """y = Scan<num_scan_inputs = 1, body = b (float[3] a) => (float[3] o)
                { o = Neg(a) }>(x)""",
            False,
        ),
        (
            """y = If(c) <then_branch = t () => (float[2, 3] u) { u = Neg(x) },
                else_branch = e () => (float[2, 3] v) { v = Abs(x) }>""",
            False,
        ),
        (
            """y = Loop(n, c, x) <body = b (int64 i, bool k, float[2, 3] u)
                => (bool m, float[2, 3] v) { m = Identity(k)  v = Neg(u) }>""",
            False,
        ),
    ],
)
def test_graphs_beside_sequences(node: str, changed: bool) -> None:
    """They read some from around them, or stay as they are."""
    nodes = f"z = ReduceMax<axes = [0], keepdims = 0>(x)  s = SequenceConstruct(z)  {node}  "
    source = model(HEAD + CARRIED.format(nodes=nodes + "l = SequenceLength(s)"))
    given = {"x": X[:2, :3], "n": np.array(2), "c": np.array(False)}
    result = converts(source, 10, given, exact=True)
    assert holds_none(result)
    before, after = (
        next(item for item in found.graph.node if "y" in item.output) for found in (source, result)
    )
    assert (before != after) == changed


# SplitToSequence


@pytest.mark.parametrize("target", [10, 9, 8, 7])
@pytest.mark.parametrize("given", ["by", "sizes"])
@pytest.mark.parametrize("axis", [0, -1])
def test_split_at_run_time(target: int, given: str, axis: int) -> None:
    source = model(
        HEAD + "g (float[n, m] x, int64 by, int64[k] sizes, int64 p) => (float[a, b] y, "
        f"int64 length) {{ parts = SplitToSequence<axis = {axis}>(x, {given})  "
        "y = SequenceAt(parts, p)  length = SequenceLength(parts) }"
    )
    sizes = np.array([1, 0, 3] if not axis else [2, 4])
    given_feeds = [
        {"x": X, "by": np.array(by), "sizes": sizes, "p": np.array(place)}
        for by, place in ((3, 0), (2, -1), (9 if given == "sizes" else 1, 1))
    ]
    assert holds_none(converts(source, target, *given_feeds, exact=True))


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_split_into_ones(keepdims: int, axis: int) -> None:
    dims = "[a, b]" if keepdims else "[a]"
    source = model(
        HEAD + f"g (float[n, m] x, int64 p) => (float{dims} y, float[c, d] z) {{ "
        f"parts = SplitToSequence<axis = {axis}, keepdims = {keepdims}>(x)  "
        "y = SequenceAt(parts, p)  back = SequenceErase(parts, p)  "
        f"z = ConcatFromSequence<axis = {axis}, new_axis = {1 - keepdims}>(back) }}"
    )
    converts(source, 10, *({"x": X, "p": np.array(p)} for p in (0, 2, -1)), exact=True)


# SequenceMap


@pytest.mark.parametrize("target", [16, 13, 12, 11])
def test_sequence_map(target: int) -> None:
    """With a further sequence and a tensor; the model is given and gives sequences."""
    source = model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (seq(float[2]) s, seq(float[2]) t, float[2] x) => (seq(float[2]) y, seq(int64[1]) z) {
            [map] y, z = SequenceMap(s, t, x) <body = b (float[2] a, float[2] b, float[2] c)
                => (float[2] d, int64[1] e) {
                    f = Add(a, b)
                    d = Add(f, c)
                    e = Shape(d)
                }>
        }"""
    )
    pairs = [np.full(2, n, np.float32) for n in range(3)]
    given = [{"s": pairs, "t": pairs[::-1], "x": np.ones(2, np.float32)}]
    result = converts(source, target, *given, exact=True)
    assert "SequenceMap" not in op_types(result)
    assert "map" in [node.name for node in result.graph.node]


def test_sequence_map_below_sequences() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[n, 3] x) => (float[n, 3] y) {
            rows = SplitToSequence<axis = 0>(x)
            made = SequenceMap(rows) <body = b (float[1, 3] a) => (float[1, 3] d) { d = Neg(a) }>
            y = ConcatFromSequence<axis = 0>(made)
        }"""
    )
    for target in (16, 12, 10, 7):
        converts(source, target, {"x": X[:, :3]}, exact=True)


def test_sequence_map_within_a_graph() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2, 3] x, bool c) => (float[2, 3] y) {
            y = If(c) <then_branch = t () => (float[2, 3] u) {
                rows = SplitToSequence<axis = 0>(x)
                made = SequenceMap(rows) <body = b (float[1, 3] a) => (float[1, 3] d)
                    { d = Neg(a) }>
                u = ConcatFromSequence<axis = 0>(made)
            }, else_branch = e () => (float[2, 3] v) { v = Abs(x) }>
        }"""
    )
    given = [{"x": X[:2, :3] - 2, "c": np.array(flag)} for flag in (True, False)]
    for target in (16, 12, 9):
        converts(source, target, *given, exact=True)


# What the model itself is given and gives


def test_sequences_that_the_model_is_given() -> None:
    source = model(
        HEAD + "g (seq(float[2]) s, bool c, float[2] x) => (seq(float[2]) y, int64 n) { "
        "y = If (c) <then_branch = t () => (seq(float[2]) a) { a = SequenceInsert(s, x) }, "
        "else_branch = e () => (seq(float[2]) b) { b = SequenceErase(s) }>  n = SequenceLength(y) }"
    )
    tensors = [np.full(2, n, np.float32) for n in range(3)]
    given = [{"s": tensors, "c": np.array(flag), "x": -tensors[1]} for flag in (True, False)]
    for target in (12, 11):
        converts(source, target, *given, exact=True)
    (blocker,) = blockers(source, 10)
    assert blocker.reason == (
        "the model is given 's', a sequence of tensors, which nothing before opset 11 can hold"
    )


def test_sequences_that_the_model_gives() -> None:
    source = model(HEAD + "g (float[2] x) => (seq(float[2]) y) { y = SequenceConstruct(x, x) }")
    (blocker,) = blockers(source, 10)
    assert blocker.reason == (
        "the model gives 'y', a sequence of tensors, which nothing before opset 11 can hold"
    )


def test_a_sequence_that_is_passed_on() -> None:
    source = model(
        '<ir_version: 8, opset_import: ["": 14]> '
        "g (seq(float[2]) s, float[2] x) => (seq(float[2]) y, int64 n) { "
        "y = Identity(s)  both = SequenceConstruct(x, x)  again = Identity(both)  "
        "n = SequenceLength(again) }"
    )
    for target in (13, 11):
        given = [{"s": [X[0, :2]] * count, "x": X[1, :2]} for count in (0, 2)]
        converts(source, target, *given, exact=True)


@pytest.mark.parametrize(
    ("dims", "reason"),
    [
        ("[n]", ""),
        ("[n, 2]", "is a sequence of tensors of different shapes, counted at run time"),
    ],
)
def test_sequences_of_different_shapes_that_a_loop_gives(dims: str, reason: str) -> None:
    source = model(
        HEAD + f"g (float{dims} x, int64 n, bool c) => (seq(float{dims}) y) {{ "
        "empty = SequenceEmpty<dtype = 1>()  y = Loop(n, c, empty) <body = b "
        f"(int64 i, bool more, seq(float{dims}) before) => (bool again, seq(float{dims}) after) "
        "{ again = Identity(more)  zero = Constant<value_ints = [0]>()  "
        "one = Constant<value_ints = [1]>()  end = Reshape(i, one)  "
        "item = Slice(x, zero, end, zero)  after = SequenceInsert(before, item) }> }"
    )
    if reason:
        (blocker,) = blockers(source, 12)
        assert reason in blocker.reason
    else:
        given = {"x": X[0], "n": np.array(3), "c": np.array(True)}
        for target in (12, 11):
            converts(source, target, given, exact=True)


# Optional values


def test_optional_values_that_are_known() -> None:
    source = optional_values()
    for target in (17, 15, 14, 9):
        converts(source, target, {"x": X[0, :2]}, exact=True)


def optional_values() -> ModelProto:
    """Values that are there and one that is not, of a tensor and of a sequence."""
    helper = onnx.helper
    float_type = helper.make_tensor_type_proto(1, [2])
    nodes = [
        helper.make_node("Optional", ["x"], ["o"]),
        helper.make_node("Identity", ["o"], ["p"]),
        helper.make_node("OptionalGetElement", ["p"], ["y"]),
        helper.make_node("OptionalHasElement", ["p"], ["a"]),
        helper.make_node("Optional", [], ["none"], type=float_type),
        helper.make_node("OptionalHasElement", ["none"], ["b"]),
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("Optional", ["s"], ["os"]),
        helper.make_node("OptionalGetElement", ["os"], ["t"]),
        helper.make_node("OptionalHasElement", ["os"], ["c"]),
        helper.make_node("SequenceLength", ["t"], ["n"]),
        helper.make_node("OptionalGetElement", ["x"], ["same"]),
    ]
    outputs = [helper.make_tensor_value_info(name, 1, [2]) for name in ("y", "same")]
    outputs += [helper.make_tensor_value_info(name, 9, []) for name in "abc"]
    outputs.append(helper.make_tensor_value_info("n", 7, []))
    inputs = [helper.make_tensor_value_info("x", 1, [2])]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    imports = [helper.make_opsetid("", 18)]
    found = helper.make_model(graph, opset_imports=imports, ir_version=8)
    onnx.checker.check_model(found, full_check=True)
    return found


def chosen(opset: int) -> ModelProto:
    """An If that gives a value or none; what is done with it depends on which."""
    helper = onnx.helper
    tensor = helper.make_tensor_type_proto(1, [2])
    info = helper.make_value_info("", helper.make_optional_type_proto(tensor))

    def named(name: str) -> onnx.ValueInfoProto:
        copy = onnx.ValueInfoProto()
        copy.CopyFrom(info)
        copy.name = name
        return copy

    def branch(node: NodeProto, output: onnx.ValueInfoProto) -> onnx.GraphProto:
        return helper.make_graph([node], f"graph_{output.name}", [], [output])

    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node(
            "If",
            ["c"],
            ["o"],
            then_branch=branch(helper.make_node("Optional", ["x"], ["some"]), named("some")),
            else_branch=branch(
                helper.make_node("Optional", [], ["none"], type=tensor), named("none")
            ),
        ),
        helper.make_node("OptionalHasElement", ["o"], ["has"]),
        helper.make_node(
            "If",
            ["has"],
            ["y"],
            then_branch=branch(
                helper.make_node("OptionalGetElement", ["o"], ["held"]), value("held", 1, [2])
            ),
            else_branch=branch(helper.make_node("Neg", ["x"], ["other"]), value("other", 1, [2])),
        ),
    ]
    inputs = [value("x", 1, [2]), value("c", 9, [])]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", 1, [2]), value("has", 9, [])])
    imports = [helper.make_opsetid("", opset)]
    found = helper.make_model(graph, opset_imports=imports, ir_version=8)
    onnx.checker.check_model(found, full_check=True)
    return found


@pytest.mark.parametrize("target", [15, 14, 10])
def test_optional_values_that_a_branch_gives(target: int) -> None:
    given = [{"x": X[0, :2], "c": np.array(flag)} for flag in (True, False)]
    result = converts(chosen(16), target, *given, exact=True)
    assert holds_none(result)


def test_optional_values_of_the_model() -> None:
    source = chosen(16)
    proto = onnx.helper.make_optional_type_proto(onnx.helper.make_tensor_type_proto(1, [2]))
    source.graph.output.append(onnx.helper.make_value_info("o", proto))
    (blocker,) = blockers(source, 15)
    assert "whether 'o' is there is only known at run time" in blocker.reason
    (blocker,) = blockers(source, 14)
    assert blocker.reason == (
        "the model gives 'o', a value that may be absent, which nothing before opset 15 can hold"
    )


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ("t = SequenceErase(s)  u = SequenceErase(t)  y = SequenceLength(u)", "a sequence of 0 at"),
        ("t = SequenceInsert(s, x, at)  y = SequenceLength(t)", "a sequence of 1 at 2"),
        ("t = SequenceErase(s)  z = ConcatFromSequence<axis = 0>(t)  y = Shape(z)", "no tensors"),
        ("z = SequenceAt(s, at)  y = Shape(z)", "element 2 of 1"),
    ],
)
def test_places_that_are_not_there(made: str, reason: str) -> None:
    dims = "" if "Length" in made else "[1]"
    source = model(
        HEAD + f"g (float[2] x, bool c) => (int64{dims} y) <int64 at = {{2}}> "
        f"{{ s = SequenceConstruct(x)  {made} }}"
    )
    assert any(reason in blocker.reason for blocker in blockers(source, 10))


# Around it


def test_what_is_said_and_kept() -> None:
    source = model(
        HEAD + "g (float[2] x, int64 p) => (float[2] y) { "
        "[make] s = SequenceConstruct(x, x)  [take] y = SequenceAt(s, p) }"
    )
    source.graph.node[1].doc_string = "why"
    changes = onnxreduce_cli.plan(source, 10).changes
    assert [change.node for change in changes][:2] == ["make", "take"]
    assert "written out as tensors" in changes[0].edits[0]
    result = converts(source, 10, {"x": X[0, :2], "p": np.array(1)}, exact=True)
    (node,) = (node for node in result.graph.node if "y" in node.output)
    assert node.doc_string == "why"
    assert result.SerializeToString() == onnxreduce_cli.convert(source, 10).SerializeToString()


def test_sequences_in_a_function() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 13, "local": 1]>
        g (float[2] x, int64 n, bool c) => (float[k] y) { y = local.F(x, n, c) }
        <domain: "local", opset_import: ["": 13]>
        F (x, n, c) => (y) {
            empty = SequenceEmpty<dtype = 1>()
            all = Loop(n, c, empty) <body = b (int64 i, bool more, seq(float) before)
                => (bool again, seq(float) after) {
                    again = Identity(more)
                    after = SequenceInsert(before, x)
                }>
            y = ConcatFromSequence<axis = 0>(all)
        }"""
    )
    given = {"x": X[0, :2], "n": np.array(3), "c": np.array(True)}
    for target in (12, 9):
        converts(source, target, given, exact=True)


def test_a_loop_that_was_not_there_is_an_emulation() -> None:
    """The elements of what the model is given differ in shape: one after the other is taken."""
    source = model(
        HEAD + "g (float[a] x, int64[k] parts, int64 p) => (float[b] y) { "
        "s = SplitToSequence<axis = 0>(x, parts) y = SequenceAt(s, p) }"
    )
    given = {"x": X[0], "parts": np.array([1, 2, 3]), "p": np.array(1)}
    refused = onnxreduce_cli.plan(source, 10).blockers
    assert [item.op_type for item in refused] == ["SplitToSequence"]
    assert "it can only be emulated at opset 10: " in refused[0].reason
    assert "--emulate" in refused[0].advice
    change = onnxreduce_cli.plan(source, 10, emulate=True).changes[0]
    assert change.control_flow
    converts(source, 10, given, exact=True)


def test_a_rank_that_is_not_known() -> None:
    source = model(
        HEAD + "g (float[4, 6] x, int64[k] s, int64 n, bool c) => (float[a] y) { "
        "item = Reshape(x, s)  empty = SequenceEmpty<dtype = 1>()  all = Loop(n, c, empty) "
        "<body = b (int64 i, bool more, seq(float) before) => (bool again, seq(float) after) "
        "{ again = Identity(more)  after = SequenceInsert(before, item) }>  "
        "y = ConcatFromSequence<axis = 0>(all) }"
    )
    (blocker,) = blockers(source, 12)
    assert blocker.reason == "the rank of 'item' is not known, which it holds"
    assert blocker.advice == "state the shapes of what it holds in the model's value_info"


def test_a_model_that_imports_no_opset_is_not_written_out() -> None:
    """Nothing says how many inputs its operators take."""
    node = helper.make_node("OptionalGetElement", [], ["y"])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    source = helper.make_model(helper.make_graph([node], "g", [], [output]), ir_version=8)
    del source.opset_import[:]
    (blocker,) = onnxreduce_cli.plan(source, 9).blockers
    assert "not imported" in blocker.reason


def test_an_optional_value_that_nothing_makes() -> None:
    source = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18]>
        g (float[2] x) => (float[2] y) { y = OptionalGetElement(q) }""")
    (blocker,) = onnxreduce_cli.plan(source, 13).blockers
    assert "the type of 'q' is not known" in blocker.reason
