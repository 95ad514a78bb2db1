"""InstanceNormalization: 6 dropped consumed_inputs and allowed any rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_shape, sizes
from onnxreduce_cli.emit.shapes import product
from onnxreduce_cli.emit.sizes import END, known_dims, sliced
from onnxreduce_cli.steps.registry import down, instead, up


@up("InstanceNormalization", 6, "consumed_inputs dropped")
def instance_without_consumed_inputs(context: Context) -> None:
    """``InstanceNormalization<consumed_inputs=[0, 0, 0]>(x, ...)`` becomes
    ``InstanceNormalization(x, ...)``.
    """
    if context.attribute("consumed_inputs") is not None:
        context.replace(drop=("consumed_inputs",))


@down("InstanceNormalization", 6, "the input made 4-D")
def instance_before_6(context: Context) -> None:
    """``InstanceNormalization(x, ...)``, x of rank 3, becomes
    ``Squeeze(InstanceNormalization(Unsqueeze(x), ...))``.
    """
    if context.specialised_rank(context.input(0)) != 4:
        with_rank_4(context)


@instead("InstanceNormalization", {"no epsilon"}, "its default epsilon written out")
def with_epsilon(context: Context) -> None:
    """``InstanceNormalization(x, ...)`` becomes ``InstanceNormalization<epsilon=1e-5>(x, ...)``."""
    context.replace(epsilon=1e-5)


def with_rank_4(context: Context, **values: Any) -> None:
    """Emit the node on its input of rank 4: dimensions of 1 added, or the last ones joined.

    Args:
        context: the node, which normalises each channel, axis 1.
        values: attributes to set.
    """
    op = context.op
    data = context.input(0)
    rank = context.specialised_rank(data)
    if rank == 4:
        context.replace(**values)
    elif rank in (2, 3):
        axes = list(range(rank, 4))
        longer = op.Unsqueeze(data, axes=axes)
        output, *others = context.node.output
        outputs = [context.fresh("normal"), *others]
        context.replace(inputs=[longer, *context.node.input[1:]], outputs=outputs, **values)
        op.Squeeze(*outputs[:1], outputs=[output], axes=axes)
    else:
        # No -1 stands for the size: it could be anything where the batch is of size 0.
        dims = known_dims(data.dims and data.dims[2:])
        if dims is not None:
            size: Number = math.prod(dims)
        else:
            size = sizes(context, product(context, sliced(context, op.Shape(data), 2, END)))
        joined = op.Reshape(data, as_shape(context, [0, 0, size, 1]))
        with_output_reshaped(context, [joined, *context.node.input[1:]], **values)


def with_output_reshaped(context: Context, inputs: Sequence[str], **values: Any) -> None:
    """Emit the node on other inputs; reshape its output to the shape of the old input 0."""
    op = context.op
    output, *others = context.node.output
    outputs = [context.fresh("normal"), *others]
    context.replace(inputs=inputs, outputs=outputs, **values)
    shape = op.Shape(context.input(0))
    op.Reshape(outputs[0], shape, outputs=[output])
