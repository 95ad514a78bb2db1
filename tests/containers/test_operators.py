"""The operators on sequences and optional values: what cannot be written out, and why."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from onnxreduce_cli.containers.rewriting import RewriteError, write_out
from tests.support import blockers, converts

X = np.arange(6, dtype=np.float32).reshape(2, 3)
HEAD = '<ir_version: 8, opset_import: ["": {opset}, "other": 1]> '


def model(text: str, opset: int = 13) -> ModelProto:
    """A model that onnx's full check may refuse."""
    return onnx.parser.parse_model(HEAD.format(opset=opset) + "g " + text)


LOOP = """r = Loop(n, c, s) < body = b (int64 i, bool k, seq(float[]) w)
    => (bool m, seq(float[]) o) {{ m = Identity(k)  {made} }}>"""


@pytest.mark.parametrize(
    ("nodes", "operator", "reason"),
    [
        (
            "s = SequenceConstruct(x)  t = other.Op(s)  l = SequenceLength(s)",
            "Op",
            "it reads 's', which is no tensor, and what it does with it is not known",
        ),
        (
            "s = other.Op(x)  l = SequenceLength(s)",
            "SequenceLength",
            "how 's' is made is not known",
        ),
        (
            "r = other.Op(x)  s = SequenceConstruct(r)  l = SequenceLength(s)",
            "SequenceConstruct",
            "the dtype of 'r' is not known",
        ),
        (
            "r = Reshape(x, d)  s = SplitToSequence<axis = 0>(r)  l = SequenceLength(s)",
            "SplitToSequence",
            "the rank of 'r' is not known",
        ),
        (
            "r = Reshape(d, d)  s = SplitToSequence<axis = 0>(x, r)  l = SequenceLength(s)",
            "SplitToSequence",
            "the rank of 'r' is not known",
        ),
        (
            "s = SequenceConstruct(z)  "
            + LOOP.format(made="o = SequenceInsert(w, x)")
            + " l = SequenceLength(r)",
            "Loop",
            "the tensors of its sequence differ in rank, and how many there are is only known at "
            "run time",
        ),
    ],
)
def test_sequences_that_cannot_be_written_out(nodes: str, operator: str, reason: str) -> None:
    source = model(
        f"(float[2, 3] x, float[3] z, int64[k] d, int64 n, bool c) => (int64 l) {{ {nodes} }}"
    )
    (blocker,) = (item for item in blockers(source, 10) if item.reason == reason)
    assert blocker.op_type == operator
    assert blocker.advice


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (
            "r = Optional(x)  s = Optional(r)  l = OptionalHasElement(s)",
            "there is no optional value of an optional one",
        ),
        (
            "r = Optional<type = float[2, 3]>()  s = OptionalGetElement(r)  "
            "l = OptionalHasElement(r)",
            "it takes the element of a value that has none",
        ),
    ],
)
def test_optional_values_that_are_not_there(nodes: str, reason: str) -> None:
    (blocker,) = blockers(model(f"(float[2, 3] x) => (bool l) {{ {nodes} }}", 16), 14)
    assert blocker.reason == reason
    assert blocker.advice.startswith("mend the model: ")


@pytest.mark.parametrize(
    ("nodes", "reason", "advice"),
    [
        (
            """s = other.Op(x)
            y = SequenceMap(s) < body = b (float[] a) => (float[] o) { o = Neg(a) }>""",
            "the type of 's' is not known",
            "state it in value_info",
        ),
        (
            """s = SequenceConstruct(x)
            y = SequenceMap(s) < body = b (float[] a) => (o) { o = other.Op(a) }>""",
            "the type of 'o' is not known",
            "state it in the body's outputs",
        ),
    ],
)
def test_sequence_maps_of_unknown_types(nodes: str, reason: str, advice: str) -> None:
    source = model(f"(float[2, 3] x) => (seq(float[]) y) {{ {nodes} }}", 17)
    (blocker,) = blockers(source, 16)
    assert (blocker.op_type, blocker.reason) == ("SequenceMap", reason)
    assert blocker.advice == advice


def test_what_is_no_optional_value_has_an_element() -> None:
    source = model(
        """(float[2, 3] x) => (bool a, bool b, bool d, float[2, 3] y) {
            s = SequenceConstruct(x)  a = OptionalHasElement(s)  b = OptionalHasElement(x)
            d = OptionalHasElement()  r = OptionalGetElement(s)  i = Constant<value_int = 0>()
            t = SequenceInsert(r, x)  y = SequenceAt(t, i)
        }""",
        18,
    )
    for target in (17, 14, 10):
        converts(source, target, {"x": X}, exact=True)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_more_parts_than_are_named(keepdims: int) -> None:
    source = model(
        f"""(float[200] x) => (int64 l, float[k] y) {{
            s = SplitToSequence<axis = 0, keepdims = {keepdims}>(x)
            l = SequenceLength(s)  y = ConcatFromSequence<axis = 0, new_axis = {1 - keepdims}>(s)
        }}"""
    )
    result = converts(source, 10, {"x": np.arange(200, dtype=np.float32)}, exact=True)
    assert len(result.graph.node) < 30


def test_nothing_is_edited_where_something_cannot_be_written_out() -> None:
    source = model("(float[2] x) => (int64 l) { s = SequenceConstruct(x)  l = SequenceLength(s) }")
    other = model("(float[2] x) => (int64 l) { s = other.Op(x)  l = SequenceLength(s) }")
    source.graph.node.extend(other.graph.node)
    source.graph.node[2].output[0] = source.graph.node[3].input[0] = "t"
    source.graph.node[3].output[0] = "m"
    before = source.SerializeToString()
    with pytest.raises(RewriteError) as caught:
        write_out(source, 10)
    assert caught.value.place == (0, 3)
    assert str(caught.value) == caught.value.cause.reason == "how 't' is made is not known"
    assert source.SerializeToString() == before
