"""Constant: 12 added `value_int` and its like, 11 `sparse_value`, 9 all dtypes but floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.model.values import dtype_name, numpy_dtype
from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down

_NEWER = ("value_int", "value_ints", "value_float", "value_floats", "value_string", "value_strings")


def _as_tensor(context: Context, names: tuple[str, ...]) -> None:
    """Write whichever of the named attributes is there as the tensor that it stands for."""
    given = [name for name in names if context.attribute(name) is not None]
    if not given:
        return
    array = context.constant(context.node.output[0])
    if array is None:
        raise Blocked(
            f"its attribute {given[0]!r} came later and its value is not one known tensor",
            "write it as a tensor, in the attribute 'value'",
        )
    tensor = numpy_helper.from_array(array)
    context.replace(drop=names, value=tensor)


@down("Constant", 12, "value_int, value_floats, ...: a tensor of the same value", blocks="unknown")
def scalars_to_tensor(context: Context) -> None:
    """``Constant<value_ints=[1, 2]>`` becomes ``Constant<value=tensor>``."""
    _as_tensor(context, _NEWER)


@down("Constant", 11, "sparse_value: the dense tensor of the same value", blocks="it is too large")
def sparse_to_dense(context: Context) -> None:
    """``Constant<sparse_value=...>`` becomes ``Constant<value=tensor>``."""
    _as_tensor(context, ("sparse_value",))


_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16})


@down(
    "Constant",
    9,
    "dtypes other than floats: an initializer, or a Cast of a double",
    blocks="it is a string, or an integer that double cannot hold, in an IR version before 4",
)
def floats_only(context: Context) -> None:
    """``Constant<value=int64 tensor>`` becomes an initializer of the graph.

    Where there are none, in a function or before IR version 4 where they would be graph inputs
    too, it becomes ``Cast<int64>(Constant<value=double tensor>)`` if that is exact.
    """
    attribute = context.attribute("value")
    if attribute is None or attribute.t.data_type in _FLOATS:
        return
    tensor = attribute.t
    if context.has_initializers:
        context.move_to_initializer(tensor)
        return
    array = context.constant(context.node.output[0])
    double = None if array is None else _exactly_double(array, tensor.data_type)
    if double is None:
        raise Blocked(
            f"before opset 9 a Constant holds floats only, and this {dtype_name(tensor.data_type)} "
            "one cannot be cast from double",
            "use IR version 4 or later, where it can be an initializer",
        )
    output = context.node.output[0]
    wide = context.replace(
        outputs=[context.fresh("double")], value=numpy_helper.from_array(double)
    ).output[0]
    cast(context, wide, tensor.data_type, [output])


def _exactly_double(array: npt.NDArray[Any], elem_type: int) -> npt.NDArray[np.float64] | None:
    """The array in double, if casting it back gives the same."""
    if elem_type == TensorProto.STRING:
        return None
    double = array.astype(np.float64)
    back = double.astype(numpy_dtype(elem_type))
    return double if np.array_equal(back, array) else None
