"""What an Attention adds to its scores: the mask, and minus infinity for keys that are ahead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, is_small
from onnxreduce_cli.emit.sizes import known_size
from onnxreduce_cli.model.graph.values import numpy_dtype

#: Which keys a query sees is a constant of at most so many elements, and else computed.
_LARGEST = 1 << 14
#: The opset that introduced Trilu.
_TRILU = 14


class Bias(NamedTuple):
    """The tensor that is added to the scores of an attention.

    Attributes:
        name: a tensor in the dtype of the scores, that broadcasts to them.
        unseeing: bool, whether a query sees no key at all, of size 1 in the last dimension; empty
            where each sees one.
    """

    name: str
    unseeing: str


class Causal(NamedTuple):
    """The sizes of a causal attention: a query sees the keys that are not after it.

    Attributes:
        scores: a tensor of the shape [batch, heads, queries, keys].
        past: the keys of the past, of shape [batch, heads, past, size]; empty where there are none.
        queries: how many there are, if that is known.
        own_keys: how many keys there are beside those of the past, if that is known.
    """

    scores: Value
    past: Value
    queries: int | None
    own_keys: int | None


def attention_bias(
    context: Context, mask: Value, elem_type: int, causal: Causal | None
) -> Bias | None:
    """Return what is added to scores; None where that is nothing.

    Args:
        context: the context of the node.
        mask: its mask, bool or numbers of any dtype; empty where it has none.
        elem_type: the dtype of the scores.
        causal: what is known of the order of queries and keys, where that matters.
    """
    known = context.constant(mask) if mask and causal is None else None
    if known is not None:
        return _constant(context, known, elem_type)
    seen = None if causal is None else _seen(context, causal)
    if not mask:
        # Each query sees the first key.
        return None if seen is None else Bias(_excluding(context, seen, elem_type), "")
    op = context.op
    kind = context.need_elem_type(mask, "what it leaves out depends on it")
    if kind == TensorProto.BOOL:
        both = mask if seen is None else op.And(mask, seen)
        name = _excluding(context, both, elem_type)
    else:
        name = mask if kind == elem_type else cast(context, mask, elem_type)
        if seen is not None:
            name = op.Add(name, _excluding(context, seen, elem_type))
    highest = reduced(context, "ReduceMax", name, [-1], keep=True)
    return Bias(name, op.Equal(highest, context.scalar(-np.inf, "excluded", elem_type)))


def _constant(context: Context, mask: Array, elem_type: int) -> Bias:
    """Return what a constant mask adds."""
    numbers = np.where(mask, 0.0, -np.inf) if mask.dtype == np.bool_ else mask
    with np.errstate(over="ignore"):
        bias = np.asarray(numbers).astype(numpy_dtype(elem_type))
    unseeing = (bias == -np.inf).all(-1, keepdims=True)
    name = context.array(bias, "mask")
    return Bias(name, context.array(unseeing, "unseeing") if unseeing.any() else "")


def _excluding(context: Context, seen: str, elem_type: int) -> Value:
    """Return 0 where a key is seen, else minus infinity."""
    zero = context.scalar(0.0, "zero", elem_type)
    return context.op.Where(seen, zero, context.scalar(-np.inf, "excluded", elem_type))


def _seen(context: Context, causal: Causal) -> Value:
    """Return whether a key is not after a query, bool of shape [queries, keys]."""
    op, scores, queries = context.op, causal.scores, causal.queries
    past = known_size(context, causal.past, 2) if causal.past else 0
    keys = None if past is None or causal.own_keys is None else past + causal.own_keys
    if queries is not None and keys is not None:
        if is_small(queries, keys, most=_LARGEST):
            return context.array(np.tri(queries, keys, past or 0, dtype=np.bool_), "seen")
    elif context.reaches(_TRILU):
        true = numpy_helper.from_array(np.ones(1, np.bool_))
        whole = op.ConstantOfShape(_last_two(context, scores), value=true)
        return op.Trilu(whole, _past_length(context, causal.past) if past != 0 else None, upper=0)
    shape = op.Shape(scores) if queries is None or keys is None else Value("", context)
    place = unsqueezed(context, _position_numbers(context, queries, shape, 2), [1])
    if past != 0:
        place = op.Add(place, _past_length(context, causal.past))
    return op.LessOrEqual(_position_numbers(context, keys, shape, 3), place)


def _last_two(context: Context, scores: str) -> Value:
    """Return the last two of four dimensions, int64 of shape [2]."""
    if context.op.opset >= 15:
        return context.op.Shape(scores, start=2)
    return context.op.Gather(context.op.Shape(scores), context.array([2, 3], "last_two"), axis=0)


def _past_length(context: Context, past: Value) -> Value:
    """Return how many keys are past, an int64 of rank 0."""
    known = known_size(context, past, 2)
    if known is not None:
        return context.scalar(known, "past")
    return context.op.Gather(context.op.Shape(past), context.scalar(2, "axis"), axis=0)


def _position_numbers(context: Context, count: int | None, shape: str, axis: int) -> Value:
    """Return the numbers from 0 to before a dimension: `count`, or else that of a shape."""
    if count is not None and count <= LARGEST_CONSTANT:
        return context.array(np.arange(count, dtype=np.int64), "places")
    end = (
        context.op.Gather(shape, context.scalar(axis, "axis"), axis=0)
        if count is None
        else context.scalar(count, "count")
    )
    return context.op.Range(context.scalar(0, "zero"), end, context.scalar(1, "one"))
