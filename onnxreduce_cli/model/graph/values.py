"""The type of a value as far as it is known: its kind, dtype and dimensions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt
from onnx import (
    FunctionProto,
    GraphProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
    helper,
)

from onnxreduce_cli.errors import InvalidModelError, UsageError
from onnxreduce_cli.text import did_you_mean, quoted

#: Dimensions: an int where known, a name where symbolic, None where nothing is known.
Dims = tuple[int | str | None, ...]

#: The limits of a dtype of NumPy or ml_dtypes; NumPy's own functions do not know the latter. They
#: have no annotations.
finfo: Any = ml_dtypes.finfo
iinfo: Any = ml_dtypes.iinfo

#: The most dimensions that an array of NumPy has.
MOST_DIMS = 64

#: The dtypes of the attributes that hold a Constant's value other than as a tensor.
CONSTANT_DTYPES: dict[str, npt.DTypeLike] = {
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_string": object,
    "value_strings": object,
}


#: Short names of kinds of numbers, which their bits follow: ``fp16``.
_SHORT = {"float": ("f", "fp"), "bfloat": ("bf",), "int": ("i",), "uint": ("u",)}


class ValueType(NamedTuple):
    """The type of one value.

    Attributes:
        kind: the type as schemas spell it, such as ``tensor(float)`` or ``seq(tensor(int64))``.
        elem_type: `TensorProto.DataType` of a dense tensor; 0 for everything else.
        dims: a dense tensor's dimensions; None where the rank is unknown.
    """

    kind: str
    elem_type: int
    dims: Dims | None

    @property
    def rank(self) -> int | None:
        """The number of dimensions, if known."""
        return None if self.dims is None else len(self.dims)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to infer: all dimensions known, or no dense tensor."""
        if not self.elem_type:
            return True
        return self.dims is not None and all(isinstance(dim, int) for dim in self.dims)

    def contradicts(self, other: ValueType) -> bool:
        """Return whether no value has the shapes of both types."""
        if self.dims is None or other.dims is None:
            return False
        return len(self.dims) != len(other.dims) or any(
            isinstance(a, int) and isinstance(b, int) and a != b
            for a, b in zip(self.dims, other.dims, strict=True)
        )

    def to_proto(self) -> TypeProto:
        """Return the type as a protobuf message (dense tensors only)."""
        return helper.make_tensor_type_proto(self.elem_type, self.dims)


def dtype_name(elem_type: int) -> str:
    """Return a dtype as schemas spell it: ``float``, ``int64``, ``bfloat16``.

    Raises:
        InvalidModelError: there is no such dtype, or the installed onnx does not know it.
    """
    try:
        return str(TensorProto.DataType.Name(elem_type)).lower()
    except ValueError as error:
        raise InvalidModelError(
            f"the model has values of element type {elem_type}, which the installed onnx does not "
            "know; pip install -U onnx, or mend the model: give them another one"
        ) from error


@cache
def _spelled_dtypes() -> dict[str, int]:
    """Return dtypes by their names: of ONNX, of NumPy, and short ones as ``fp16`` and ``i64``."""
    numbers = [number for number in TensorProto.DataType.values() if number]
    named = {numpy_dtype(number).name: number for number in numbers if number != TensorProto.STRING}
    short = {
        f"{begun}{name.removeprefix(kind)}": number
        for name, number in named.items()
        for kind, begins in _SHORT.items()
        for begun in begins
        if name.removeprefix(kind).isdigit()
    }
    own = {dtype_name(number): number for number in numbers}
    return {"half": TensorProto.FLOAT16, **short, **named, **own}


def parse_dtype(text: str) -> int:
    """Return the dtype that a name stands for: ``float``, ``float32`` and ``fp32`` are the same.

    Raises:
        UsageError: there is no such dtype.
    """
    known = _spelled_dtypes()
    number = known.get(text.strip().lower())
    if number is None:
        names = sorted({dtype_name(item) for item in known.values()})
        hint = did_you_mean(text, known) or f"; there are {', '.join(names)}"
        raise UsageError(f"there is no dtype {quoted(text)}{hint}")
    return number


def elem_type_of(kind: str) -> int | None:
    """Return the dtype of a type as schemas spell it; None if it is no dense tensor."""
    if not kind.startswith("tensor("):
        return None
    return int(TensorProto.DataType.Value(kind[len("tensor(") : -1].upper()))


def tensor_type(elem_type: int, dims: Dims | None) -> ValueType:
    """Return the type of a dense tensor."""
    return ValueType(f"tensor({dtype_name(elem_type)})", elem_type, dims)


def numpy_dtype(elem_type: int) -> np.dtype:
    """Return the dtype of NumPy or ml_dtypes for a tensor element type."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))


def narrows(before: int, after: int) -> bool:
    """Return whether a dtype does not hold all values of another."""
    return not np.can_cast(numpy_dtype(before), numpy_dtype(after), "safe")


@cache
def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is a float of any size, those of ml_dtypes included."""
    return dtype.name.startswith(("float", "bfloat"))


