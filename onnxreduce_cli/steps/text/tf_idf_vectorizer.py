"""TfIdfVectorizer below opset 9, which introduced it: all n-grams compared with the pool."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT
from onnxreduce_cli.emit.refusals import no_equivalent
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.steps.registry import introduced

#: Beyond the end of every dimension.
_END = 2**63 - 1

#: The most distances between the elements of n-grams that are written out.
_MOST_STEPS = 1000


@introduced(
    "TfIdfVectorizer",
    9,
    "n-grams cut out by Slice, compared with those of the pool and counted",
    blocks="it is of strings, weights of one column differ, or over 1,000 elements may be skipped",
)
def tf_idf_vectorizer(context: Context) -> None:
    """``TfIdfVectorizer<pool_int64s=[5, 6], ngram_counts=[0, 0], ...>(x)`` becomes
    ``ReduceSum(Cast(And(Equal(Unsqueeze(x[:-1]), [5]), Equal(Unsqueeze(x[1:]), [6]))))``, times
    its weight.
    """
    if context.value("pool_strings"):
        raise no_equivalent(context, "compares strings")
    data = context.input(0)
    rank = context.specialised_rank(data)
    elem_type = context.need_elem_type(data, "it is compared with 64-bit integers")
    context = context.at(13)
    op = context.op
    if elem_type != TensorProto.INT64:
        data = cast(context, data, TensorProto.INT64)
    if rank == 0:
        data, rank = op.Reshape(data, context.array([1], "one")), 1
    last = -1 if rank is None else rank - 1
    coordinates = _coordinates(context)
    size = max(coordinates) + 1
    counts_by_length: list[str] = []
    numbers: list[int] = []
    for grams in _pool(context):
        counts_by_length.append(
            _n_gram_counts(context, data, last, np.array(list(grams), np.int64))
        )
        numbers += grams.values()
    if not counts_by_length:
        equal = cast(context, op.Equal(data, data), TensorProto.FLOAT)
        counts_by_length.append(reduced(context, "ReduceSum", equal, [last], keep=True))
    counts = counts_by_length[0]
    if len(counts_by_length) > 1:
        counts = op.Concat(*counts_by_length, axis=last)
    weights = _pool_weights(context)
    if context.value("mode") != "IDF":
        if weights and numbers:
            factors = context.array(np.array([weights[n] for n in numbers], np.float32), "weights")
            counts = op.Mul(counts, factors)
        column_indices = [coordinates[number] for number in numbers]
        context.replace(
            "Identity", [_in_columns(context, counts, column_indices, last, size)], keep=()
        )
        return
    counts = _in_columns(context, counts, [coordinates[number] for number in numbers], last, size)
    occurs = op.Greater(counts, context.scalar(0.0, "zero"))
    if not weights:
        context.replace("Cast", [occurs], keep=(), to=TensorProto.FLOAT)
        return
    factors = context.array(_weights_of_columns(weights, coordinates), "weights")
    context.replace("Mul", [cast(context, occurs, TensorProto.FLOAT), factors], keep=())


def _pool_weights(context: Context) -> list[float]:
    """Return the weights of the n-grams of the pool; an empty list where all counts keep theirs."""
    return [] if context.value("mode") == "TF" else list(context.value("weights") or ())


def _weights_of_columns(weights: list[float], coordinates: list[int]) -> np.ndarray:
    """Return the weight of each column of the output, float of shape [columns].

    Args:
        weights: the weights of the n-grams of the pool.
        coordinates: the column in which each of these is counted.

    Raises:
        Blocked: n-grams of one column have different weights.
    """
    by_column = np.zeros(max(coordinates) + 1, np.float32)
    seen: dict[int, float] = {}
    for weight, column in zip(weights, coordinates, strict=True):
        if seen.setdefault(column, weight) != weight:
            raise Blocked(
                f"n-grams with different weights are counted in one column, {column}, and its "
                "definition does not say which of the weights scales it in mode IDF",
                "give every n-gram a column of its own in ngram_indexes",
            )
        by_column[column] = weight
    return by_column


def _coordinates(context: Context) -> list[int]:
    """Return the column in which each n-gram of the pool is counted.

    Raises:
        Blocked: the attributes do not fit each other.
    """
    coordinates = list(context.value("ngram_indexes"))
    bounds = [0, *context.value("ngram_counts"), len(context.value("pool_int64s") or ())]
    if bounds != sorted(bounds):
        raise Blocked(
            f"its ngram_counts {bounds[1:-1]} are not ascending",
            "mend the model: give it ascending ones, at most as many as its pool has items",
        )
    grams = sum(
        (end - start) // length for length, (start, end) in enumerate(pairwise(bounds[1:]), 1)
    )
    given = {len(coordinates), len(context.value("weights") or coordinates)}
    if not grams or given != {grams}:
        raise Blocked(
            f"its pool has {grams} n-grams, but its ngram_indexes or weights have "
            f"{min(given - {grams}, default=0)} elements",
            "mend the model: give each n-gram of its pool an index and a weight",
        )
    if not 0 <= min(coordinates) <= max(coordinates) < LARGEST_CONSTANT:
        reason = f"its ngram_indexes are not all from 0 to {LARGEST_CONSTANT - 1:,}"
        raise Blocked(reason, "mend the model: give it indexes within these")
    return coordinates


def _pool(context: Context) -> list[dict[tuple[int, ...], int]]:
    """Return the n-grams of the pool with their indices in it, in one dict for each length.

    Lengths that the node does not count, or that the pool has no n-grams of, are left out.
    """
    pool = context.value("pool_int64s")
    bounds = [*context.value("ngram_counts"), len(pool)]
    lengths = range(context.value("min_gram_length"), context.value("max_gram_length") + 1)
    number, pools = 0, []
    for length, (start, end) in enumerate(pairwise(bounds), 1):
        grams = [tuple(pool[at : at + length]) for at in range(start, end - length + 1, length)]
        if grams and length in lengths:
            pools.append({gram: number + index for index, gram in enumerate(grams)})
        number += len(grams)
    return pools


def _n_gram_counts(context: Context, data: str, last: int, grams: np.ndarray) -> str:
    """Return how often each n-gram occurs, float of shape [..., count].

    Args:
        context: the context of the node.
        data: the tensor to search, int64 of shape [..., size].
        last: its last axis, -1 where the rank is not known.
        grams: the n-grams, int64 of shape [count, length].
    """
    op = context.op
    context.warn("each element is compared with each n-gram: memory for all those pairs")
    dims = dims_of(context, data)
    size = dims[-1] if dims else None
    length = grams.shape[1]
    # Single elements are the same whatever is skipped.
    most = context.value("max_skip_count") + 1 if length > 1 else 1
    if isinstance(size, int) and length > 1:
        most = max(1, min(most, (size - 1) // (length - 1)))
    if most > _MOST_STEPS:
        raise Blocked(
            f"its n-grams may skip up to {most - 1:,} elements, and {_MOST_STEPS - 1:,} are "
            "the most that are written out, each in nodes of its own",
            "lower its max_skip_count, or state the shape of its input in the model's value_info",
        )
    total = ""
    for step in range(1, most + 1):
        hits = ""
        for position in range(length):
            part = data
            if length > 1:
                remaining = (length - 1 - position) * step
                bounds = [position * step, -remaining if remaining else _END, last]
                part = op.Slice(data, *(context.array([number], "bound") for number in bounds))
            expected = context.array(np.ascontiguousarray(grams[:, position]), "wanted")
            hit = op.Equal(unsqueezed(context, part, [last + 1 or -1]), expected)
            hits = op.And(hits, hit) if hits else hit
        number = cast(context, hits, TensorProto.FLOAT)
        count = reduced(context, "ReduceSum", number, [last if last >= 0 else -2], keep=False)
        total = op.Add(total, count) if total else count
    return total


def _in_columns(
    context: Context, counts: str, column_indices: list[int], last: int, size: int
) -> str:
    """Return the counts in the columns of the output, float of shape [..., size].

    Counts of one column are added; columns of no n-gram are 0.

    Args:
        context: the context of the node.
        counts: the count of each n-gram, float of shape [..., n-grams].
        column_indices: the column of each.
        last: the last axis.
        size: the number of columns.
    """
    op = context.op
    if column_indices == list(range(size)):
        return counts
    columns: list[list[int]] = [[] for _ in range(size)]
    for column, column_index in enumerate(column_indices):
        columns[column_index].append(column)
    total = ""
    for layer in range(max(map(len, columns)) or 1):
        has_layer = [layer < len(column) for column in columns]
        indices = [
            column[layer] if has else 0 for column, has in zip(columns, has_layer, strict=True)
        ]
        part = op.Gather(counts, context.array(indices, "at"), axis=last)
        if not all(has_layer):
            mask = context.array(np.array(has_layer, np.float32), "mask")
            part = op.Mul(part, mask)
        total = op.Add(total, part) if total else part
    return total
