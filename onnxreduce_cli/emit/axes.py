"""Axes: from an attribute to an input and back, and made non-negative."""

from __future__ import annotations

from onnx import AttributeProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Blocked, Context


def attribute_to_input(context: Context) -> None:
    """``Op<axes=[1]>(x)`` becomes ``Op(x, axes)`` with an initializer ``axes``.

    A function body has no initializers: there a Constant node holds the axes, and what was a
    reference to the function's attribute stays one. An empty list means the same as none.
    """
    axes = context.attribute("axes")
    if axes is None:
        return
    name = ints_to_constant(context, "axes") if axes.ref_attr_name or axes.ints else ""
    context.replace(inputs=[context.input(0), name], drop=("axes",))


def ints_to_constant(context: Context, name: str) -> str:
    """A constant that holds what the list attribute `name` does; empty where it is absent."""
    attribute = context.attribute(name)
    if attribute is None:
        return ""
    if attribute.ref_attr_name:
        given = context.argument_is_set(attribute.ref_attr_name)
        return context.reference(attribute, name) if given else ""
    return context.array(list(attribute.ints), name)


def known_axes(context: Context, index: int = 1) -> AttributeProto | tuple[int, ...] | None:
    """The axes input (or another list of integers) as what an attribute can hold.

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
    if reference is not None:
        return reference
    array = context.constant(name)
    if array is None:
        return None
    if array.dtype.kind not in "iu":
        raise Blocked(f"its input {name!r} holds {array.dtype}, not integers", "mend the model")
    return tuple(int(axis) for axis in array.reshape(-1))


def normalised(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The axes counted from the front.

    Raises:
        Blocked: one is out of range.
    """
    for axis in axes:
        if not -rank <= axis < rank:
            raise Blocked(f"its axis {axis} is out of range for rank {rank}", "mend the model")
    return tuple(axis % rank for axis in axes)


def unsqueezed(context: Context) -> Value:
    """The node's data with a first dimension of 1, for a node that is read at opset 13 or later.

    Reduced over that dimension it is what the operator makes of each element, in any dtype.
    """
    axes = context.array([0], "axes")
    return context.op.Unsqueeze(context.input(0), axes)
