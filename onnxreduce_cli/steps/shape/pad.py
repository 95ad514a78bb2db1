"""Pad: 2, 11, 13, 18 and 19.

- 2 renamed `paddings` to `pads`.
- 11 made `pads` and `value` inputs, 13 added bool, strings and complex numbers.
- 18 added `axes`, 19 the mode wrap.

Pads, axes and sizes that are only known at run time are in `pad_at_run_time`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from onnx import TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.axes import ints_to_constant, known_axes, non_negative_axes
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_shape
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import list_elements, size_of
from onnxreduce_cli.model.graph.values import exactly_in, numpy_dtype
from onnxreduce_cli.steps.registry import down, up
from onnxreduce_cli.steps.shape.pad_at_run_time import pads_of_axes_at_run_time, source_indices
from onnxreduce_cli.steps.widening import wider_dtype

#: An end that means the whole axis; every opset takes it.
_END = int(np.iinfo(np.int32).max)


@up("Pad", 2, "paddings: renamed to pads")
def paddings_to_pads(context: Context) -> None:
    """``Pad<paddings=[0, 1]>(x)`` becomes ``Pad<pads=[0, 1]>(x)``."""
    context.replace(drop=("paddings",), pads=context.attribute("paddings"))


@down("Pad", 2, "pads: renamed to paddings; negative ones become a Slice")
def pads_to_paddings(context: Context) -> None:
    """``Pad<pads=[-1, 2]>(x)`` becomes ``Pad<paddings=[0, 2]>(Slice<starts=[1]>(x))``."""
    pads = context.value("pads")
    if all(pad >= 0 for pad in pads):
        context.replace(drop=("pads",), paddings=context.attribute("pads"))
        return
    rank = len(pads) // 2
    starts = [max(0, -pad) for pad in pads[:rank]]
    ends = [pad if pad < 0 else _END for pad in pads[rank:]]
    cropped = context.op.Slice(context.input(0), starts=starts, ends=ends)
    paddings = [max(0, pad) for pad in pads]
    context.replace(inputs=[cropped], drop=("pads",), paddings=paddings)


@up("Pad", 11, "pads and value: attributes to inputs")
def pads_to_inputs(context: Context) -> None:
    """``Pad<pads=[0, 1], value=2.0>(x)`` becomes ``Pad(x, [0, 1], 2.0)``."""
    inputs = [context.input(0), ints_to_constant(context, "pads")]
    value = context.value("value", 0.0)
    if value != 0.0 and context.value("mode", "constant") == "constant":
        elem_type = context.need_elem_type(context.input(0), "the value gets the same")
        with np.errstate(over="ignore"):
            inputs.append(context.array(np.array(value, numpy_dtype(elem_type)), "value"))
    context.replace(inputs=inputs, drop=("pads", "value"))


@down(
    "Pad",
    11,
    "pads and value: inputs to attributes, or elements concatenated or gathered",
    blocks=f"neither the pads nor the rank are known, or {NO_COUNTING}",
)
def pads_to_attributes(context: Context) -> None:
    """``Pad(x, [0, 1], 2.0)`` becomes ``Pad<pads=[0, 1], value=2.0>(x)``.

    Where pads or value are only known at run time, or no attribute can represent the value, and for
    dtypes that Pad did not take, it is written out along each axis; see `_along_axes`.
    """
    pads, value = known_axes(context), _value_of_attribute(context)
    if pads is not None and value is not None and _takes_dtype(context):
        constant_mode = context.input(2) and context.value("mode", "constant") == "constant"
        context.replace(
            inputs=[context.input(0)], pads=pads, value=value if constant_mode else None
        )
        return
    _along_axes(context, context.input(1))


def _value_of_attribute(context: Context) -> float | None:
    """Return the value to pad with as a float that equals it; None where there is none."""
    if not context.input(2) or context.value("mode", "constant") != "constant":
        return 0.0
    constant = context.constant(context.input(2))
    if constant is None or constant.dtype.kind not in "biuf":
        return None
    single = exactly_in(constant.reshape(-1)[:1], TensorProto.FLOAT)
    return None if single is None else float(single[0])


def _takes_dtype(context: Context) -> bool:
    """Return whether Pad of the target takes the data's dtype, or a wider one."""
    elem_type, type_string = context.elem_type(context.input(0)), context.kind(context.input(0))
    allowed = schemas.allowed_types("Pad", context.op.opset)["in0"]
    if elem_type is None or type_string in allowed:
        return True
    if elem_type == TensorProto.BFLOAT16:
        return True  # Below 13 nothing takes it; the error shall name Pad.
    return wider_dtype("Pad", elem_type, allowed, context.op.opset) is not None


