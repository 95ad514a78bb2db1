"""Softmax, LogSoftmax and Hardmax where the rank is not known, or a dimension may be zero.

Before Reshape has `allowzero`, a Loop or an If restores the shape of the result.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit import shapes
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopBody, LoopValue, branch, loop
from onnxreduce_cli.emit.refusals import OR_STATE_SHAPES, need_loops
from onnxreduce_cli.emit.sizes import dims_of, static_dims


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
    _reshaped_like(context, result.output[0], data, shape)


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
    _reshaped_like(context, result.output[0], data, view.shape)


def _reshaped_like(context: Context, name: str, data: str, shape: str) -> None:
    """Emit the result in the shape of `data`, which has as many elements and the same dtype.

    Before opset 14 a Loop of one round reshapes it, or of none: what is empty is as the other. For
    an operator that may have no Loop the step of Reshape sees to what is empty.

    Args:
        context: the context of the node.
        name: the result.
        data: what has the shape.
        shape: the shape, int64 of shape [rank].

    Raises:
        Blocked: the conversion leads below opset 7.
    """
    op, output = context.op, context.node.output[0]
    if context.reaches(14) or not context.may_loop:
        shapes.reshaped(context, name, shape, output=output)
        return
    reason = f"the rank of {data!r} is not known: only a Loop gives the result its shape"
    need_loops(context, reason, 14, OR_STATE_SHAPES, rank_of=data)
    elem_type = context.need_elem_type(data, "it is carried through a Loop")
    dims = static_dims(dims_of(context, data))
    if dims is not None:
        count = context.array([int(0 not in dims)], "rounds")
    else:
        filled = cast(context, op.Size(data), TensorProto.BOOL)
        count = cast(context, filled, TensorProto.INT64)

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        return [body.Reshape(name, shape)], []

    carried = [LoopValue(data, elem_type, None)]
    inputs, graph = loop(context, count, carried, write, "that gives the result its shape")
    op.Loop(*inputs, outputs=[output], body=graph)


def reshape_unless_empty(context: Context, matrix: str, shape: str) -> None:
    """Emit ``If(x is empty) Identity(x) else Reshape(matrix, shape)``, x being the node's data.

    Args:
        context: the context of the node.
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
