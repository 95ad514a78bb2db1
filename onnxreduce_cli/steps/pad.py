"""Pad: 2 renamed paddings, 11 made pads and value inputs, 18 added axes, 19 the mode wrap."""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto

from onnxreduce_cli.model.values import numpy_dtype
from onnxreduce_cli.steps.axes import ints_to_constant, known_axes, normalised
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down, up

#: An end that means the whole axis; every opset takes it.
_END = int(np.iinfo(np.int32).max)


@up("Pad", 2, "paddings: renamed to pads")
def paddings_to_pads(context: Context) -> None:
    """``Pad<paddings=[0, 1]>(x)`` becomes ``Pad<pads=[0, 1]>(x)``."""
    context.replace(drop=("paddings",), pads=context.attribute("paddings"))


@down(
    "Pad",
    2,
    "pads: renamed to paddings; negative ones become a Slice",
    blocks="some are negative in another mode than constant",
)
def pads_to_paddings(context: Context) -> None:
    """``Pad<pads=[-1, 2]>(x)`` becomes ``Pad<paddings=[0, 2]>(Slice<starts=[1]>(x))``."""
    pads = context.value("pads")
    data = context.input(0)
    if all(pad >= 0 for pad in pads):
        context.replace(drop=("pads",), paddings=context.attribute("pads"))
        return
    if context.value("mode", "constant") != "constant":
        raise Blocked(
            "it crops and pads in one, and before opset 2 pads may not be negative",
            "choose opset 2 or later",
        )
    rank = len(pads) // 2
    starts = [max(0, -pad) for pad in pads[:rank]]
    ends = [pad if pad < 0 else _END for pad in pads[rank:]]
    cropped = context.emit("Slice", [data], "cropped", starts=starts, ends=ends)
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
    "pads and value: inputs to attributes",
    blocks="they are only known at run time, or float does not hold the value",
)
def pads_to_attributes(context: Context) -> None:
    """``Pad(x, [0, 1], 2.0)`` becomes ``Pad<pads=[0, 1], value=2.0>(x)``."""
    pads = known_axes(context)
    if pads is None:
        raise Blocked(
            f"its pads {context.input(1)!r} are only known at run time, and before opset 11 they "
            "are an attribute",
            "make them a constant, or choose opset 11 or later",
        )
    value = None
    if context.input(2) and context.value("mode", "constant") == "constant":
        constant = context.constant(context.input(2))
        if constant is None:
            raise Blocked(
                f"its value {context.input(2)!r} is only known at run time, and before opset 11 "
                "it is an attribute",
                "make it a constant, or choose opset 11 or later",
            )
        with np.errstate(over="ignore"):
            single = constant.reshape(-1)[:1].astype(np.float32)
        back = single.astype(constant.dtype)
        if back.tobytes() != constant.reshape(-1)[:1].tobytes() and not np.isnan(single[0]):
            raise Blocked(
                f"its value {constant.item()} is no number that float can hold, as the attribute "
                "before opset 11 must",
                "choose opset 11 or later",
            )
        value = float(single[0])
    context.replace(inputs=[context.input(0)], pads=pads, value=value)


@down("Pad", 18, "axes: worked into pads", blocks="they or the rank are not known")
def pads_of_every_axis(context: Context) -> None:
    """``Pad(x, [1, 2], "", [1])`` with x of rank 2 becomes ``Pad(x, [0, 1, 0, 2])``."""
    if not context.input(3):
        return
    axes = context.constant(context.input(3))
    if axes is None:
        raise Blocked(
            f"its axes {context.input(3)!r} are only known at run time, and before opset 18 pads "
            "are given for every axis",
            "make them a constant",
        )
    rank = context.need_rank(context.input(0), "before opset 18 pads are given for every axis")
    named = list(normalised(tuple(axes.tolist()), rank))
    # Where each pad of the full list comes from; the place after the last holds a zero.
    count = len(named)
    sources = [named.index(axis) if axis in named else 2 * count for axis in range(rank)]
    sources += [count + at if at < count else at for at in sources]
    pads = context.constant(context.input(1))
    if pads is not None:
        full = context.array([int([*pads.tolist(), 0][at]) for at in sources], "pads")
    else:
        with_zero = [context.input(1), context.array([0], "zero")]
        extended = context.emit("Concat", with_zero, "extended", axis=0)
        places = context.array(sources, "places")
        full = context.emit("Gather", [extended, places], "pads", axis=0)
    context.replace(inputs=[context.input(0), full, context.input(2)])


@down(
    "Pad",
    19,
    "mode wrap: the other end is put before and after",
    blocks="the pads are only known at run time, or longer than their axes may be",
)
def wrapped(context: Context) -> None:
    """``Pad<mode="wrap">(x, [2, 1])`` becomes ``Concat(x[-2:], x, x[:1])`` along each axis."""
    if context.value("mode", "constant") != "wrap":
        return
    data = context.input(0)
    pads, axes = known_axes(context), known_axes(context, 3)
    if pads is None or isinstance(pads, AttributeProto) or axes is None:
        raise Blocked(
            "its mode 'wrap' came with opset 19, and its pads or axes are only known at run time",
            "make them constants, or choose opset 19 or later",
        )
    rank = context.need_rank(data, "its mode 'wrap' came with opset 19")
    known = context.type(data)
    dims = known.dims if known is not None and known.dims is not None else (None,) * rank
    named = context.constant(context.input(3)) if context.input(3) else np.arange(rank)
    if named is None:
        raise Blocked("its axes are an attribute of the function", "make them a constant")
    places = normalised(tuple(int(axis) for axis in named), rank)
    steps = []
    for at, axis in enumerate(places):
        before, after = pads[at], pads[at + len(places)]
        dim = dims[axis]
        if before == after == 0:
            continue
        if min(before, after) < 0 or not isinstance(dim, int) or max(before, after) > dim:
            raise Blocked(
                f"its mode 'wrap' came with opset 19, and its pads {before} and {after} are not "
                f"known to be within axis {axis} of size {dim}",
                "choose opset 19 or later",
            )
        steps.append((axis, before, after))
    if not steps:
        context.replace("Identity", [data], keep=())
    for count, (axis, before, after) in enumerate(steps, 1):
        parts = [data]
        if before:
            parts.insert(0, _part(context, data, axis, -before, _END))
        if after:
            parts.append(_part(context, data, axis, 0, after))
        if count < len(steps):
            data = context.emit("Concat", parts, "wrapped", axis=axis)
        else:
            context.replace("Concat", parts, keep=(), axis=axis)


def _part(context: Context, data: str, axis: int, start: int, end: int) -> str:
    bounds = [
        context.array([value], hint)
        for value, hint in ((start, "start"), (end, "end"), (axis, "axis"))
    ]
    return context.emit("Slice", [data, *bounds], "part")
