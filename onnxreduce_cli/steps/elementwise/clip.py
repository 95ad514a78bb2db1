"""Clip: 13 defined min > max, 12 allowed integers, 11 made the limits inputs, 6 gave defaults.

The limits are read as float32, as the attributes of the versions before 11 are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.broadcast import broadcast_with
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.model.graph.values import exactly_in, finfo, numpy_dtype
from onnxreduce_cli.steps.registry import down, up

_LIMITS = ("min", "max")


def _type_limits(elem_type: int) -> tuple[float, float]:
    """Return the lowest and the highest finite number of a float type."""
    limits = finfo(numpy_dtype(elem_type))
    return float(limits.min), float(limits.max)


@up("Clip", 6, "consumed_inputs dropped; absent limits written where the type is not float")
def limits_of_type_written(context: Context) -> None:
    """``Clip(x)`` of float16 becomes ``Clip<min=-65504.0, max=65504.0>(x)``.

    The absent limits were those of the type, and are those of float from opset 6 on. No attribute
    can represent those of double: they become inputs, as from opset 11 on, or
    ``Min(Max(x, min), max)``.
    """
    values: dict[str, Any] = {}
    absent = [name for name in _LIMITS if context.attribute(name) is None]
    if absent:
        elem_type = context.need_elem_type(context.input(0), "its absent limits depend on it")
        limits = dict(zip(_LIMITS, _type_limits(elem_type), strict=True))
        if elem_type == TensorProto.DOUBLE:
            written = [context.value(name, limit) for name, limit in limits.items()]
            _as_inputs(context, [context.scalar(limit, "limit", elem_type) for limit in written])
            return
        if elem_type != TensorProto.FLOAT:
            values = {name: limits[name] for name in absent}
    if values or context.attribute("consumed_inputs") is not None:
        context.replace(drop=("consumed_inputs",), **values)


def _as_inputs(context: Context, limits: list[str]) -> None:
    """Replace a Clip's attributes by inputs as from opset 11 on, or the node by Max and Min.

    Args:
        context: the context of the node.
        limits: the lower and the upper limit, scalars of the data's dtype.
    """
    data, drop = context.input(0), ("consumed_inputs", *_LIMITS)
    if context.reaches(11):
        context = context.at(11)
        context.replace(inputs=[data, *limits], drop=drop)
        return
    low, high = (broadcast_with(context, limit, [data]) for limit in limits)
    context.replace("Min", [context.op.Max(data, low), high], drop=drop)


@down("Clip", 6, "the limits written out")
def limits_written_out(context: Context) -> None:
    """``Clip(x)`` becomes ``Clip<min=-3.4e38, max=3.4e38>(x)``: the defaults were each type's."""
    limits = _type_limits(TensorProto.FLOAT)
    absent: dict[str, Any] = {
        name: limit
        for name, limit in zip(_LIMITS, limits, strict=True)
        if context.attribute(name) is None
    }
    if absent:
        context.replace(**absent)


@up("Clip", 11, "limits: attributes to inputs")
def limits_to_inputs(context: Context) -> None:
    """``Clip<min=0.0, max=6.0>(x)`` becomes ``Clip(x, 0, 6)``.

    Absent limits are those of float, also for other types, for which they are written out.
    """
    purpose = "its limits get the same"
    elem_type = context.need_elem_type(context.input(0), purpose)
    dtype = numpy_dtype(elem_type)
    inputs: list[str] = [context.input(0)]
    for name, limit in zip(_LIMITS, _type_limits(TensorProto.FLOAT), strict=True):
        attribute = context.value(name)
        if attribute is None and elem_type == TensorProto.FLOAT:
            inputs.append("")
            continue
        with np.errstate(over="ignore"):  # Beyond float16 a limit is infinite: it limits nothing.
            value = np.array(limit if attribute is None else attribute, dtype)
        inputs.append(context.array(value, name))
    context.replace(inputs=inputs, drop=_LIMITS)


@down("Clip", 11, "limits: inputs to attributes, or Max and Min where float does not hold them")
def limits_to_attributes(context: Context) -> None:
    """``Clip(x, 0, 6)`` becomes ``Clip<min=0.0, max=6.0>(x)``.

    Limits that are no constants that float represents become ``Min(Max(x, min), max)``.
    """
    elem_type = context.need_elem_type(context.input(0), "its limits depend on it")
    values: dict[str, Any] = {}
    for index, (name, limit) in enumerate(zip(_LIMITS, _type_limits(elem_type), strict=True), 1):
        if context.input(index):
            bound = context.constant(context.input(index))
        elif elem_type == TensorProto.FLOAT:
            continue  # The attribute's default is the same.
        else:
            bound = np.array(limit)
        value = None if bound is None else _as_float(bound)
        if value is None:
            _max_and_min(context, elem_type)
            return
        values[name] = value
    context.replace(inputs=[context.input(0)], **values)


def _as_float(bound: Array) -> float | None:
    """Return a limit as the value of an attribute, or None where float32 cannot represent it."""
    single = exactly_in(bound.reshape(-1)[:1], TensorProto.FLOAT)
    return None if single is None or np.isnan(single[0]) else float(single[0])


def _max_and_min(context: Context, elem_type: int) -> None:
    """``Clip(x, min, max)`` becomes ``Min(Max(x, min), max)``; absent limits are the type's."""
    low, high = (
        context.input(index) or context.scalar(limit, "limit", elem_type)
        for index, limit in enumerate(_type_limits(elem_type), 1)
    )
    raised = context.op.Max(context.input(0), low)
    context.replace("Min", [raised, high])


@down("Clip", 12, "integers computed in double, which holds them, or chosen by Where")
def integers(context: Context) -> None:
    """``Clip(x, 0, 6)`` of int32 becomes ``Cast<int32>(Clip(Cast<double>(x), 0.0, 6.0))``.

    Of 64 bits it becomes ``Where(max < y, max, y)`` with y as ``Where(x < min, min, x)``.
    """
    op = context.op
    data, output = context.input(0), context.node.output[0]
    elem_type = context.need_elem_type(data, "integers came with opset 12")
    if elem_type not in INTEGERS:
        return
    if elem_type not in (TensorProto.INT64, TensorProto.UINT64):
        inputs = [name and cast(context, name, TensorProto.DOUBLE) for name in context.node.input]
        wide = context.replace(inputs=inputs, outputs=[context.fresh("double")]).output[0]
        cast(context, wide, elem_type, [output])
        return
    low, high = context.input(1), context.input(2)
    if low:
        below = op.Less(data, low)
        data = op.Where(below, low, data)
    if high:
        above = op.Less(high, data)
        context.replace("Where", [above, high, data])
    else:
        context.replace("Identity", [data])


@down("Clip", 13, "unchanged, or Max and Min where the limits are not known to be in order")
def ordered_limits(context: Context) -> None:
    """``Clip(x, 0, 6)`` stays as it is; what min > max gives was open before 13.

    Limits that may be out of order become ``Min(Max(x, min), max)``, as 13 says.
    """
    low, high = (context.input(index) for index in (1, 2))
    if not (low and high):
        return
    bounds = [context.constant(name) for name in (low, high)]
    if bounds[0] is None or bounds[1] is None or not np.all(bounds[0] <= bounds[1]):
        raised = context.op.Max(context.input(0), low)
        context.replace("Min", [raised, high])