@down(
    "Pad",
    13,
    "unchanged; strings and complex numbers: elements concatenated along each axis",
    blocks=f"neither the pads nor the rank are known, or {NO_COUNTING}",
)
def other_dtypes(context: Context) -> None:
    """``Pad(x, [0, 1], "-")`` of strings becomes ``Concat(x, Expand("-", [1]))``."""
    if not _takes_dtype(context):
        _along_axes(context, context.input(1))


@down("Pad", 18, "axes: merged into pads", blocks=NO_COUNTING)
def pads_of_every_axis(context: Context) -> None:
    """``Pad(x, [1, 2], "", [1])`` with x of rank 2 becomes ``Pad(x, [0, 1, 0, 2])``."""
    if context.input(3):
        context.replace(inputs=[context.input(0), _pads_of_all_axes(context), context.input(2)])


def _pads_of_all_axes(context: Context) -> Value:
    """Return the pads of a node that has axes, for all axes: int64 of shape [2 * rank]."""
    op = context.op
    rank = context.input(0).rank
    pads, axes = context.constant(context.input(1)), context.constant(context.input(3))
    if axes is None or rank is None:
        return pads_of_axes_at_run_time(context, rank)
    padded = list(non_negative_axes(tuple(axes.tolist()), rank))
    # For each pad of all axes its index among the node's pads, with a zero added after these.
    count = len(padded)
    sources = [padded.index(axis) if axis in padded else 2 * count for axis in range(rank)]
    sources += [count + at if at < count else at for at in sources]
    if pads is not None:
        return context.array([int([*pads.tolist(), 0][at]) for at in sources], "pads")
    extended = op.Concat(context.input(1), context.array([0], "zero"), axis=0)
    return op.Gather(extended, context.array(sources, "indices"), axis=0)


@down(
    "Pad",
    19,
    "mode wrap: the other end is put before and after",
    blocks=f"neither the pads nor the rank are known, or {NO_COUNTING}",
)
def pad_mode_wrap(context: Context) -> None:
    """``Pad<mode="wrap">(x, [2, 1])`` becomes ``Concat(x[-2:], x, x[:1])`` along each axis.

    Where the pads are not known to be within the axis, elements are gathered; see `_along_axes`.
    """
    if context.value("mode", "constant") == "wrap":
        pads = _pads_of_all_axes(context) if context.input(3) else context.input(1)
        _along_axes(context, pads)


# Written out along each axis


def _along_axes(context: Context, pads: str) -> None:
    """Pad the data along one axis after the other.

    ``Pad(x, [1, 0], v)`` becomes ``Concat(Expand(v, [1]), x)`` where the pads are known, and else
    ``Gather(Concat(x, Expand(v, [1])), indices)``, where indices past the end of x give the value.
    The other modes become a Gather, or where known pads wrap around a Concat.

    Args:
        context: the context of the node.
        pads: the pads of all axes, int64 of shape [2 * rank].
    """
    mode = context.value("mode", "constant")
    sides = _pads_by_axis(context, pads)
    steps = [axis for axis, side in enumerate(sides) if side != (0, 0)]
    data, output = context.input(0), context.node.output[0]
    if not steps:
        context.replace("Identity", [data], keep=())
    for axis in steps:
        last = axis == steps[-1]
        op_type, inputs = _along_axis(context, data, axis, sides[axis], mode, len(sides))
        if last:
            context.replace(op_type, inputs, [output], keep=(), axis=axis)
        else:
            data = context.op.emit(op_type, *inputs, axis=axis)


