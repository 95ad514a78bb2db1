"""Attention: 24 let a mask be shorter than the sequence, and added `nonpad_kv_seqlen`; 25 windows.

A mask whose last dimension is 1 was broadcast before 24; since then it is a short one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_name, sizes
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import arange, known_size
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.registry import down, up

_MASK = 3
_PAST_KEY = 4
_VALID = 6
#: How far before and after its own place a query looks.
_WINDOW = ("left_window_size", "right_window_size")
_OPEN = -1


def _known_lengths(context: Context) -> tuple[int | None, int | None]:
    """Return the last dimension of the mask, and the length of past and present keys, if known."""

    def dim(index: int, axis: int) -> int | None:
        if not context.input(index):
            return 0
        known = context.type(context.input(index))
        if known is None or known.dims is None:
            return None
        if len(known.dims) < -axis:
            raise Blocked(
                f"its input {index} has rank {len(known.dims)}",
                "mend the model: give it an input of rank 3 or 4",
            )
        found = known.dims[axis]
        return found if isinstance(found, int) else None

    parts = [dim(1, -2), dim(_PAST_KEY, -2)]
    total = sum(part for part in parts if part is not None) if None not in parts else None
    return dim(_MASK, -1), total


def _sequence_length(context: Context, index: int) -> Number:
    """Return the length of queries, keys or past keys (inputs 0, 1, 4)."""
    data = context.input(index)
    known = known_size(context, data, -2)
    if known is not None:
        return known
    return sizes(context, lambda: context.op.Shape(data, start=-2, end=-1))


def _total_length(context: Context) -> Number:
    """Return the length of past and present keys together."""
    own = _sequence_length(context, 1)
    return own + _sequence_length(context, _PAST_KEY) if context.input(_PAST_KEY) else own


def _with_mask(context: Context, mask: str, *, dropped: Sequence[str] = ()) -> None:
    """Emit the node with another mask, and without inputs that came with the boundary."""
    inputs: list[str] = [context.input(index) for index in range(_VALID + 1)]
    inputs[_MASK] = mask
    context.replace(inputs=inputs if context.op.opset >= 24 else inputs[:_VALID], drop=dropped)


_BLOCKS = f"the dtype of the mask is not known, or {NO_COUNTING}"


@up("Attention", 24, "a mask whose last dimension may be 1 expanded")
def mask_expanded(context: Context) -> None:
    """``Attention(q, k, v, mask)``, mask of shape [5, 1], becomes
    ``Attention(q, k, v, Expand(mask, total_sequence_length))``.
    """
    if not context.input(_MASK):
        return
    last, total = _known_lengths(context)
    if last not in (None, 1) or (last == 1 and total == 1):
        return
    whole = as_name(context, _total_length(context))
    mask = context.op.Expand(context.input(_MASK), whole)
    _with_mask(context, mask)


@down(
    "Attention",
    24,
    "a mask that may be shorter than the sequence padded; nonpad_kv_seqlen put into it",
    blocks=_BLOCKS,
)
def mask_padded(context: Context) -> None:
    """``Attention(q, k, v, mask)``, mask of shape [5, 3], becomes
    ``Attention(q, k, v, Pad(mask, [0, total_sequence_length - 3], -inf, [-1]))``.

    ``Attention<is_causal=1>(q, k, v, , , , lengths)`` becomes ``Attention(q, k, v, mask)`` with
    ``mask`` true where ``j < lengths[b]`` and ``j <= lengths[b] - query_length + i``.
    """
    op = context.op
    valid = context.input(_VALID)
    if not valid:
        mask = _padded(context)
        if mask != context.input(_MASK):
            _with_mask(context, mask)
        return
    key = arange(context, _total_length(context))
    lengths = unsqueezed(context, valid, [1, 2, 3])
    seen = op.Less(key, lengths)
    if context.value("is_causal", 0) == 1:
        ahead = op.LessOrEqual(key, _position(context))
        seen = op.And(seen, ahead)
    else:
        # ONNX Runtime takes no mask of dimension 1 for several queries.
        one = context.array([1], "one")
        shape = op.Concat(one, one, as_name(context, _sequence_length(context, 0)), one, axis=0)
        seen = op.Expand(seen, shape)
    _with_mask(context, _within_window(context, seen), dropped=["is_causal"])


@down("Attention", 25, "windows put into the mask", blocks=_BLOCKS)
def windows_in_mask(context: Context) -> None:
    """``Attention<left_window_size=2>(q, k, v)`` becomes ``Attention(q, k, v, mask)`` with
    ``mask`` true where a key is at most two places before its query.
    """
    op = context.op
    left, right = (context.value(name, _OPEN) for name in _WINDOW)
    if left == right == _OPEN:
        if any(context.attribute(name) is not None for name in _WINDOW):
            context.replace(drop=_WINDOW)
        return
    position, key = _position(context), arange(context, _total_length(context))
    limits = []
    for size, ends in ((left, [position, key]), (right, [key, position])):
        if size != _OPEN:
            away = op.Sub(*ends)
            window = context.array([size], "window")
            limits.append(op.LessOrEqual(away, window))
    seen = limits[0] if len(limits) == 1 else op.And(*limits)
    _with_mask(context, _within_window(context, seen), dropped=_WINDOW)


def _position(context: Context) -> str:
    """Return the places of queries among keys, of shape [queries, 1] or [batch, 1, queries, 1]."""
    op = context.op
    queries = _sequence_length(context, 0)
    row = unsqueezed(context, arange(context, queries), [1])
    valid = context.input(_VALID)
    if valid:
        before = op.Sub(valid, as_name(context, queries))
        return op.Add(row, unsqueezed(context, before, [1, 2, 3]))
    if context.input(_PAST_KEY):
        return op.Add(row, as_name(context, _sequence_length(context, _PAST_KEY)))
    return row


def _padded(context: Context) -> Value:
    """Return the mask, padded to the length of all keys; empty where there is none."""
    op = context.op
    name = context.input(_MASK)
    last, total = _known_lengths(context)
    if not name or (last is not None and last == total):
        return name
    elem_type = context.need_elem_type(name, "it may have to be padded")
    excluded = False if elem_type == TensorProto.BOOL else -np.inf
    given = op.Shape(name, start=-1)
    missing = op.Sub(as_name(context, _total_length(context)), given)
    pads = op.Concat(context.array([0], "none"), missing, axis=0)
    value = context.array(np.array(excluded, numpy_dtype(elem_type)), "excluded")
    return op.Pad(name, pads, value, context.array([-1], "axes"))


def _within_window(context: Context, seen: str) -> str:
    """Return the mask limited to the keys that are seen, by a bool tensor that broadcasts to it.

    A mask of floats is added to the scores: where a key is not seen minus infinity is added to it.
    """
    op = context.op
    mask = _padded(context)
    if not mask:
        return seen
    elem_type = context.need_elem_type(mask, "what is not seen goes into it")
    if elem_type == TensorProto.BOOL:
        return op.And(mask, seen)
    zero, excluded = (
        context.array(np.array(number, numpy_dtype(elem_type)), hint)
        for number, hint in ((0, "zero"), (-np.inf, "excluded"))
    )
    return op.Add(mask, op.Where(seen, zero, excluded))
