"""Constant folding of small integer computations on constants and known shapes.

Exporters compute axes and shapes with a handful of operators; this evaluates just those, exactly.
A shape may be known in part: each element carries whether it is known, and only operators that
move elements unchanged accept partly known operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxreduce_cli.model.file.tensors import MOST_ELEMENTS
from onnxreduce_cli.model.graph.values import Dims, numpy_dtype

Array = npt.NDArray[Any]
Attributes = dict[str, Any]


class Folded:
    """An array whose elements are known in whole or in part.

    Attributes:
        values: the array.
        constant: the same, if all of it is known; otherwise None.
    """

    __slots__ = ("_known", "constant", "values")

    def __init__(self, values: Array, known: Array | None = None) -> None:
        """Note an array, and which of its elements are known; None for all of them."""
        self.values = values
        self.constant = values if known is None or known.all() else None
        self._known = known

    @staticmethod
    def whole(values: Array) -> Folded:
        """Return an array that is known in full."""
        return Folded(values)

    @property
    def known(self) -> Array:
        """Which elements are known: bool, of the array's shape."""
        return np.ones(self.values.shape, bool) if self._known is None else self._known


def shape_of(dims: Dims) -> Folded:
    """Return the output of ``Shape`` for a tensor of these dimensions: int64 of [len(dims)]."""
    values = np.array([dim if isinstance(dim, int) else 0 for dim in dims], np.int64)
    return Folded(values, np.array([isinstance(dim, int) for dim in dims], bool))


def fold(
    op_type: str, opset: int, attributes: Attributes, inputs: Sequence[Folded | None]
) -> Folded | None:
    """Evaluate one operator; None where it is not supported or too little is known."""
    if any(item is not None and item.values.size > MOST_ELEMENTS for item in inputs):
        return None
    try:
        return _move(op_type, opset, attributes, inputs) or _compute(
            op_type, opset, attributes, inputs
        )
    except (LookupError, OverflowError, TypeError, ValueError):
        return None  # The operands do not fit the operator: the node cannot run either.


def _move(
    op_type: str, opset: int, attributes: Attributes, inputs: Sequence[Folded | None]
) -> Folded | None:
    mover = _MOVERS.get(op_type)
    if mover is None or not inputs:
        return None
    moved = inputs if op_type == "Concat" else inputs[:1]
    data = [item for item in moved if item is not None]
    arguments = [None if item is None else item.constant for item in inputs[len(moved) :]]
    unknown = any(
        item is not None and item.constant is None for item in inputs[len(moved) :]
    ) or len(data) < len(moved)
    move = None if unknown else mover(opset, attributes, arguments)
    if move is None:
        return None
    values = move([item.values for item in data])
    whole = all(item.constant is not None for item in data)
    return Folded(values, None if whole else move([item.known for item in data]))


def _compute(
    op_type: str, opset: int, attributes: Attributes, inputs: Sequence[Folded | None]
) -> Folded | None:
    compute = _COMPUTED.get(op_type)
    if compute is None or (opset < 7 and op_type in _BROADCASTING):
        return None
    constants = [item.constant for item in inputs if item is not None]
    if len(constants) < len(inputs) or any(item is None for item in constants):
        return None
    with np.errstate(all="ignore"):
        result = compute(attributes, *constants)
    if result is None or result.size > MOST_ELEMENTS:
        return None
    return Folded.whole(np.asarray(result))


Move = Callable[[list[Array]], Array]
Mover = Callable[[int, Attributes, list[Array | None]], Move | None]


def _axes(attributes: Attributes, arguments: list[Array | None]) -> tuple[int, ...] | None:
    """Return axes from the attribute (before opset 13) or from the input."""
    if arguments and arguments[0] is not None:
        return tuple(int(axis) for axis in arguments[0].reshape(-1))
    axes = attributes.get("axes")
    return None if axes is None else tuple(axes)


def _unsqueeze(_: int, attributes: Attributes, arguments: list[Array | None]) -> Move | None:
    axes = _axes(attributes, arguments)
    return None if axes is None else lambda data: np.expand_dims(data[0], axes)


def _squeeze(_: int, attributes: Attributes, arguments: list[Array | None]) -> Move:
    axes = _axes(attributes, arguments)
    return lambda data: np.squeeze(data[0], axes or None)


def _gather(_: int, attributes: Attributes, arguments: list[Array | None]) -> Move | None:
    indices = arguments[0]
    axis = attributes.get("axis", 0)
    return None if indices is None else lambda data: np.take(data[0], indices, axis)


def _concat(opset: int, attributes: Attributes, _: list[Array | None]) -> Move:
    axis = attributes.get("axis", 1 if opset < 4 else None)
    return lambda data: np.concatenate(data, axis)


def _span(size: int, start: int, end: int, step: int) -> slice:
    """Return a slice of one dimension, with limits clamped as Slice does and Python does not."""
    start, end = (limit + size if limit < 0 else limit for limit in (start, end))
    if step > 0:
        return slice(max(start, 0), max(end, 0), step)
    return slice(min(max(start, 0), size - 1), end if end >= 0 else None, step)


