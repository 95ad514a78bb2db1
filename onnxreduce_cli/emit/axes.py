"""Axes as an attribute and as an input: conversion of both, and operators that have either."""

from __future__ import annotations

from typing import Any

from onnx import AttributeProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context


def attribute_to_input(context: Context) -> None:
    """``Op<axes=[1]>(x)`` becomes ``Op(x, axes)`` with an initializer ``axes``.

    A function body has no initializers: there a Constant node holds the axes, or refers to the
    function's attribute as the attribute did. An empty list means the same as none.
    """
    if context.attribute("axes") is not None:
        context.replace(inputs=[context.input(0), axes_input(context)], drop=("axes",))


def axes_input(context: Context) -> str:
    """Return the axes of a node as an input: its own, or a constant made from its attribute.

    The constant is int64 of shape [k]. The input is empty for no axes.
    """
    if context.attribute("axes") is None:
        return context.input(1)
    return "" if context.known_value("axes") == () else ints_to_constant(context, "axes")


def ints_to_constant(context: Context, name: str) -> str:
    """Return the n integers of an attribute as a constant, int64 of shape [n]; empty for none."""
    attribute = context.attribute(name)
    if attribute is None:
        return ""
    if attribute.ref_attr_name:
        given = context.argument_is_set(attribute.ref_attr_name)
        return context.reference(attribute, name) if given else ""
    return context.array(list(context.value(name)), name)


def known_axes(context: Context, index: int = 1) -> AttributeProto | tuple[int, ...] | None:
    """Return an input of axes, or of other integers, in a form that an attribute can hold.

    Returns:
        the axes (none for an absent or empty input), a reference to the function's attribute, or
        None where they are only known at run time.

    Raises:
        Blocked: they are no integers.
    """
    name = context.input(index)
    if not name:
        return ()
    reference = context.reference_behind(name)
    return _listed(context, name) if reference is None else reference


def _listed(context: Context, name: str) -> tuple[int, ...] | None:
    """Return the integers that an input holds; None where they are only known at run time."""
    array = context.constant(name)
    if array is None:
        known = context.type(name)
        return () if known is not None and known.dims == (0,) else None
    if array.dtype.kind not in "iu":
        raise Blocked(
            f"its input {name!r} holds {array.dtype}, not integers",
            "mend the model: give it int64 numbers",
        )
    return tuple(int(axis) for axis in array.reshape(-1))


def constant_axes(context: Context) -> tuple[int, ...]:
    """Return the axes of a node from its attribute or its input; none for absent ones.

    Raises:
        Blocked: they are only known at run time, or set by the function's callers in several ways.
    """
    name = context.input(1)
    axes: tuple[int, ...] | None = _listed(context, name) if name else context.value("axes", ())
    if axes is None:
        raise Blocked("its axes are only known at run time")
    return axes


def non_negative_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Return the axes of a tensor of rank `rank` as non-negative integers.

    Raises:
        Blocked: one is out of range.
    """
    for axis in axes:
        if not -rank <= axis < rank:
            raise Blocked(
                f"its axis {axis} is out of range for rank {rank}",
                f"mend the model: give it an axis from {-rank} to {rank - 1}",
            )
    return tuple(axis % rank for axis in axes)


def _with_axes(
    context: Context, op_type: str, name: str, axes: list[int], since: int, **values: Any
) -> Value:
    """Emit an operator whose axes became an input with opset `since`, and return its output.

    The output has the dtype of the tensor `name`; its rank or sizes differ at `axes`.
    """
    op = context.op
    if context.op.opset >= since:
        return op.emit(op_type, name, context.array(axes, "axes"), **values)
    return op.emit(op_type, name, axes=axes, **values)


def squeezed(context: Context, name: str, axes: list[int]) -> str:
    """Return a tensor of any dtype without its dimensions `axes`, which are 1."""
    return _with_axes(context, "Squeeze", name, axes, 13) if axes else name


def unsqueezed(context: Context, name: str, axes: list[int]) -> str:
    """Return a tensor of any dtype with dimensions of 1 inserted at `axes` of the result."""
    return _with_axes(context, "Unsqueeze", name, axes, 13) if axes else name


def reduced(context: Context, op_type: str, name: str, axes: list[int], *, keep: bool) -> str:
    """Return a tensor reduced over `axes`, of which each stays with size 1 if `keep`.

    `op_type` is a reduction that leaves single elements as they are, such as ReduceSum, and takes
    the tensor's dtype. Without axes the tensor itself is returned.
    """
    since = 13 if op_type == "ReduceSum" else 18
    return _with_axes(context, op_type, name, axes, since, keepdims=int(keep)) if axes else name
