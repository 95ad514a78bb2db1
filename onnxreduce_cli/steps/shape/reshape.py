"""Reshape: 5 made the shape an input, 14 added `allowzero`."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.axes import ints_to_constant, known_axes
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.steps.registry import down, up


@up("Reshape", 5, "shape: attribute to input")
def shape_to_input(context: Context) -> None:
    """``Reshape<shape=[2, -1], consumed_inputs=[0]>(x)`` becomes ``Reshape(x, shape)``."""
    shape = ints_to_constant(context, "shape")
    if not shape:
        raise Blocked("its attribute shape is missing", "mend the model")
    context.replace(inputs=[context.input(0), shape], drop=("shape", "consumed_inputs"))


@down(
    "Reshape",
    5,
    "shape: input to attribute",
    blocks="more than one element of the shape is only known at run time",
)
def shape_to_attribute(context: Context) -> None:
    """``Reshape(x, shape)`` with a constant shape becomes ``Reshape<shape=[2, -1]>(x)``.

    An element that is the dimension of x at its index becomes 0, which copies it, and if one
    element alone is only known at run time it becomes -1, from which it is inferred.
    """
    shape = known_axes(context)
    if shape is None:
        elements = context.elements(context.input(1))
        shape = None if elements is None else _constant_shape(context, elements)
    if shape is None:
        raise Blocked(
            f"its shape {context.input(1)!r} is only known at run time, and before opset 5 Reshape "
            "has it as an attribute",
            "choose opset 5 or later",
        )
    context.replace(inputs=[context.input(0)], shape=shape)


def _constant_shape(context: Context, elements: tuple[int | None, ...]) -> tuple[int, ...] | None:
    """Return the elements of a constant that means the same as a shape; None if there is none.

    Args:
        context: the node's.
        elements: the elements of the shape, None for each that is only known at run time.
    """
    old, new = context.input(0).dims or (), dims_of(context, context.node.output[0]) or ()
    inferable: list[int | None] = []
    for index, element in enumerate(elements):
        dim = new[index] if element is None and index < len(new) else element
        if element is None and dim is not None and index < len(old) and dim == old[index]:
            dim = 0
        elif element is None and dim == 0:
            dim = None  # In a shape a 0 would copy another size.
        inferable.append(dim if isinstance(dim, int) else None)
    unknown = {index for index, element in enumerate(inferable) if element is None}
    known = tuple(element for element in inferable if element is not None)
    return _inferred(tuple(inferable), unknown) if unknown else known


@down("Reshape", 14, "allowzero: dropped where no zero can be meant; else rewritten")
def without_allowzero(context: Context) -> None:
    """``Reshape<allowzero=1>(x, shape)`` becomes ``Reshape(x, shape)``, or one that means it.

    Without `allowzero` a 0 in the shape copies the dimension of x. That is the same where

    - x is never empty, for then the shape has no 0 in a run that succeeds,
    - or it has a -1, with which `allowzero` forbids a 0,
    - or each element that may be 0 is that very dimension of x.

    If one element alone may be 0 and all others are known, it is inferred from a -1. All else
    becomes ``Reshape(Expand(Reshape(x, [-1]), [n, ..., n]), shape)`` where n is 0 if x is
    empty and else 1: what is copied from then is 0 in every dimension if x is empty, and nothing
    is copied if it is not.
    """
    if context.attribute("allowzero") is None:
        return
    if not context.value("allowzero"):
        context.replace(drop=("allowzero",))
        return
    data, shape = context.input(0), context.input(1)
    elements = context.elements(shape)
    doubtful = None if elements is None else _not_copied(context, elements)
    if not _may_be_empty(data) or doubtful == set() or -1 in (elements or ()):
        context.replace(drop=("allowzero",))
        return
    inferred = None if elements is None or doubtful is None else _inferred(elements, doubtful)
    if inferred is not None:
        inputs = [data, context.array(inferred, "shape")]
    else:
        inputs = [_empty_everywhere(context, data, shape), shape]
    context.replace(inputs=inputs, drop=("allowzero",))


def _may_be_empty(data: Value) -> bool:
    """Return whether a dimension may be zero, as far as is known."""
    dims = data.dims
    return dims is None or not all(isinstance(dim, int) and dim > 0 for dim in dims)


def _not_copied(context: Context, elements: tuple[int | None, ...]) -> set[int]:
    """Return the indices at which the shape may have a 0 that is not the input's dimension.

    Args:
        context: the node's.
        elements: the elements of the shape, None for each that is only known at run time.
    """
    old, new = context.input(0).dims or (), dims_of(context, context.node.output[0]) or ()
    indices = set()
    for index, element in enumerate(elements):
        dim = new[index] if element is None and index < len(new) else element
        nonzero = isinstance(dim, int) and dim != 0
        same = dim is not None and index < len(old) and dim == old[index]
        if not nonzero and not same:
            indices.add(index)
    return indices


def _inferred(elements: tuple[int | None, ...], open_indices: set[int]) -> tuple[int, ...] | None:
    """Return the shape with -1 at the one open index; None if another element is 0 or unknown."""
    if len(open_indices) != 1:
        return None
    shape = []
    for index, element in enumerate(elements):
        if index in open_indices:
            shape.append(-1)
        elif element is None or element <= 0:
            return None
        else:
            shape.append(element)
    return tuple(shape)


def _empty_everywhere(context: Context, data: str, shape: str) -> Value:
    """Return `data` in the rank of the result: all sizes 0 if it is empty, else 1 up to the last.

    Args:
        context: the node's, bound to an opset that has Expand.
        data: a tensor.
        shape: the shape of the result, int64 of shape [rank].
    """
    op = context.op
    flat = op.Reshape(data, context.array([-1], "flat_shape"))
    any_element = cast(context, op.Shape(flat), TensorProto.BOOL)
    one_or_none = cast(context, any_element, TensorProto.INT64)
    length = op.Shape(shape)
    sizes = op.Expand(one_or_none, length)
    return op.Expand(flat, sizes)
