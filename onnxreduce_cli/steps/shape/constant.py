"""Constant: 9 added all dtypes but floats, 11 `sparse_value`, 12 `value_int` to `value_strings`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import FLOATS
from onnxreduce_cli.model.file.tensors import MOST_ELEMENTS
from onnxreduce_cli.model.graph.values import CONSTANT_DTYPES, dtype_name, exactly_in
from onnxreduce_cli.steps.registry import down, instead


def _as_tensor(context: Context, names: tuple[str, ...]) -> None:
    """Replace those of the named attributes that the node has by a tensor of the same value."""
    present = [name for name in names if context.attribute(name) is not None]
    if not present:
        return
    array = context.constant(context.node.output[0])
    if array is None:
        context.value(present[0])  # Raises where callers set it differently.
        raise Blocked(
            f"its attribute {present[0]!r} came later and its value is not one known tensor",
            "write it as a tensor, in the attribute 'value'",
        )
    tensor = numpy_helper.from_array(array)
    context.replace(drop=names, value=tensor)


@down(
    "Constant",
    12,
    "value_int, value_floats, ...: a tensor of the same value",
    blocks="the value is not known",
)
def scalars_to_tensor(context: Context) -> None:
    """``Constant<value_ints=[1, 2]>`` becomes ``Constant<value=tensor>``."""
    _as_tensor(context, tuple(CONSTANT_DTYPES))


@down(
    "Constant",
    11,
    "sparse_value: the dense tensor of the same value, a large one made when the model runs",
    blocks="it has more than 65536 values",
)
def sparse_to_dense(context: Context) -> None:
    """``Constant<sparse_value=...>`` becomes ``Constant<value=tensor>``, a large one
    ``Reshape(ScatterElements(ConstantOfShape([size]), indices, values), dims)``.
    """
    sparse = context.value("sparse_value")
    if sparse is None:
        return
    size = math.prod(sparse.dims)
    if size <= MOST_ELEMENTS or max(sparse.values.dims, default=0) > MOST_ELEMENTS:
        _as_tensor(context, ("sparse_value",))
        return
    context = context.at(11)  # It introduced ScatterElements.
    op = context.op
    values, indices = (numpy_helper.to_array(item) for item in (sparse.values, sparse.indices))
    if indices.ndim == 2:
        indices = np.ravel_multi_index(tuple(indices.T), tuple(sparse.dims))
    zero = numpy_helper.from_array(np.zeros(1, values.dtype))
    length = context.array([size], "size")
    zeros = op.ConstantOfShape(length, value=zero)
    scattered = [
        context.array(array, hint)
        for array, hint in ((indices.astype(np.int64), "indices"), (values, "values"))
    ]
    flat = op.ScatterElements(zeros, *scattered, axis=0)
    context.replace("Reshape", [flat, context.array(list(sparse.dims), "shape")], keep=())


@down(
    "Constant",
    9,
    "dtypes other than floats: an initializer, or a Cast of doubles",
    blocks="it is a string in a function, or in a subgraph before IR version 4",
)
def floats_only(context: Context) -> None:
    """``Constant<value=int64 tensor>`` becomes an initializer of the graph.

    Where there are none, in a function or before IR version 4 where they would be graph inputs
    too, it becomes ``Cast<int64>(Constant<value=double tensor>)`` if that is exact. Else it becomes
    such an input of the main graph; in other graphs ``Add(Mul(high, 2**32), low)`` of such Casts.
    """
    tensor = context.value("value")
    if tensor is None or tensor.data_type in FLOATS:
        return
    if context.has_initializers:
        context.move_to_initializer(tensor)
        return
    array = context.constant(context.node.output[0])
    double = None
    if array is not None and array.dtype.kind not in "cO":
        double = exactly_in(array, TensorProto.DOUBLE)
    if double is None and context.in_main_graph:
        context.move_to_initializer(tensor)
        return
    if array is not None and double is None and array.dtype.kind in "iu":
        _sum_of_doubles(context, array, tensor.data_type)
        return
    if double is None:
        raise Blocked(
            f"before opset 9 only an initializer holds {dtype_name(tensor.data_type)}, which "
            "before IR version 4 is an input of the graph too",
            "use IR version 4 or later",
        )
    output = context.node.output[0]
    wide = context.replace(
        outputs=[context.fresh("double")], value=numpy_helper.from_array(double)
    ).output[0]
    cast(context, wide, tensor.data_type, [output])


@instead("Identity", {"constant operand"}, "the constant itself")
def identity_of_constant(context: Context) -> None:
    """``y = Identity(c)`` becomes a constant y with the value of c."""
    if context.in_main_graph and context.node.output[0] in context.scope.outputs:
        raise Blocked("the output of the model is the same in every run")
    tensor = context.tensor(context.input(0))
    if tensor is None:
        raise Blocked(
            "a caller may override the constant", "mend the model: leave it out of the inputs"
        )
    if context.has_initializers:
        context.move_to_initializer(tensor)
    else:
        context.replace("Constant", [], keep=(), value=tensor)


def _sum_of_doubles(context: Context, array: npt.NDArray[Any], elem_type: int) -> None:
    """Replace a Constant of 64-bit integers by a sum of two summands that double represents.

    Args:
        context: the context of the node.
        array: its value, int64 or uint64.
        elem_type: that dtype.
    """
    unit = np.array(2**32, array.dtype)
    high, factor, low = (
        cast(context, context.array(number.astype(np.float64), "double"), elem_type)
        for number in (array // unit, unit, array % unit)
    )
    context.replace("Add", [context.op.Mul(high, factor), low], keep=())
