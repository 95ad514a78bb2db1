"""The types of what a site is given: as in the model, but large dimensions made small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy.typing as npt
from onnx import NodeProto, TensorProto, TypeProto, helper, numpy_helper

from onnxreduce_cli.engine.pairs.pair import UncheckableError
from onnxreduce_cli.model.scope import subgraphs
from onnxreduce_cli.model.values import MOST_DIMS, ValueType

Array = npt.NDArray[Any]

#: Tensors of integers up to this size may hold a dimension.
MOST_INTEGERS = 1024

#: Constants up to this size keep their values; of larger ones only small integers do.
_SMALL = 16


class SmallDims:
    """Makes dimensions small, equal ones alike, those that the nodes mention left alone."""

    def __init__(self, mentioned_integers: set[int], full: bool) -> None:
        """Prepare for a site whose nodes mention some integers; `full` leaves all as they are."""
        self._mentioned = mentioned_integers
        self._full = full
        self._free = (size for size in count(5) if size not in mentioned_integers)
        self._chosen: dict[int, int] = {}
        self._symbols: dict[str, str] = {}

    def __call__(self, dim: int | str | None) -> int | str | None:
        """Return the dimension that takes the place of `dim`."""
        if isinstance(dim, str):
            return self._symbols.setdefault(dim, f"d{len(self._symbols)}")
        return None if dim is None else self.size(dim)

    def size(self, dim: int) -> int:
        """Return the size that takes the place of a known one."""
        if self._full or dim <= 8 or dim in self._mentioned:
            return dim
        if dim not in self._chosen:
            self._chosen[dim] = next(self._free)
        return self._chosen[dim]


def type_proto(found: ValueType, dims: Sequence[int | str | None] | None) -> TypeProto:
    """The type of an input, with these dimensions if it is a tensor.

    Raises:
        UncheckableError: nothing of this type can be drawn.
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
    """Return whether a constant keeps its value where large ones are drawn."""
    return array.size <= _SMALL or (array.dtype.kind in "biuO" and array.size <= MOST_INTEGERS)


def fixed_dims(proto: TypeProto) -> list[int]:
    """The dimensions of a tensor that are numbers."""
    return [dim.dim_value for dim in proto.tensor_type.shape.dim if dim.HasField("dim_value")]


def mentioned_integers(nodes: list[NodeProto], arrays: Iterable[Array]) -> set[int]:
    """The integers that attributes and constants mention: a dimension may be among them."""
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
