"""Softmax, LogSoftmax and Hardmax where the rank is not known, or a dimension may be zero.

Before Reshape has `allowzero`, a Loop or an If restores the shape of the result.
"""

from __future__ import annotations

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import branch


def as_rows(context: Context, axis: int) -> None:
    """``Softmax<axis=-2>(x)`` becomes ``Reshape(Softmax<axis=1>(matrix), Shape(x))`` with the
    matrix that Flatten makes of x at that axis.

    Args:
        context: the node's; by its opset all dimensions from the axis on count.
        axis: the axis, which is negative.
    """
    context = context.at(shapes.OPSET)
    data = context.input(0)
    matrix, shape = shapes.as_matrix(context, data, axis)
    result = context.replace(inputs=[matrix], outputs=[context.fresh("matrix")], axis=1)
    shapes.reshaped_like(context, result.output[0], data, shape, context.node.output[0])


def viewed_around_axis(context: Context, axis: int) -> None:
    """``Softmax<axis=-2>(x)`` becomes
    ``Reshape(Softmax<axis=1>(Reshape(x, [before, length, after])), Shape(x))``.

    Args:
        context: the node's; by its opset the one dimension `axis` counts.
        axis: the axis, counted from either end.
    """
    context = context.at(shapes.OPSET)
    data = context.input(0)
    view = shapes.around(context, data, axis)
    result = context.replace(inputs=[view.name], outputs=[context.fresh("around")], axis=1)
    shapes.reshaped_like(context, result.output[0], data, view.shape, context.node.output[0])


def reshape_unless_empty(context: Context, matrix: str, shape: str) -> None:
    """Emit ``If(x is empty) Identity(x) else Reshape(matrix, shape)``, x being the node's data.

    Args:
        context: the node's.
        matrix: the result in two dimensions, of x's dtype.
        shape: the shape of x, int64 of shape [rank].
    """
    op = context.op
    data = context.input(0)
    elem_type = data.elem_type or 0
    zero = context.scalar(0, "zero")
    empty = op.Equal(op.Size(data), zero)
    op.If(
        empty,
        outputs=[context.node.output[0]],
        like=data.type,
        then_branch=branch(context, lambda nodes: nodes.Identity(data), elem_type),
        else_branch=branch(context, lambda nodes: nodes.Reshape(matrix, shape), elem_type),
    )
