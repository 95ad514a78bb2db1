"""Sequences and optional values below the opsets that they came with.

Here is what is taken from a sequence that one node makes of known parts. Where more takes part,
`onnxreduce_cli.containers` writes them out as tensors, in the whole model.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from onnxreduce_cli.emit.axes import normalised
from onnxreduce_cli.emit.context import Blocked, Context
from onnxreduce_cli.emit.numbers import dims_of, refuse, squeezed, unsqueezed
from onnxreduce_cli.model import attributes
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.values import elem_type_of, zeros
from onnxreduce_cli.steps.registry import down, introduced

_HOLDS = "holds a sequence of tensors"
_BLOCKS = "the model is given it or gives it, or the rank or dtype of what it holds is not known"


def _maker(context: Context, op_type: str) -> NodeProto | None:
    """The node that makes the sequence, if it is this operator."""
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
        raise refuse(context, _HOLDS)
    place = int(position.reshape(-1)[0])
    listed, split = _maker(context, "SequenceConstruct"), _maker(context, "SplitToSequence")
    if listed is not None and -len(listed.input) <= place < len(listed.input):
        context.replace("Identity", [listed.input[place]], keep=())
    elif split is not None:
        _take_part(context, split, place)
    else:
        raise refuse(context, _HOLDS)


def _take_part(context: Context, split: NodeProto, place: int) -> None:
    if any(item.ref_attr_name for item in split.attribute):
        raise refuse(context, _HOLDS)
    data, sizes = split.input[0], split.input[1] if len(split.input) > 1 else ""
    axis, keepdims = (
        default if found is None else found.i
        for found, default in (
            (attributes.find(split, "axis"), 0),
            (attributes.find(split, "keepdims"), 1),
        )
    )
    rank = context.rank(data)
    if rank is not None:
        axis = normalised((axis,), rank)[0]
    elif axis < 0:
        context.need_rank(data, "the axis is counted from the end")
    start, end = _part(context, split, axis, place)
    bounds = [context.array([value], "bound") for value in (start, end, axis)]
    if sizes or keepdims:
        context.replace("Slice", [data, *bounds], keep=())
        return
    part = context.op.Slice(data, *bounds)
    context.replace("Identity", [squeezed(context, part, [axis])], keep=())


def _part(context: Context, split: NodeProto, axis: int, place: int) -> tuple[int, int]:
    """Where the part at `place` begins and ends."""
    given = context.constant(split.input[1]) if len(split.input) > 1 else np.array(1)
    if given is None:
        raise refuse(context, _HOLDS)
    if given.ndim:
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(given.astype(np.int64))])
        count = len(given)
    else:
        dims = dims_of(context, split.input[0])
        dim = dims[axis] if dims is not None else None
        step = int(given)
        # Without the size, places from the beginning can still be told.
        if not isinstance(dim, int) and place < 0:
            raise refuse(context, _HOLDS)
        count = -(-dim // step) if isinstance(dim, int) else place + 1
        ends = np.arange(count + 1) * step
    if place < -count or place >= count:
        raise Blocked(f"it takes element {place} of {count}", "mend the model")
    place %= count
    return int(ends[place]), int(ends[place + 1])


@introduced(
    "ConcatFromSequence", 11, "Concat, or what was put together at run time", blocks=_BLOCKS
)
def concat_from_sequence(context: Context) -> None:
    """``ConcatFromSequence<axis=0>(SequenceConstruct(a, b))`` becomes ``Concat<axis=0>(a, b)``;
    with new_axis=1 each is unsqueezed first.
    """
    listed = _maker(context, "SequenceConstruct")
    if listed is None:
        raise refuse(context, _HOLDS)
    parts, axis = list(listed.input), context.value("axis")
    new_axis = context.value("new_axis", 0)
    if axis < 0:
        rank = context.need_rank(parts[0], "the axis is counted from the end")
        axis += rank + (1 if new_axis else 0)
    if new_axis:
        parts = [unsqueezed(context, part, [axis]) for part in parts]
    context.replace("Concat", parts, keep=(), axis=axis)


#: Operators on sequences and optional values by the opset they came with.
_HELD = {
    11: (
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceInsert",
        "SequenceLength",
        "SplitToSequence",
    ),
    15: ("Optional", "OptionalGetElement", "OptionalHasElement"),
}


def held(context: Context) -> None:
    """The node, unless its result is known, is written out with all that it makes or reads."""
    optional = context.node.op_type.startswith("Optional")
    raise refuse(context, "holds a value that may be absent" if optional else _HOLDS)


for _birth, _operators in _HELD.items():
    introduced(
        _operators,
        _birth,
        "written out as tensors",
        blocks=_BLOCKS,
    )(held)

introduced(
    "SequenceMap",
    17,
    "a Loop over the sequence",
    blocks="the type of what its body gives is not known",
)(held)


@down(
    "Identity",
    14,
    "a sequence: with an element more and less",
    blocks="below opset 11 the model is given the sequence or gives it",
)
def same_sequence(context: Context) -> None:
    """``Identity(s)`` of a sequence becomes ``SequenceErase(SequenceInsert(s, 0))``."""
    name = context.input(0)
    kind = context.kind(name) or ""
    if not kind.startswith("seq(tensor(") or context.target_opset < 11:
        return
    elem_type = elem_type_of(kind[len("seq(") : -1])
    assert elem_type is not None
    item = context.array(zeros(elem_type), "nothing")
    longer = context.op.SequenceInsert(name, item)
    context.replace("SequenceErase", [longer])
