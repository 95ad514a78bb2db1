"""Operators on sequences (SequenceAt, ConcatFromSequence, SequenceMap, ...): 11 and 17.

SequenceAt and ConcatFromSequence are replaced here where one node makes their sequence of known
tensors. Everything else `onnxreduce_cli.containers` writes out as tensors, in the whole model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from onnxreduce_cli.emit.axes import non_negative_axes, squeezed, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import no_equivalent
from onnxreduce_cli.emit.sizes import known_size
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.steps.registry import introduced

_HOLDS = "holds a sequence of tensors"
_BLOCKS = "the model is given it or gives it, or the rank or dtype of what it holds is not known"


def _producer(context: Context, op_type: str) -> NodeProto | None:
    """Return the node that makes the sequence, if it is of this operator."""
    node = context.producer(context.input(0))
    return (
        node if node is not None and is_default(node.domain) and node.op_type == op_type else None
    )


@introduced("SequenceAt", 11, "the part itself taken, or found at run time", blocks=_BLOCKS)
def sequence_at(context: Context) -> None:
    """``SequenceAt(SplitToSequence<axis=1>(x, 4), 2)`` becomes ``Slice(x, [8], [12], [1])``, and
    ``SequenceAt(SequenceConstruct(a, b), 1)`` becomes ``Identity(b)``.
    """
    position = context.constant(context.input(1))
    if position is None or position.size != 1:
        raise no_equivalent(context, _HOLDS)
    index = int(position.reshape(-1)[0])
    listed, split = _producer(context, "SequenceConstruct"), _producer(context, "SplitToSequence")
    if listed is not None and -len(listed.input) <= index < len(listed.input):
        context.replace("Identity", [listed.input[index]], keep=())
    elif split is not None:
        _take_part(context, split, index)
    else:
        raise no_equivalent(context, _HOLDS)


def _take_part(context: Context, split: NodeProto, index: int) -> None:
    """Replace SequenceAt of a SplitToSequence by a Slice of the tensor that this splits."""
    asked = context.about(split)
    data, sizes = split.input[0], split.input[1] if len(split.input) > 1 else ""
    axis, keepdims = asked.value("axis", 0), asked.value("keepdims", 1)
    rank = context.rank(data)
    if rank is not None:
        axis = non_negative_axes((axis,), rank)[0]
    elif axis < 0:
        context.need_rank(data, "the axis is counted from the end")
    start, end = _part_of_split(context, split, axis, index)
    bounds = [context.array([value], "bound") for value in (start, end, axis)]
    if sizes or keepdims:
        context.replace("Slice", [data, *bounds], keep=())
        return
    part = context.op.Slice(data, *bounds)
    context.replace("Identity", [squeezed(context, part, [axis])], keep=())


def _part_of_split(context: Context, split: NodeProto, axis: int, index: int) -> tuple[int, int]:
    """Return the start and the end along the axis of the part at `index`."""
    sizes = context.constant(split.input[1]) if len(split.input) > 1 else np.array(1)
    if sizes is None:
        raise no_equivalent(context, _HOLDS)
    if sizes.ndim:
        ends: Sequence[int] = [0, *np.cumsum(sizes.astype(np.int64)).tolist()]
        count = len(sizes)
    else:
        dim = known_size(context, split.input[0], axis)
        step = int(sizes)
        if step < 1:
            raise Blocked(
                f"the sequence is split into parts of size {step}",
                "mend the model: split it into parts of at least 1",
            )
        # Without the size, indices from the front are still known.
        if not isinstance(dim, int) and index < 0:
            raise no_equivalent(context, _HOLDS)
        count = -(-dim // step) if isinstance(dim, int) else index + 1
        ends = range(0, (count + 1) * step, step)
    if index < -count or index >= count:
        raise Blocked(
            f"it takes element {index} of a sequence of {count}",
            f"mend the model: give it a position from {-count} to {count - 1}",
        )
    index %= count
    return ends[index], ends[index + 1]


@introduced(
    "ConcatFromSequence", 11, "Concat, or what was put together at run time", blocks=_BLOCKS
)
def concat_from_sequence(context: Context) -> None:
    """``ConcatFromSequence<axis=0>(SequenceConstruct(a, b))`` becomes ``Concat<axis=0>(a, b)``;
    with new_axis=1 each is unsqueezed first.
    """
    listed = _producer(context, "SequenceConstruct")
    if listed is None:
        raise no_equivalent(context, _HOLDS)
    parts, axis = list(listed.input), context.value("axis")
    new_axis = context.value("new_axis", 0)
    if axis < 0:
        rank = context.need_rank(parts[0], "the axis is counted from the end")
        axis += rank + (1 if new_axis else 0)
    if new_axis:
        parts = [unsqueezed(context, part, [axis]) for part in parts]
    context.replace("Concat", parts, keep=(), axis=axis)


@introduced(
    (
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceInsert",
        "SequenceLength",
        "SplitToSequence",
    ),
    11,
    "written out as tensors",
    blocks=_BLOCKS,
)
@introduced(
    "SequenceMap",
    17,
    "a Loop over the sequence",
    blocks="the type of an output of its body is not known",
)
def sequence_operator(context: Context) -> None:
    """Raise `Blocked`: sequences are written out with all that makes or reads them, not here."""
    raise no_equivalent(context, _HOLDS)