def _pads_by_axis(context: Context, pads: str) -> list[tuple[Number, Number]]:
    """Return the pads before and after each axis of `pads`, integers of shape [2 * rank]."""
    known = context.elements(pads)
    rank = context.input(0).rank if known is None else len(known) // 2
    if rank is None:
        rank = context.need_rank(context.input(0), f"its pads {pads!r} are not known either")

    numbers = list_elements(context, pads, 2 * rank)
    return list(zip(numbers[:rank], numbers[rank:], strict=True))


def _along_axis(
    context: Context, data: str, axis: int, sides: tuple[Number, Number], mode: str, rank: int
) -> tuple[Literal["Concat", "Gather"], list[str]]:
    """Return the operator that pads one axis, and its inputs.

    Args:
        context: the context of the node.
        data: the tensor to pad, of any dtype.
        axis: the axis, counted from the front.
        sides: the pads before and after it; negative ones crop.
        mode: the node's mode.
        rank: the rank of the data.
    """
    before, after = sides
    size = size_of(context, data, axis)
    if isinstance(before, int) and isinstance(after, int):
        most = size if mode == "wrap" and isinstance(size, int) else 0
        if mode == "constant":
            return "Concat", _between_values(context, data, axis, before, after, rank)
        if min(before, after) >= 0 and max(before, after) <= most:
            return "Concat", _between_ends(context, data, axis, before, after)
    if mode == "constant":
        value = _expanded(context, data, axis, 1, rank)
        data = context.op.Concat(data, value, axis=axis)
    return "Gather", [data, source_indices(context, size, before, after, mode)]


def _between_values(
    context: Context, data: str, axis: int, before: int, after: int, rank: int
) -> list[str]:
    """Return the inputs of a Concat: the value, the data and the value again.

    The data, of rank `rank`, is cropped where a pad is negative; all are of its dtype.
    """
    if min(before, after) < 0:
        data = _slice_of_axis(context, data, axis, max(0, -before), after if after < 0 else _END)
    parts = [
        _expanded(context, data, axis, before, rank) if before > 0 else "",
        data,
        _expanded(context, data, axis, after, rank) if after > 0 else "",
    ]
    return [part for part in parts if part]


def _between_ends(context: Context, data: str, axis: int, before: int, after: int) -> list[str]:
    """Return the inputs of a Concat: the end of the data, all of it, and its beginning again.

    The data is of any dtype and rank; all differ from it in size along `axis` only.
    """
    parts = [
        _slice_of_axis(context, data, axis, -before, _END) if before else "",
        data,
        _slice_of_axis(context, data, axis, 0, after) if after else "",
    ]
    return [part for part in parts if part]


def _slice_of_axis(context: Context, data: str, axis: int, start: int, end: int) -> Value:
    """Return the elements of the data from `start` to before `end` along an axis, in its dtype."""
    op = context.op
    if context.op.opset < 10:
        return op.Slice(data, starts=[start], ends=[end], axes=[axis])
    bounds = [
        context.array([value], hint)
        for value, hint in ((start, "start"), (end, "end"), (axis, "axis"))
    ]
    return op.Slice(data, *bounds)


def _expanded(context: Context, data: str, axis: int, count: int, rank: int) -> Value:
    """Return the value to pad with in the shape of the data, but `count` elements along an axis."""
    value = context.input(2)
    if not value:
        elem_type = context.need_elem_type(data, "it is padded with the zero of its dtype")
        zero = "" if elem_type == TensorProto.STRING else 0
        value = context.array(np.array(zero, numpy_dtype(elem_type)), "nothing")
    dims = [count if at == axis else size_of(context, data, at) for at in range(rank)]
    return context.op.Expand(value, as_shape(context, dims))
