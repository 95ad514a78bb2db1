"""The check of stored tensors: dtype, dimensions and data."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

from onnxreduce_cli.model.file.tensors import MOST_ELEMENTS
from onnxreduce_cli.model.gate.text import is_text
from onnxreduce_cli.model.graph.values import MOST_DIMS, dtype_name
from onnxreduce_cli.text import quoted

#: The most elements in a byte, or in a number of a list.
_PER_BYTE = 4

#: The most bytes of a protobuf message.
LARGEST = (1 << 31) - 1


def tensor_problem(tensor: TensorProto) -> str | None:
    """Return what is wrong with a tensor; None if nothing is.

    External data is not read, nor the data of tensors that are too large for steps to read.

    Raises:
        InvalidModelError: the installed onnx does not know its dtype.
    """
    if not is_text(tensor.name):
        return f"has a tensor of the name {quoted(tensor.name)}, which is not UTF-8"
    dims = list(tensor.dims)
    if any(dim < 0 for dim in dims):
        return f"has dimensions below 0: {_short(dims)}"
    dtype = dtype_name(tensor.data_type)
    if tensor.data_location == TensorProto.EXTERNAL:
        return _of_location(tensor)
    if not tensor.data_type:
        return "has no element type"
    size = prod(dims)
    fits = _may_fit(tensor, size) if size > MOST_ELEMENTS else _read(tensor, size) is not None
    return None if fits else f"has data that does not fit its dimensions {_short(dims)} of {dtype}"


def _may_fit(tensor: TensorProto, size: int) -> bool:
    """Return whether a large tensor can have data for `size` elements, without copying the data."""
    if tensor.HasField("raw_data"):
        return size <= LARGEST * _PER_BYTE
    data = getattr(tensor, helper.tensor_dtype_to_field(tensor.data_type))
    return bool(size <= len(data) * _PER_BYTE)


def sparse_tensor_problem(sparse: SparseTensorProto) -> str | None:
    """Return what is wrong with a sparse tensor; None if nothing is. See `tensor_problem`.

    Raises:
        InvalidModelError: the installed onnx does not know its dtype.
    """
    values, indices, dims = sparse.values, sparse.indices, list(sparse.dims)
    found = tensor_problem(values) or tensor_problem(indices)
    if found is not None or TensorProto.EXTERNAL in (values.data_location, indices.data_location):
        return found
    if any(dim < 0 for dim in dims):
        return f"has dimensions below 0: {_short(dims)}"
    count = prod(values.dims)
    if max(count, prod(indices.dims)) > MOST_ELEMENTS:
        return None
    if len(values.dims) != 1 or list(indices.dims) not in ([count], [count, len(dims)]):
        return f"has {_short(indices.dims)} indices for {_short(values.dims)} values"
    if indices.data_type != TensorProto.INT64:
        return f"has indices of {dtype_name(indices.data_type)}"
    places = _read(indices, prod(indices.dims))
    linear = len(indices.dims) == 1
    bounds = np.array([prod(dims)] if linear else dims, object)
    if places is None or not places.size:
        return None
    rows = places.reshape(count, -1).astype(object)
    if (rows < 0).any() or (rows >= bounds).any():
        return f"has indices beyond its dimensions {_short(dims)}"
    return None


def _read(tensor: TensorProto, size: int) -> np.ndarray | None:
    """Return a small tensor as an array; None where its data does not fit its dimensions."""
    if len(tensor.dims) > MOST_DIMS:
        # The same elements in one dimension.
        copy = TensorProto()
        copy.CopyFrom(tensor)
        copy.dims[:] = [size]
        tensor = copy
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError):
        return None


def _of_location(tensor: TensorProto) -> str | None:
    """Return what is wrong with a reference to external data; None if nothing is."""
    for entry in tensor.external_data:
        if not (is_text(entry.key) and is_text(entry.value)):
            return f"names external data {quoted(entry.value)}, which is not UTF-8"
        if "\0" in entry.value:
            return f"names external data {quoted(entry.value)}, and no file has such a name"
    return None


def _short(dims: object) -> str:
    text = str(list(dims))  # type: ignore[call-overload]
    return text if len(text) <= 60 else f"{text[:57]}..."
