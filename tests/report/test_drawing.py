"""Nodes as drawings show them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper

from onnxreduce_cli.report.drawing import array_text, drawn_node


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1, "0.1"),
        (-3, "-3"),
        ("linear", "'linear'"),
        (b"\xff", repr("\N{REPLACEMENT CHARACTER}")),
        ([1, 2], "[1, 2]"),
        ([0.1, 2.0], "[0.1, 2.0]"),
        ([b"a"], "strings"),
        (helper.make_tensor("t", TensorProto.FLOAT, [2, 3], [0.0] * 6), "tensor[2, 3]"),
        (helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], []), "1 node"),
    ],
)
def test_an_attribute_in_few_words(value: Any, shown: str) -> None:
    node = helper.make_node("Any", [], ["y"], it=value)
    assert drawn_node(node, "old").attributes == {"it": shown}


@pytest.mark.parametrize("element", [1, 0.5])
def test_a_long_list_is_how_long_it_is(element: float) -> None:
    node = helper.make_node("Any", [], ["y"], it=[element] * 1000)
    assert drawn_node(node, "old").attributes == {"it": "1000 numbers"}


def test_an_attribute_of_the_function_around() -> None:
    node = helper.make_node("Any", [], ["y"])
    node.attribute.append(AttributeProto(name="axis", ref_attr_name="last", type=2))
    assert drawn_node(node, "old").attributes == {"axis": "@last"}


def test_a_constant_of_many_elements_is_its_dtype_and_shape() -> None:
    assert array_text(np.array([[1, 2]])) == "[[1, 2]]"
    assert array_text(np.zeros((100, 10), np.float32)) == "float32[100, 10]"
