"""What is equal of nodes that differ in names alone, whichever way it is found."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper

from onnxreduce_cli.model.signatures import of_fields, walked

#: As many nodes are walked over side by side; of fewer the fields are read.
MANY = 50


def node(
    *inputs: str, axes: tuple[int, ...] = (1,), outputs: tuple[str, ...] = ("y",), **more: str
) -> NodeProto:
    return helper.make_node("Op", inputs, outputs, axes=axes, **more)


@pytest.mark.parametrize("count", [2, MANY])
def test_what_nodes_have_in_common(count: int) -> None:
    def alike(one: NodeProto, other: NodeProto) -> bool:
        found = walked([one] * (count - 1) + [other]).signatures
        assert None not in found
        return found[0] == found[-1]

    assert alike(node("a"), node("b", outputs=("q",), name="n", doc_string="d"))
    assert not alike(node("a"), node("a", axes=(2,)))
    assert not alike(node("a"), node("a", "b"))
    assert not alike(node("a", "", "b"), node("a", "b", ""))
    assert not alike(node("a", outputs=("y", "")), node("a", outputs=("y", "z")))
    assert not alike(node("a"), node("a", domain="other"))


@pytest.mark.parametrize("count", [2, MANY])
def test_what_cannot_be_compared(count: int) -> None:
    value = helper.make_tensor("value", TensorProto.FLOAT, [200], [1.0] * 200)
    large = helper.make_node("Constant", [], ["y"], value=value)
    no_text = NodeProto.FromString(node("abc").SerializeToString().replace(b"abc", b"a\xffc"))
    assert walked([large, no_text, NodeProto()] * count).signatures[:3] == [None] * 3


def test_the_only_output_is_told_of_many_nodes() -> None:
    two = node("a", outputs=("y", "z"))
    not_ascii, none = node("a", outputs=("ä",)), helper.make_node("Op", ["a"], [])
    found = [node("a"), node("a", outputs=("",)), two, not_ascii, none]
    assert walked(found * MANY).names.outputs[:5] == ["y", "", None, None, None]


def test_inputs_are_told_of_many_nodes() -> None:
    crowd, not_ascii = helper.make_node("Op", ["a"] * 4, ["y"]), node("ä")
    found = [node("a", "b"), helper.make_node("Op", [], ["y"]), crowd, not_ascii]
    expected = [("a", "b", ""), ("", "", ""), None, None]
    many = walked(found * MANY).names
    assert many.inputs[:4] == expected
    assert walked(found).names.inputs == [None] * 4
    places = [2 * place + 1 for place in range(len(found) * MANY)]
    among = many.among(places, 2 * len(places))
    assert among.inputs[1::2] == many.inputs
    assert among.outputs[1::2] == many.outputs
    assert set(among.inputs[::2]) == {None}


names = st.sampled_from(["", "x", "y" * 40, "z" * 150, "ä", "10"])
nodes = st.builds(
    node,
    *[names] * 2,
    axes=st.sampled_from([(1,), (1, 2), tuple(range(90))]),
    outputs=st.lists(names, max_size=3).map(tuple),
    name=names,
    doc_string=st.sampled_from(["", "text"]),
    domain=st.sampled_from(["", "other"]),
)
#: More of everything than is walked over.
crowded = st.builds(
    lambda inputs, outputs, attributes: helper.make_node(
        "Op", ["x"] * inputs, ["y"] * outputs, **{f"a{place}": 1 for place in range(attributes)}
    ),
    *[st.integers(12, 17)] * 3,
)


@settings(deadline=None)
@given(st.lists(nodes | crowded, min_size=6, max_size=12))
def test_nodes_are_equal_by_walking_where_they_are_by_their_fields(found: list[NodeProto]) -> None:
    fields = list(map(of_fields, found))
    side_by_side = walked(found * MANY)
    for one, output in zip(found, side_by_side.names.outputs, strict=False):
        assert output is None or [output] == one.output
    for one, inputs in zip(found, side_by_side.names.inputs, strict=False):
        assert inputs is None or inputs == (*one.input, "", "", "")[:3]
    for one, op_type in zip(found, side_by_side.op_types, strict=False):
        assert op_type in (None, one.op_type)
    keys = side_by_side.signatures
    for one, other in combinations(range(len(found)), 2):
        if keys[one] is None or keys[other] is None:
            continue
        if keys[one] == keys[other]:
            assert fields[one] == fields[other]
        elif fields[one] == fields[other]:
            # Nodes with long names and others are walked over to different ends.
            assert type(keys[one][0]) is not type(keys[other][0])  # type: ignore[index]
