"""What is equal of nodes that differ in names alone, whichever way it is found."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, helper

from onnxreduce_cli.model.signatures import _of_fields, signatures

#: As many nodes are walked over side by side; of fewer the fields are read.
MANY = 50


def node(
    *inputs: str, axes: tuple[int, ...] = (1,), outputs: tuple[str, ...] = ("y",), **more: str
) -> NodeProto:
    return helper.make_node("Op", inputs, outputs, axes=axes, **more)


@pytest.mark.parametrize("count", [2, MANY])
def test_what_nodes_have_in_common(count: int) -> None:
    def alike(one: NodeProto, other: NodeProto) -> bool:
        found = signatures([one] * (count - 1) + [other])
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
    assert signatures([large, no_text, NodeProto()] * count)[:3] == [None] * 3


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
    fields = list(map(_of_fields, found))
    walked = signatures(found * MANY)[: len(found)]
    for one, other in combinations(range(len(found)), 2):
        if walked[one] is None or walked[other] is None:
            continue
        if walked[one] == walked[other]:
            assert fields[one] == fields[other]
        elif fields[one] == fields[other]:
            # Nodes with long names and others are walked over to different ends.
            assert type(walked[one][0]) is not type(walked[other][0])  # type: ignore[index]
