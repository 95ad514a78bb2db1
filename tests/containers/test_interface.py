"""Sequences and optional values that a model is given and gives."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, TypeProto, helper

from tests.support import blockers, converts, model, op_types

X = np.array([1, -2], np.float32)
HEAD = '<ir_version: 8, opset_import: ["": 16]> g '


@pytest.mark.parametrize(
    ("made", "given", "operators"),
    [
        ("Optional(x)", "float[2]", ["Optional"]),
        ("Optional<type = float[2]>()", "float[2]", ["Optional"]),
        ("Optional(s)", "seq(float[2])", ["SequenceConstruct", "Optional"]),
        ("Optional(t)", "seq(float[2])", ["Optional"]),
    ],
)
def test_optional_values_that_a_model_gives(made: str, given: str, operators: list[str]) -> None:
    source = model(
        HEAD + f"(float[2] x, seq(float[2]) t) => (optional({given}) y) "
        f"{{ s = SequenceConstruct(x, x)  o = {made}  y = Identity(o) }}"
    )
    before = source.graph.output[0].type
    for feeds in ({"x": X, "t": [X]}, {"x": X, "t": []}):
        result = converts(source, 15, feeds, exact=True)
    assert op_types(result) == operators
    assert result.graph.output[0].type == before
    (blocker,) = blockers(source, 14)
    assert blocker.reason == (
        "the model gives 'y', a value that may be absent, which nothing before opset 15 can hold"
    )
    assert blocker.advice == "choose a later opset, or let the model give tensors"


def test_an_optional_value_that_a_model_is_given() -> None:
    """It stays: what reads it by another name reads it by its own."""
    source = model(
        HEAD + "(optional(float[2]) o) => (bool h, float[2] y) "
        "{ p = Identity(o)  h = OptionalHasElement(p)  y = OptionalGetElement(p) }"
    )
    result = converts(source, 15, {"o": X}, exact=True)
    assert [(node.op_type, *node.input) for node in result.graph.node] == [
        ("OptionalHasElement", "o"),
        ("OptionalGetElement", "o"),
    ]
    (blocker,) = blockers(source, 14)
    assert blocker.reason == (
        "the model is given 'o', a value that may be absent, which nothing before opset 15 can hold"
    )


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (
            "y = Identity(o)",
            "the model gives 'y', the optional value that it is given, and no operator before "
            "opset 16 passes that on",
        ),
        (
            """y = If(c) < then_branch = t () => (optional(float[2]) p) { p = Identity(o) },
                else_branch = e () => (optional(float[2]) q) { q = Optional(x) }>""",
            "'o', an optional value that the model is given, goes into or out of a graph within a "
            "graph, which nothing before opset 16 lets in",
        ),
        (
            """y = If(c) < then_branch = t () => (optional(float[2]) p)
                { p = Optional<type = float[2]>() },
                else_branch = e () => (optional(float[2]) q) { q = Optional(x) }>""",
            "whether 'y' is there is only known at run time, and no If before opset 16 gives a "
            "value that may be absent",
        ),
    ],
)
def test_optional_values_that_cannot_be_passed_on(nodes: str, reason: str) -> None:
    source = model(
        HEAD + f"(optional(float[2]) o, float[2] x, bool c) => (optional(float[2]) y) {{ {nodes} }}"
    )
    (blocker,) = blockers(source, 15)
    assert blocker.reason == reason
    assert blocker.advice == "choose a later opset"


@pytest.mark.parametrize(
    ("nodes", "reads"),
    [
        ("y = SequenceLength(t)", ("SequenceLength", "s")),
        ("y = SequenceAt(t, p)", ("SequenceAt", "s", "p")),
        ("y = ConcatFromSequence<axis = 0>(t)", ("ConcatFromSequence", "s")),
    ],
)
def test_a_sequence_that_a_model_is_given_is_read_by_its_own_name(
    nodes: str, reads: tuple[str, ...]
) -> None:
    """Where others are written out, which here an If gives."""
    source = onnx.parser.parse_model(
        HEAD
        + f"""(seq(float[2]) s, float[2] x, bool c, int64 p) => (y, int64 n) {{
            t = Identity(s)  {nodes}
            r = If(c) < then_branch = t () => (seq(float[2]) u) {{ u = SequenceConstruct(x, x) }},
                else_branch = e () => (seq(float[2]) v) {{ v = SequenceConstruct(x) }}>
            n = SequenceLength(r) }}"""
    )
    source = onnx.shape_inference.infer_shapes(source)
    feeds = {"s": [X, -X], "x": X, "c": np.array(True), "p": np.array(1)}
    result = converts(source, 12, feeds, exact=True)
    (node,) = (node for node in result.graph.node if "y" in node.output)
    assert (node.op_type, *node.input) == reads


@pytest.mark.parametrize(
    ("nodes", "last"),
    [
        ("y = Identity(s)", "SequenceErase"),
        ("t = SequenceEmpty<dtype = 1>()  y = Identity(t)", "SequenceEmpty"),
        ("t = SequenceConstruct(x, x)  y = Identity(t)", "SequenceConstruct"),
    ],
)
def test_a_sequence_that_a_model_gives_is_made_of_what_stands_for_it(nodes: str, last: str) -> None:
    source = model(
        HEAD
        + f"""(seq(float[2]) s, float[2] x, bool c) => (seq(float[2]) y, int64 n) {{
            {nodes}
            r = If(c) < then_branch = t () => (seq(float[2]) u) {{ u = SequenceConstruct(x, x) }},
                else_branch = e () => (seq(float[2]) v) {{ v = SequenceConstruct(x) }}>
            n = SequenceLength(r) }}"""
    )
    given = [{"s": items, "x": X, "c": np.array(True)} for items in ([], [X, -X])]
    result = converts(source, 12, *given, exact=True)
    (node,) = (node for node in result.graph.node if "y" in node.output)
    assert node.op_type == last


@pytest.mark.parametrize("shapes", ["[2]", "[n]", "[]"])
def test_a_sequence_that_a_model_is_given_goes_into_a_loop(shapes: str) -> None:
    """There its elements are stacked, or laid one after the other; of some rank they must be."""
    source = onnx.parser.parse_model(
        HEAD.replace("16", "13") + f"(seq(float{shapes}) s, float[2] x, int64 n, bool c, int64 p)"
        f" => (float[m] y, int64 k) {{ t = Loop(n, c, s) <body = b (int64 i, bool more, "
        f"seq(float{shapes}) before) => (bool again, seq(float{shapes}) after) "
        "{ again = Identity(more)  after = SequenceInsert(before, x) }>  "
        "y = ConcatFromSequence<axis = 0>(t)  k = SequenceLength(t) }"
    )
    if shapes == "[]":
        (blocker,) = blockers(source, 12)
        assert blocker.reason == "the rank of what 's' holds is not known"
        assert blocker.advice == "state the shapes of what it holds in the model's value_info"
        return
    given = [X, -X] if shapes == "[2]" else [X, X[:1], X[:0]]
    more = {"x": X, "c": np.array(True), "p": np.array(0)}
    for rounds in (0, 2):
        feeds = {"s": given, "n": np.array(rounds), **more}
        for target in (12, 11):
            converts(source, target, feeds, exact=True)


def test_a_sequence_of_no_stated_dtype_that_is_passed_on() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
    g (seq(float[2]) s) => (seq(float[2]) y) { y = OptionalGetElement(s) }""")
    source.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(TypeProto()))
    (blocker,) = blockers(source, 15)
    assert "does not state the dtype" in blocker.reason


@pytest.mark.newest
@pytest.mark.parametrize(
    ("dtype", "reason"),
    [
        ("int2", "Optional does not take tensor(int2) at opset 27"),
        ("uint2", "Optional does not take tensor(uint2) at opset 27"),
        ("float6e2m3", "it has a tensor(float6e2m3), which came with opset 28"),
    ],
)
@pytest.mark.parametrize("target", [27, 24, 15])
def test_an_optional_value_that_the_target_cannot_hold(
    dtype: str, reason: str, target: int
) -> None:
    source = model(
        '<ir_version: 14, opset_import: ["": 28]> g (float[2] x) => (optional(float[2]) y) '
        "{ y = Optional(x) }"
    )
    elem_type = TensorProto.DataType.Value(dtype.upper())
    source.graph.input[0].type.tensor_type.elem_type = elem_type
    source.graph.output[0].type.optional_type.elem_type.tensor_type.elem_type = elem_type
    onnx.checker.check_model(source, full_check=True)
    (blocker,) = blockers(source, target)
    assert blocker.op_type == "Optional"
    assert blocker.reason.startswith(reason)
