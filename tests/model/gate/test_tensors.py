"""What is wrong with tensors that a model stores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import SparseTensorProto, TensorProto, numpy_helper

from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.file.tensors import MOST_ELEMENTS
from onnxreduce_cli.model.gate.tensors import sparse_tensor_problem, tensor_problem


def sparse(values: Any, indices: Any, dims: list[int]) -> SparseTensorProto:
    return SparseTensorProto(
        values=numpy_helper.from_array(np.array(values, np.float32), "v"),
        indices=numpy_helper.from_array(np.asarray(indices), "i"),
        dims=dims,
    )


@pytest.mark.parametrize(
    ("values", "indices", "dims", "expected"),
    [
        ([5, 7], [0, 3], [2, 2], None),
        ([5, 7], [[0, 0], [1, 1]], [2, 2], None),
        ([], np.zeros(0, np.int64), [2, 2], None),
        ([], np.zeros((0, 2), np.int64), [2, 2], None),
        ([5], [0], [], None),
        ([5], np.zeros((1, 0), np.int64), [], None),
        ([5, 7], [0, 4], [2, 2], "has indices beyond its dimensions [2, 2]"),
        ([5, 7], [0, -1], [2, 2], "has indices beyond its dimensions [2, 2]"),
        ([5, 7], [[0, 0], [1, 2]], [2, 2], "has indices beyond its dimensions [2, 2]"),
        ([5], [1 << 62], [1 << 40, 1 << 40], None),
        ([5], [0], [2, -1], "has dimensions below 0: [2, -1]"),
        ([5, 7], [0], [2, 2], "has [1] indices for [2] values"),
        ([5, 7], [[0], [1]], [2, 2], "has [2, 1] indices for [2] values"),
        ([[5, 7]], [0, 1], [2, 2], "has [2] indices for [1, 2] values"),
        (5, [0], [2, 2], "has [1] indices for [] values"),
        ([5], np.zeros(1, np.int32), [2, 2], "has indices of int32"),
    ],
)
def test_sparse_tensors(values: Any, indices: Any, dims: list[int], expected: str | None) -> None:
    assert sparse_tensor_problem(sparse(values, indices, dims)) == expected


def test_sparse_tensors_whose_parts_are_wrong() -> None:
    found = sparse([5], [0], [2])
    found.indices.raw_data = b"\0"
    assert sparse_tensor_problem(found) == "has data that does not fit its dimensions [1] of int64"
    found = sparse([5], [0], [2])
    found.values.data_type = 0
    assert sparse_tensor_problem(found) == "has no element type"


def test_what_may_not_be_read_is_not_looked_at() -> None:
    """Data in other files, and what is too large for steps to read."""
    found = sparse([5], [9], [2])
    found.indices.ClearField("raw_data")
    found.indices.data_location = TensorProto.EXTERNAL
    found.indices.external_data.add(key="location", value="i.bin")
    assert sparse_tensor_problem(found) is None
    count = MOST_ELEMENTS + 1
    assert sparse_tensor_problem(sparse(np.ones(count), np.full(count, 9), [2])) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("w.bin", None),
        ("w\0.bin", "names external data 'w\\x00.bin', and no file has such a name"),
        (b"w\xff.bin", "names external data b'w\\xff.bin', which is not UTF-8"),
    ],
)
def test_names_of_external_data(value: str | bytes, expected: str | None) -> None:
    tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    name = value if isinstance(value, str) else "w#.bin"
    tensor.external_data.add(key="location", value=name)
    if isinstance(value, bytes):
        # Protobuf sets no such text, but reads it.
        content = tensor.SerializeToString().replace(b"w#.bin", value)
        tensor = TensorProto.FromString(content)
    assert tensor_problem(tensor) == expected


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (TensorProto(data_type=1, dims=[2], float_data=[1, 2]), None),
        (TensorProto(data_type=1, dims=[2], float_data=[1]),
         "has data that does not fit its dimensions [2] of float"),
        (TensorProto(data_type=1, dims=[-2]), "has dimensions below 0: [-2]"),
        (TensorProto(dims=[2]), "has no element type"),
        (TensorProto(data_type=1, dims=[1] * 70, float_data=[1]), None),
        (TensorProto(data_type=1, dims=[MOST_ELEMENTS * 5], float_data=[1]),
         f"has data that does not fit its dimensions [{MOST_ELEMENTS * 5}] of float"),
        (TensorProto(data_type=1, dims=[MOST_ELEMENTS * 5], raw_data=b"1"), None),
        (TensorProto(data_type=1, dims=[1 << 40], raw_data=b"1"),
         f"has data that does not fit its dimensions [{1 << 40}] of float"),
        (TensorProto(data_type=1, dims=[7] * 30),
         f"has data that does not fit its dimensions [{'7, ' * 18}7,... of float"),
    ],
)  # fmt: skip
def test_tensors(tensor: TensorProto, expected: str | None) -> None:
    assert tensor_problem(tensor) == expected


def test_a_dtype_that_onnx_does_not_know() -> None:
    with pytest.raises(InvalidModelError, match="element type 99, which the installed onnx"):
        tensor_problem(TensorProto(data_type=99, dims=[1]))
