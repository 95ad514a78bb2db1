"""Reshape: 5 made the shape an input, 14 added `allowzero`; 19 added types alone."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.axes import ints_to_constant, known_axes, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.factors import Factors, Ways, is_never_zero, is_zero_with, of_number
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.steps.registry import down, up


@up("Reshape", 5, "shape: attribute to input")
def shape_to_input(context: Context) -> None:
    """``Reshape<shape=[2, -1], consumed_inputs=[0]>(x)`` becomes ``Reshape(x, shape)``."""
    shape = ints_to_constant(context, "shape")
    if not shape:
        raise Blocked("its attribute shape is missing", "mend the model: add it")
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
        context: the context of the node.
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


@down("Reshape", 19, "allowzero=1 dropped where the shape is constant, without a 0")
def without_idle_allowzero(context: Context) -> None:
    """``Reshape<allowzero=1>(x, [1, -1])`` becomes ``Reshape(x, [1, -1])``: it is about zeros.

    Exporters set it on every Reshape. ONNX Runtime's optimiser makes one of two Reshapes in a row
    only where neither has it.
    """
    if context.attribute("allowzero") is None:
        return
    shape = context.constant(context.input(1))
    if shape is not None and shape.all():
        context.replace(drop=("allowzero",))


@down("Reshape", 14, "allowzero: dropped where no zero can be meant; else rewritten")
def without_allowzero(context: Context) -> None:
    """``Reshape<allowzero=1>(x, shape)`` becomes ``Reshape(x, shape)``, or one that means it.

    Without `allowzero` a 0 in the shape copies the dimension of x. That is the same where

    - x is never empty, for then the shape has no 0 in a run that succeeds,
    - or it has a -1, with which `allowzero` forbids a 0,
    - or x has, for each element that may be 0, at its index a dimension that is 0 then too: the
      same one, or a multiple of it.

    If one element alone may be 0 and all others are known, it is inferred from a -1. If dimensions
    of 1 put into x bring the others in line, they are: ``Reshape(Unsqueeze(x, 1), shape)``. All
    else becomes ``Reshape(Expand(Reshape(x, [-1]), shape != 0), shape)``: what is copied from then
    is 0 wherever the shape is.
    """
    if context.attribute("allowzero") is None:
        return
    if not context.value("allowzero"):
        context.replace(drop=("allowzero",))
        return
    data, shape = context.input(0), context.input(1)
    elements = context.elements(shape)
    if not _may_be_empty(data) or -1 in (elements or ()):
        context.replace(drop=("allowzero",))
        return
    sizes = None if elements is None else _possible_sizes(context, elements)
    ones = None if sizes is None else _axes_of_ones(sizes, Factors(context).of_dims(data) or [])
    inferred = _with_inferred(elements, sizes) if elements and sizes and ones != [] else None
    if inferred is not None:
        inputs: list[str] = [data, context.array(inferred, "shape")]
    elif ones is not None:
        inputs = [unsqueezed(context, data, ones), shape]
    else:
        inputs = [_with_result_rank(context, data, shape), shape]
    context.replace(inputs=inputs, drop=("allowzero",))


def _may_be_empty(data: Value) -> bool:
    """Return whether a dimension may be zero, as far as is known."""
    dims = data.dims
    return dims is None or not all(isinstance(dim, int) and dim > 0 for dim in dims)


def _possible_sizes(context: Context, elements: tuple[int | None, ...]) -> list[Ways]:
    """Return the factors of each element of the shape.

    Args:
        context: the context of the node.
        elements: the elements of the shape, None for each that is only known at run time.
    """
    found = Factors(context).of_elements(context.input(1)) or [()] * len(elements)
    new = dims_of(context, context.node.output[0]) or ()
    sizes = []
    for index, element in enumerate(elements):
        dim = new[index] if element is None and index < len(new) else element
        if isinstance(dim, int):
            sizes.append(of_number(dim))
        else:
            sizes.append(found[index] + ((frozenset({dim}),) if dim is not None else ()))
    return sizes


def _axes_of_ones(sizes: list[Ways], dims: list[Ways]) -> list[int] | None:
    """Return where dimensions of 1 go, so that each 0 in a shape copies a dimension that is 0.

    Args:
        sizes: the factors of the elements of the shape.
        dims: those of the dimensions of what is reshaped.

    Returns:
        the axes, counted in the result; None where there are no such.
    """
    ones: list[int] = []
    for index, size in enumerate(sizes):
        if is_never_zero(size):
            continue
        own = next(
            (at for at in range(index - len(ones), -1, -1) if _copies(size, dims[at : at + 1])),
            None,
        )
        if own is None:
            return None
        missing = index - len(ones) - own
        if any(not is_never_zero(sizes[at]) for at in range(index - missing, index)):
            return None
        ones.extend(range(index - missing, index))
    return ones


def _copies(size: Ways, dims: list[Ways]) -> bool:
    """Return whether the dimension, if there is one, is 0 wherever a size is."""
    return bool(dims) and is_zero_with(size, dims[0])


def _with_inferred(elements: tuple[int | None, ...], sizes: list[Ways]) -> tuple[int, ...] | None:
    """Return a constant shape with -1 for the one element that may be 0; None if there is none."""
    return _inferred(
        elements, {index for index, size in enumerate(sizes) if not is_never_zero(size)}
    )


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


def _with_result_rank(context: Context, data: str, shape: str) -> Value:
    """Return `data` in the rank of the result: of size 0 where that is, else of 1 up to the last.

    Args:
        context: the node's, bound to an opset that has Expand.
        data: a tensor.
        shape: the shape of the result, int64 of shape [rank].
    """
    op = context.op
    flat = data if context.rank(data) == 1 else op.Reshape(data, context.array([-1], "flat_shape"))
    # An element may be -1, which is not 0 either.
    not_zero = cast(context, shape, TensorProto.BOOL)
    return op.Expand(flat, cast(context, not_zero, TensorProto.INT64))