def zeros(elem_type: int, dims: tuple[int, ...] = ()) -> npt.NDArray[Any]:
    """Return a tensor of zeros, or of empty strings."""
    value = "" if elem_type == TensorProto.STRING else 0
    return np.full(dims, value).astype(numpy_dtype(elem_type))


def exactly_in(array: npt.NDArray[Any], elem_type: int) -> npt.NDArray[Any] | None:
    """Return numbers in another dtype; None where it cannot represent one. NaN stays NaN.

    Args:
        array: the numbers; no strings.
        elem_type: the dtype, a float that double holds.
    """
    with np.errstate(over="ignore"):
        converted = array.astype(numpy_dtype(elem_type))
    if array.dtype.kind in "iu":
        # Compared as Python's numbers: a float next to the end of int64 may be beyond it, and the
        # result of casting it back depends on the processor.
        wide = converted.astype(np.float64).astype(object)
        return converted if np.array_equal(wide, array.astype(object)) else None
    back = converted.astype(array.dtype)
    same = (back == array) | ((back != back) & (array != array))
    return converted if same.all() else None


def from_proto(proto: TypeProto) -> ValueType | None:
    """Return the value type that a protobuf message states; None where it states no dtype."""
    return _from_content(proto.SerializeToString())


@lru_cache(1 << 12)  # Many values have one type.
def _from_content(content: bytes) -> ValueType | None:
    proto = TypeProto.FromString(content)
    kind = kind_of(proto)
    if kind is None:
        return None
    if proto.WhichOneof("value") != "tensor_type":
        return ValueType(kind, 0, None)
    tensor = proto.tensor_type
    if not tensor.HasField("shape"):
        return ValueType(kind, tensor.elem_type, None)
    return ValueType(kind, tensor.elem_type, tuple(map(_dim, tensor.shape.dim)))


def _dim(dim: TensorShapeProto.Dimension) -> int | str | None:
    """Return a dimension's size or name; None where it has neither, or a name not of UTF-8."""
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return dim.dim_param if dim.dim_param and isinstance(dim.dim_param, str) else None


def stated_in(container: GraphProto | FunctionProto) -> Iterable[ValueInfoProto]:
    """Return the value_info of a graph or a function; of a graph, its inputs and outputs too."""
    if isinstance(container, FunctionProto):
        return container.value_info
    return (*container.input, *container.output, *container.value_info)


def forget_negative_dims(infos: Iterable[ValueInfoProto]) -> None:
    """Clear, in place, dimensions that are negative numbers, as they are unknown.

    Some exporters write -1 for them, and shape inference would compute with it.
    """
    for info in infos:
        if _states_negative_dims(info.type.SerializeToString()):
            for dim in info.type.tensor_type.shape.dim:
                if dim.dim_value < 0:
                    dim.ClearField("dim_value")


@lru_cache(1 << 12)
def _states_negative_dims(content: bytes) -> bool:
    proto = TypeProto.FromString(content)
    return proto.WhichOneof("value") == "tensor_type" and any(
        dim.dim_value < 0 for dim in proto.tensor_type.shape.dim
    )


def kind_of(proto: TypeProto) -> str | None:
    """Return the type as schemas spell it; None where the model does not state it."""
    which = proto.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        elem_type = getattr(proto, which).elem_type
        if not elem_type:
            return None
        prefix = "sparse_tensor" if which == "sparse_tensor_type" else "tensor"
        return f"{prefix}({dtype_name(elem_type)})"
    if which == "sequence_type":
        inner = kind_of(proto.sequence_type.elem_type)
        return inner and f"seq({inner})"
    if which == "optional_type":
        inner = kind_of(proto.optional_type.elem_type)
        return inner and f"optional({inner})"
    if which == "map_type":
        inner = kind_of(proto.map_type.value_type)
        return inner and f"map({dtype_name(proto.map_type.key_type)},{inner})"
    return None


def merge(first: ValueType | None, second: ValueType | None) -> ValueType | None:
    """Return two types of one value combined; the first takes precedence where they differ."""
    if first is None or second is None:
        return first or second
    if first.kind != second.kind or second.dims is None:
        return first
    if first.dims is None:
        return second
    if len(first.dims) != len(second.dims):
        return first
    dims = tuple(
        a if isinstance(a, int) else b if isinstance(b, int) else a or b
        for a, b in zip(first.dims, second.dims, strict=True)
    )
    return ValueType(first.kind, first.elem_type, dims)


def common_type(types: list[ValueType | None]) -> ValueType | None:
    """Return the type that covers all of `types`; None where a kind is unknown or differs."""
    known = [value for value in types if value is not None]
    if not known or len(known) < len(types) or len({value.kind for value in known}) > 1:
        return None
    first = known[0]
    if any(value.rank != first.rank for value in known) or first.dims is None:
        return ValueType(first.kind, first.elem_type, None)
    columns = zip(*(value.dims or () for value in known), strict=True)
    dims = tuple(dims[0] if len(set(dims)) == 1 else None for dims in columns)
    return ValueType(first.kind, first.elem_type, dims)
