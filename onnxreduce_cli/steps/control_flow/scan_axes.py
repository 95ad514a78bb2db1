"""The axes and directions of Scan's inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_name
from onnxreduce_cli.emit.sizes import arange


def for_each_value(
    context: Context, attribute: str, states: int, names: Sequence[str]
) -> list[int]:
    """Return the axis or direction of each input or output: 0 for states, and by default.

    Args:
        context: the Scan.
        attribute: ``scan_input_axes``, ``scan_output_directions``, ...
        states: how many of the inputs, and of the outputs, are states.
        names: the inputs or the outputs.
    """
    values = context.value(attribute) or [0] * (len(names) - states)
    return [0] * states + list(values)


def unstack(context: Context, name: str, output: str, axis: int, rounds: Number | None) -> None:
    """Move the axis along which slices are stacked from the front to where the output has it.

    Args:
        context: the Scan.
        name: the slices, stacked along axis 0.
        output: the name of the result.
        axis: the index of that axis in the output.
        rounds: the number of slices where they are to be in reverse order, else None.
    """
    op = context.op
    if rounds is not None:
        last = op.Sub(as_name(context, rounds), context.array([1], "one"))
        order = op.Sub(last, arange(context, rounds))
        target = [output] if not axis else None
        name = op.Gather(name, order, outputs=target, axis=0)
    if axis:
        rank = context.need_rank(output, f"it is written along axis {axis}")
        perm = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
        op.Transpose(name, outputs=[output], perm=perm)