def _slice(opset: int, attributes: Attributes, arguments: list[Array | None]) -> Move | None:
    if opset < 10:
        parts = [attributes["starts"], attributes["ends"], attributes.get("axes"), None]
    else:
        given = [None if item is None else item.reshape(-1).tolist() for item in arguments]
        parts = [*given, None, None][:4]
    starts, ends, axes, steps = parts
    if starts is None or ends is None:
        return None
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps

    def move(data: list[Array]) -> Array:
        index: list[slice] = [slice(None)] * data[0].ndim
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
            index[axis] = _span(data[0].shape[axis], start, end, step)
        return data[0][tuple(index)]

    return move


def _reshape(opset: int, attributes: Attributes, arguments: list[Array | None]) -> Move | None:
    shape = attributes.get("shape") if opset < 5 else arguments[0]
    if shape is None:
        return None

    def move(data: list[Array]) -> Array:
        copied = [
            data[0].shape[i] if dim == 0 and not attributes.get("allowzero") else int(dim)
            for i, dim in enumerate(shape)
        ]
        return data[0].reshape(copied)

    return move


def _transpose(_: int, attributes: Attributes, __: list[Array | None]) -> Move:
    perm = attributes.get("perm")
    return lambda data: np.transpose(data[0], perm)


def _same(_: int, __: Attributes, ___: list[Array | None]) -> Move:
    return lambda data: data[0]


_MOVERS: dict[str, Mover] = {
    "Identity": _same,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Gather": _gather,
    "Concat": _concat,
    "Slice": _slice,
    "Reshape": _reshape,
    "Transpose": _transpose,
}


def _cast(attributes: Attributes, data: Array) -> Array | None:
    to = attributes.get("to")
    if not isinstance(to, int):
        return None
    dtype = numpy_dtype(to)
    # NumPy's own only: it neither saturates as Cast does to float8, nor writes strings.
    if any(item.kind not in "biuf" or item.isbuiltin != 1 for item in (dtype, data.dtype)):
        return None
    result: Array = data.astype(dtype)
    return result


def _bit_cast(attributes: Attributes, data: Array) -> Array | None:
    to = numpy_dtype(attributes["to"])
    # What NumPy keeps in a byte may have fewer bits.
    return data.view(to) if to.itemsize == data.dtype.itemsize > 1 else None


def _range(_: Attributes, start: Array, limit: Array, delta: Array) -> Array | None:
    if not delta.all():
        return None
    # The difference is taken in the dtype itself, as kernels do: it says how many there are.
    count = np.ceil((limit - start).item() / delta.item())
    if not count <= MOST_ELEMENTS:
        return None
    return np.asarray(start + np.arange(max(count, 0)).astype(start.dtype) * delta)


def _divide(_: Attributes, a: Array, b: Array) -> Array | None:
    if not np.issubdtype(a.dtype, np.integer):
        return a / b
    if not b.all():
        return None
    # Division of integers truncates towards zero; NumPy's floors.
    quotient = np.floor_divide(a, b)
    rounded_down = (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
    return np.asarray(quotient + rounded_down.astype(a.dtype))


def _mod(attributes: Attributes, a: Array, b: Array) -> Array | None:
    if not np.issubdtype(a.dtype, np.integer) or not b.all():
        return None
    return np.asarray(np.fmod(a, b) if attributes.get("fmod") else np.remainder(a, b))


def _trilu(attributes: Attributes, data: Array, k: Array | None = None) -> Array | None:
    if data.dtype.kind not in "biuf" or data.ndim < 2:
        return None
    part = np.triu if attributes.get("upper", 1) else np.tril
    return np.asarray(part(data, 0 if k is None else int(k.reshape(-1)[0])))


def _where(_: Attributes, condition: Array, a: Array, b: Array) -> Array:
    return np.asarray(np.where(condition, a, b))


def _non_zero(_: Attributes, a: Array) -> Array | None:
    # Of a scalar the definition gives no row, and ONNX Runtime one.
    return np.stack(np.nonzero(a)).astype(np.int64) if a.ndim else None


def _constant_of_shape(attributes: Attributes, shape: Array) -> Array | None:
    value = attributes.get("value", np.zeros(1, np.float32))
    if shape.size and np.prod(shape.astype(float)) > MOST_ELEMENTS:
        return None
    return np.full(shape.tolist(), value.reshape(-1)[0], value.dtype)


_BROADCASTING = frozenset({"Add", "Sub", "Mul", "Div", "Equal", "Less", "Greater"})

_COMPUTED: dict[str, Callable[..., Array | None]] = {
    "Cast": _cast,
    "BitCast": _bit_cast,
    "Range": _range,
    "Add": lambda _, a, b: np.add(a, b),
    "Sub": lambda _, a, b: np.subtract(a, b),
    "Mul": lambda _, a, b: np.multiply(a, b),
    "Div": _divide,
    "Neg": lambda _, a: np.negative(a),
    "Abs": lambda _, a: np.abs(a),
    "Not": lambda _, a: np.logical_not(a),
    "Equal": lambda _, a, b: np.equal(a, b),
    "Less": lambda _, a, b: np.less(a, b),
    "Greater": lambda _, a, b: np.greater(a, b),
    "Mod": _mod,
    "Trilu": _trilu,
    "Where": _where,
    "NonZero": _non_zero,
    "ConstantOfShape": _constant_of_shape,
}

#: The operators that `fold` evaluates. They are pure: a node that nothing reads can be removed.
OPERATORS = frozenset(_MOVERS) | frozenset(_COMPUTED)

#: The operators whose results are unknown where the first input is.
STRICT = OPERATORS - {"Concat"}
