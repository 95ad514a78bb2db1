"""TfIdfVectorizer: counts of n-grams. Source: definition 9."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from onnxreduce_cli.executor.dtypes import FLOAT32, FLOAT64, Array
from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.registry import Call, kernel


@kernel("TfIdfVectorizer", 9)
def tf_idf_vectorizer(call: Call, x: Array) -> Array:
    """Count the n-grams of the pool in each row, with distances from 1 to max_skip + 1.

    The count of the i-th n-gram is at index `ngram_indexes[i]`. Mode IDF has 1 for any positive
    count; IDF and TFIDF multiply by `weights[i]`.
    """
    if x.ndim > 2:
        raise Invalid(f"rank is {x.ndim}, it must be 1 or 2")
    places = call.attrs["ngram_indexes"]
    weights = call.attrs.get("weights") or (1.0,) * len(places)
    if len(weights) != len(places):
        raise Invalid(f"{len(weights)} weights are given for {len(places)} n-grams")
    mode = call.attrs["mode"]
    pool = _pool(call)
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    counts = np.zeros((len(rows), len(places)), FLOAT64)
    for counted, row in zip(counts, rows.tolist(), strict=True):
        for gram in _grams(call, row):
            if gram in pool:
                counted[pool[gram]] += 1
    total = np.zeros((len(rows), max(places) + 1), FLOAT64)
    scale = np.ones(len(places)) if mode == "TF" else np.array(weights)
    if mode == "IDF" and len(set(zip(places, scale, strict=True))) > len(set(places)):
        raise NotSupported("n-grams of one place have different weights")
    for count, place, weight in zip(counts.T, places, scale, strict=True):
        if mode == "IDF":
            total[count > 0, place] = weight
        else:
            total[:, place] += count * weight
    result = total.astype(FLOAT32)
    return result[0] if x.ndim < 2 else result


def _pool(call: Call) -> dict[tuple[object, ...], int]:
    """Return the n-grams of the pool with their numbers."""
    items = call.attrs.get("pool_int64s") or call.attrs.get("pool_strings") or ()
    bounds = [*call.attrs["ngram_counts"], len(items)]
    found: dict[tuple[object, ...], int] = {}
    number = 0
    for length, (start, end) in enumerate(pairwise(bounds), 1):
        for at in range(start, end - length + 1, length):
            found[tuple(items[at : at + length])] = number
            number += 1
    return found


def _grams(call: Call, row: list[object]) -> list[tuple[object, ...]]:
    """Return every n-gram of the wanted lengths; single elements once, for any distance."""
    found: list[tuple[object, ...]] = []
    longest = min(call.attrs["max_gram_length"], len(row))
    for length in range(call.attrs["min_gram_length"], longest + 1):
        most = min(call.attrs["max_skip_count"] + 1, len(row)) if length > 1 else 1
        for step in range(1, most + 1):
            starts = range(len(row) - (length - 1) * step)
            found += [tuple(row[at : at + (length - 1) * step + 1 : step]) for at in starts]
    return found
