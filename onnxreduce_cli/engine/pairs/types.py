"""The types of a pair's inputs: those of the source model, but with small dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy.typing as npt
from onnx import NodeProto, TensorProto, TypeProto, helper, numpy_helper

from onnxreduce_cli.engine.pairs.pair import UncheckableError
from onnxreduce_cli.model.graph.scope import subgraphs
from onnxreduce_cli.model.graph.values import MOST_DIMS, ValueType

Array = npt.NDArray[Any]

#: Tensors of integers up to this size may hold a dimension.
MOST_INTEGERS = 1024

#: Constants up to this size keep their values; of larger ones only small integers do.
_SMALL = 16


class SmallDims:
    """Maps dimensions to small ones, equal ones to equal ones; those that nodes mention stay."""

    def __init__(self, mentioned_integers: set[int], full: bool) -> None:
        """Prepare for a site whose nodes mention some integers; `full` keeps all dimensions."""
        self._mentioned = mentioned_integers
        self._full = full
        self._free = (size for size in count(5) if size not in mentioned_integers)
        self._chosen: dict[int, int] = {}
        self._symbols: dict[str, str] = {}

    def __call__(self, dim: int | str | None) -> int | str | None:
        """Return the dimension that replaces `dim`."""
        if isinstance(dim, str):
            return self._symbols.setdefault(dim, f"d{len(self._symbols)}")
        return None if dim is None else self.size(dim)

    def size(self, dim: int) -> int:
        """Return the size that replaces a known one."""
        if self._full or dim <= 8 or dim in self._mentioned:
            return dim
        if dim not in self._chosen:
            self._chosen[dim] = next(self._free)
        return self._chosen[dim]


def type_proto(found: ValueType, dims: Sequence[int | str | None] | None) -> TypeProto:
    """Return the type of an input, with these dimensions if it is a tensor.

    Raises:
        UncheckableError: values of this type cannot be drawn.
    """
    if found.elem_type:
        return helper.make_tensor_type_proto(found.elem_type, dims)
    for prefix in ("seq", "optional"):
        head = f"{prefix}(tensor("
        if found.kind.startswith(head):
            name = found.kind[len(head) : -2]
            inner = helper.make_tensor_type_proto(TensorProto.DataType.Value(name.upper()), None)
            make = {
                "seq": helper.make_sequence_type_proto,
                "optional": helper.make_optional_type_proto,
            }[prefix]
            result: TypeProto = make(inner)
            return result
    raise UncheckableError(f"values of type {found.kind} cannot be drawn")


def keeps_value(array: Array) -> bool:
    """Return whether a constant is small enough to keep its value, not to be drawn."""
    return array.size <= _SMALL or (array.dtype.kind in "biuO" and array.size <= MOST_INTEGERS)


def fixed_dims(proto: TypeProto) -> list[int]:
    """Return the fixed dimensions of a tensor type."""
    return [dim.dim_value for dim in proto.tensor_type.shape.dim if dim.HasField("dim_value")]


def mentioned_integers(nodes: list[NodeProto], arrays: Iterable[Array]) -> set[int]:
    """Return the integers in attributes and constants, which may be dimensions."""
    found: set[int] = set()
    for node in nodes:
        for attribute in node.attribute:
            found.update((attribute.i, *attribute.ints))
            if attribute.HasField("t") and len(attribute.t.dims) <= MOST_DIMS:
                found |= mentioned_integers([], [numpy_helper.to_array(attribute.t)])
        for _, graph in subgraphs(node):
            found |= mentioned_integers(list(graph.node), ())
    for array in arrays:
        found.update(array.shape)
        if array.dtype.kind in "iu" and array.size <= MOST_INTEGERS:
            found.update(int(number) for number in array.reshape(-1))
    return found
