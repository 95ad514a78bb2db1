"""The names that nodes read and make, by numbers."""

from __future__ import annotations

from collections import Counter

import pytest
from onnx import NodeProto, helper

from onnxreduce_cli.model.node_names import COLUMNS, EMPTY, UNTOLD, NodeNames
from onnxreduce_cli.model.signatures import walked

LONG = "a name of more bytes than are compared at a time"


def node(inputs: list[str], outputs: list[str]) -> NodeProto:
    return helper.make_node("Op", inputs, outputs)


NODES = [
    node(["x", "", LONG], ["a"]),
    node(["a", "x"], [LONG]),
    node(["ä", "x"], ["b"]),
    node(["x"] * (COLUMNS + 1), ["c"]),
    node([], ["d", "e"]),
]


def names(times: int = 20) -> NodeNames:
    """Of so many nodes that they are walked over; the same names come again."""
    return walked(NODES * times).names


def test_equal_names_have_one_number() -> None:
    found = names()
    x, a, long = (found.number(name) for name in ("x", "a", LONG))
    assert len({x, a, long, EMPTY, None}) == 5
    first, second, third = (list(column) for column in found.input_numbers)
    assert first[:5] == first[5:10] == [x, a, UNTOLD, UNTOLD, EMPTY]
    assert second[:5] == [EMPTY, x, UNTOLD, UNTOLD, EMPTY]
    assert third[:5] == [long, EMPTY, UNTOLD, UNTOLD, EMPTY]
    assert list(found.output_numbers[:5]) == [a, long, UNTOLD, found.number("c"), UNTOLD]
    assert all(number is None or number < found.count for number in (x, a, long))


@pytest.mark.parametrize("name", ["", "x", LONG, "c", "b", "d", "ä", "?", "unknown"])
def test_many_names_are_numbered_as_few_are(name: str) -> None:
    few, many = names(), names()
    for index in range(100):
        assert many.number(f"unknown {index}") is None
    assert many.number(name) == few.number(name)


def test_names_of_inputs() -> None:
    found = names()
    for at, item in enumerate(NODES):
        for place, name in enumerate(item.input):
            assert found.input(item, at, place) == name


@pytest.mark.parametrize(
    ("name", "places"), [("a", [0, 5]), (LONG, [1, 6]), ("b", [2, 7]), ("e", [4, 9]), ("x", [])]
)
def test_the_nodes_that_make_a_value(name: str, places: list[int]) -> None:
    nodes = NODES * 2 + [node(["x"], [f"o{index}"]) for index in range(50)]
    found = walked(nodes).names
    assert found.makers(name, nodes) == places
    assert found.makers("", nodes) == []
    for index in range(100):
        found.makers(f"unknown {index}", nodes)
    assert found.makers("another", nodes) is None


def test_reads_are_counted() -> None:
    found, counts = names(20), Counter({"x": 1})
    found.count_reads(["x", "a", LONG, "unknown", ""], counts)
    assert counts == {"x": 41, "a": 20, LONG: 20}
    assert found.untold == [place for place in range(100) if place % 5 in (2, 3)]


def test_of_few_nodes_nothing_is_told() -> None:
    found = names(1)
    assert [list(column) for column in found.input_numbers] == [[UNTOLD] * 5] * COLUMNS
    assert list(found.output_numbers) == [UNTOLD] * 5
    assert found.untold == list(range(5))
    assert found.number("x") is None
    assert found.among([1, 2, 4, 5, 6], 9).untold == list(range(9))


def test_nodes_among_others() -> None:
    own, count = names(), 100
    places = [2 * place + 1 for place in range(count)]
    found = own.among(places, 2 * count)
    assert found.input_numbers[0][0] == UNTOLD
    x = found.number("x")
    assert [at for at, number in enumerate(found.input_numbers[0]) if number == x] == places[::5]
