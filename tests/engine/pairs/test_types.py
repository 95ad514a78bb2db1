"""The types of what sites read."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, TypeProto, helper

from onnxreduce_cli.engine.pairs.pair import UncheckableError
from onnxreduce_cli.engine.pairs.types import (
    fixed_dims,
    keeps_value,
    mentioned_integers,
    type_proto,
)
from onnxreduce_cli.model.values import ValueType, from_proto, tensor_type

DTYPES = [TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.FLOAT8E4M3FN]


@pytest.mark.parametrize("elem_type", DTYPES)
def test_types_become_protobuf_and_back(elem_type: int) -> None:
    tensor = helper.make_tensor_type_proto(elem_type, None)
    for proto in (helper.make_sequence_type_proto(tensor), helper.make_optional_type_proto(tensor)):
        found = from_proto(proto)
        assert found is not None
        assert type_proto(found, None) == proto
    dims = (2, "N", None)
    made = type_proto(tensor_type(elem_type, (7, 8, 9)), dims)
    assert from_proto(made) == tensor_type(elem_type, dims)
    assert fixed_dims(made) == [2]


@pytest.mark.parametrize(
    "kind",
    [
        "optional(seq(tensor(float)))",
        "sparse_tensor(float)",
        "map(int64,tensor(float))",
        "opaque()",
    ],
)
def test_types_of_which_nothing_can_be_drawn(kind: str) -> None:
    with pytest.raises(UncheckableError) as caught:
        type_proto(ValueType(kind, 0, None), None)
    assert str(caught.value) == f"values of type {kind} cannot be drawn"


def test_sizes_that_are_mentioned() -> None:
    inner = helper.make_graph([helper.make_node("Elu", ["a"], ["b"], alpha=1.0)], "g", [], [])
    inner.node[0].attribute.append(helper.make_attribute("ints", [11, 12]))
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=inner),
        helper.make_node("Concat", ["x"], ["z"], axis=13),
    ]
    nodes[1].attribute.append(
        helper.make_attribute("t", helper.make_tensor("t", TensorProto.INT64, [2], [14, 15]))
    )
    found = mentioned_integers(nodes, [np.array([[16, 17]]), np.zeros(18, np.float32)])
    assert {11, 12, 13, 14, 15, 16, 17, 18} <= found
    assert 19 not in found


@pytest.mark.parametrize(
    ("array", "keeps"),
    [
        (np.zeros(3, np.float32), True),
        (np.zeros(10_000_000, np.float32), False),
        (np.zeros(10_000_000, np.int64), False),
        (np.zeros(50, np.int64), True),
    ],
)
def test_which_constants_keep_their_values(array: np.ndarray, keeps: bool) -> None:
    assert keeps_value(array) == keeps


def test_a_type_without_dims_has_no_fixed_ones() -> None:
    assert fixed_dims(TypeProto()) == []
