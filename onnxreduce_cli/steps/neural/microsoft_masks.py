"""What ONNX Runtime's own attention operators add to their scores: masks in all their forms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_name, is_small
from onnxreduce_cli.emit.sizes import arange, known_size, size_of, sliced

#: Which keys a query sees is a constant of at most so many elements, and else computed.
_LARGEST = 1 << 14

#: What is added to scores of masked keys by default, and to those of keys that are ahead.
_FILTER, _AHEAD = -10000.0, float(np.finfo(np.float32).min)


class Lengths(NamedTuple):
    """The sizes of an attention: of the batch, and how many queries and keys there are."""

    batch: Number
    queries: Number
    keys: Number


def mask_of_scores(context: Context, mask: Value, lengths: Lengths, *, starts: bool = False) -> str:
    """Return what a mask and the order of keys add to scores, in float; empty for nothing.

    Args:
        context: the node, of which the attributes say what masked keys get, and if order counts.
        mask: the mask, int32, or how many keys are not masked; empty for none.
        lengths: the sizes.
        starts: whether a mask may also say at which keys each sequence starts.
    """
    op = context.op
    added: str = ""
    if mask:
        kept = _kept_keys(context, mask, lengths, starts=starts)
        number = context.value("mask_filter_value", _FILTER)
        added = op.Where(kept, _number(context, 0.0), _number(context, number))
    if context.value("unidirectional", 0) == 1:
        seen = seen_keys(context, lengths.queries, lengths.keys, to_last=True)
        added = op.Where(seen, added or _number(context, 0.0), _number(context, _AHEAD))
    return added


def _number(context: Context, number: float) -> Value:
    return context.scalar(number, "number", TensorProto.FLOAT)


def _kept_keys(context: Context, mask: Value, lengths: Lengths, *, starts: bool) -> Value:
    """Return which keys are not masked, bool, of rank 4."""
    op, rank = context.op, context.need_rank(mask, "its form follows from that")
    if rank in (2, 3):
        if known_size(context, mask, -1) == 1 and lengths.keys != 1:
            raise Blocked("its mask has one column for all keys", "give it one for each key")
        kept = op.Greater(mask, context.scalar(0, "zero", TensorProto.INT32))
        return Value(unsqueezed(context, kept, [1, 2] if rank == 2 else [1]), context)
    if rank != 1:
        raise Blocked(
            f"its mask has rank {rank}, which ONNX Runtime computes on GPUs alone",
            "give it a mask of rank 2 or 3",
        )
    keys = arange(context, lengths.keys)
    ends, begins = _bounds(context, mask, lengths, starts=starts)
    kept = op.Less(keys, unsqueezed(context, ends, [1, 2, 3]))
    if begins:
        after = op.GreaterOrEqual(keys, unsqueezed(context, begins, [1, 2, 3]))
        kept = op.And(kept, after)
    return kept


def _bounds(context: Context, mask: Value, lengths: Lengths, *, starts: bool) -> tuple[str, str]:
    """Return how many keys each sequence has, and its first key or empty; int64 of [batch].

    A mask of [2 * batch] has first keys too. One of [3 * batch + 2] begins with the numbers of
    keys; what follows is for kernels of GPUs.
    """
    op, batch = context.op, lengths.batch
    own, known = (mask.dims or (None,))[0], (context.input(0).dims or (None,))[0]
    numbers = cast(context, mask, TensorProto.INT64)
    if own is not None and own == known:
        return numbers, ""
    ends = sliced(context, numbers, 0, batch)
    if isinstance(own, int) and isinstance(batch, int):
        if own not in (batch, 3 * batch + 2, *([2 * batch] if starts else [])):
            raise Blocked(
                f"its mask has {own} numbers for a batch of {batch}",
                "mend the model: give it one for each sequence",
            )
        return ends, sliced(context, numbers, batch, own) if own == 2 * batch else ""
    if not starts:
        return ends, ""
    # Without first keys zeros follow, which are the same.
    longer = op.Concat(numbers, op.Sub(ends, ends), axis=0)
    twice = as_name(context, batch + batch)
    has = op.Equal(as_name(context, size_of(context, mask, 0)), twice)
    begins = sliced(context, longer, batch, batch + batch)
    return ends, op.Mul(begins, cast(context, has, TensorProto.INT64))


def seen_keys(context: Context, queries: Number, keys: Number, *, to_last: bool) -> Value:
    """Return whether a query sees a key that is not after it, bool of [queries, keys].

    Args:
        context: the node.
        queries: how many queries there are.
        keys: how many keys.
        to_last: whether the last query sees all keys.
    """
    op = context.op
    if (
        isinstance(queries, int)
        and isinstance(keys, int)
        and is_small(queries, keys, most=_LARGEST)
    ):
        seen = np.tri(queries, keys, dtype=np.bool_)
        if to_last:
            seen[-1:] = True
        return context.array(seen, "seen")
    places = Value(arange(context, queries), context)
    limits = places
    if to_last:
        last = op.Equal(places, as_name(context, queries - 1))
        limits = op.Where(last, as_name(context, keys), places)
    return op.LessOrEqual(arange(context, keys), unsqueezed(context, limits, [1]))
