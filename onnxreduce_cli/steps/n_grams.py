"""TfIdfVectorizer, below the opset that it came with."""

from __future__ import annotations

import itertools

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.steps.births import born, reduced, refuse, unsqueezed
from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Array, Blocked, Context

#: For slicing to the end, whatever the length.
_END = 2**31 - 1


@born(
    "TfIdfVectorizer",
    9,
    "n-grams of integers compared at every place, and counted",
    blocks="it counts strings, the rank is not known, or it is open which weight is whose",
)
def n_grams(context: Context) -> None:
    """``TfIdfVectorizer<mode="TF", ...>(x)`` becomes
    ``ReduceSum(And(Equal(x[:-1], first of each), Equal(x[1:], second of each)))`` for 2-grams and
    no skips; what longer n-grams and skips give is joined and added.
    """
    if context.attribute("pool_strings") is not None:
        raise refuse(context, "tells what is in a string")
    places = np.array(context.value("ngram_indexes"), np.int64)
    weights = context.value("weights")
    mode = context.value("mode")
    if weights and mode != "TF" and places.tolist() != list(range(len(weights))):
        raise Blocked(
            "its weights are for its n-grams by the specification, for the coordinates in "
            "runtimes, and the two are in different orders",
            "sort the n-grams by their coordinates",
        )
    pool = [(grams, at) for grams, at in _pool(context) if len(grams)]
    if not pool:
        raise Blocked("it has no n-grams of the lengths that it counts", "mend the model")
    counts = [(_count(context, grams), at) for grams, at in pool]
    size = int(places.max()) + 1
    total = ""
    for count, at in counts:
        spread = np.zeros((len(at), size), np.float32)
        spread[np.arange(len(at)), places[at]] = 1
        part = context.emit("MatMul", [count, context.array(spread, "coordinates")], "part")
        total = context.emit("Add", [total, part], "counts") if total else part
    if mode == "IDF":
        found = context.emit("Greater", [total, context.scalar(0.0, "none")], "is_found")
        total = cast(context, found, TensorProto.FLOAT)
    factors = np.array(weights if weights and mode != "TF" else [1], np.float32)
    context.replace("Mul", [total, context.array(factors, "weights")], keep=())


def _pool(context: Context) -> list[tuple[Array, list[int]]]:
    """The n-grams for each n that counts, one in a row, and which of them all they are."""
    pool = context.value("pool_int64s")
    starts = [*context.value("ngram_counts"), len(pool)]
    found, first = [], 0
    for n, (start, end) in enumerate(itertools.pairwise(starts), 1):
        grams = np.array(pool[start:end], np.int64).reshape(-1, n)
        if context.value("min_gram_length") <= n <= context.value("max_gram_length"):
            found.append((grams, list(range(first, first + len(grams)))))
        first += len(grams)
    return found


def _count(context: Context, grams: Array) -> str:
    """How often each n-gram is found: a float for each along a last dimension."""
    data = context.input(0)
    axis = context.need_rank(data, "the last dimension is the sequence") - 1
    if context.elem_type(data) != TensorProto.INT64:
        data = cast(context, data, TensorProto.INT64)
    sequence = unsqueezed(context, data, [axis + 1])
    n = grams.shape[1]
    total = ""
    for step in range(1, 2 if n == 1 else context.value("max_skip_count") + 2):
        hits = ""
        for index in range(n):
            wanted = context.array(grams[:, index], "wanted")
            end = (index + 1 - n) * step or _END
            part = sequence
            if n > 1:
                starts, ends = [index * step], [end]
                part = context.emit(
                    "Slice", [sequence], "part", axes=[axis], starts=starts, ends=ends
                )
            equal = context.emit("Equal", [part, wanted], "equal")
            hits = context.emit("And", [hits, equal], "hits") if hits else equal
        numbers = cast(context, hits, TensorProto.FLOAT)
        count = reduced(context, "ReduceSum", numbers, [axis], keep=False)
        total = context.emit("Add", [total, count], "count") if total else count
    return total
