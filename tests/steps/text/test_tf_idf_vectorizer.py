"""TfIdfVectorizer below opset 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import blockers, converts, model, one_node, op_types

RANDOM = np.random.default_rng(8)

#: Single elements, pairs and triples; the places have gaps and one that is hit twice.
POOL = {
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7, 1, 2, 3, 1, 1, 1],
    "ngram_counts": [0, 4, 10],
    "ngram_indexes": [0, 1, 3, 2, 5, 6, 4, 9, 2],
}
WEIGHTS = [0.5, 2.0, 0.25, 1.0, 3.0, -1.0, 1.5, 0.0, 9.0]


def node(x: np.ndarray, shape: Any = None, **more: Any) -> Any:
    shapes = {} if shape is None else {"x": shape}
    attributes = {**POOL, "min_gram_length": 1, "max_gram_length": 3, "max_skip_count": 0, **more}
    outputs = [[None] * x.ndim]
    return one_node(
        "TfIdfVectorizer", 9, {"x": x}, shapes=shapes, output_shapes=outputs, **attributes
    )


def drawn(*shape: int, dtype: Any = np.int64) -> np.ndarray:
    return RANDOM.integers(1, 9, shape).astype(dtype)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_tf_idf_vectorizer(mode: str, weights: Any) -> None:
    more: dict[str, Any] = {"mode": mode}
    if weights:
        more |= {"weights": weights, "ngram_indexes": [8, 1, 3, 2, 5, 6, 4, 7, 0]}
    for skip, (least, most) in ((0, (1, 3)), (3, (1, 2)), (2, (2, 3)), (5, (1, 1))):
        more |= {"max_skip_count": skip, "min_gram_length": least, "max_gram_length": most}
        for dtype in (np.int64, np.int32):
            row, rows = drawn(40, dtype=dtype), drawn(3, 40, dtype=dtype)
            for target in (8, 7):
                for x in (row, rows):
                    converts(node(x, **more), target, {"x": x}, exact=True, in_numpy=bool(weights))


@pytest.mark.parametrize("skip", [0, 3])
def test_tf_idf_vectorizer_of_any_length(skip: int) -> None:
    more = {"mode": "TF", "max_skip_count": skip}
    for length in (40, 7, 5, 3, 2, 1):
        rows = drawn(3, length)
        named = node(rows, ["n", "c"], **more)
        converts(named, 8, {"x": rows}, exact=True)
        converts(node(rows, **more), 8, {"x": rows}, exact=True)
        converts(node(rows[0], ["c"], **more), 8, {"x": rows[0]}, exact=True)


@pytest.mark.parametrize("mode", ["TF", "IDF"])
def test_tf_idf_vectorizer_of_unknown_rank(mode: str) -> None:
    settings = ", ".join(f"{name} = {value}" for name, value in POOL.items())
    source = model(
        '<ir_version: 4, opset_import: ["" : 9]> g (int64[n] flat, int64[r] shape) => '
        f'(float[a, b] y) {{ x = Reshape (flat, shape) y = TfIdfVectorizer <mode = "{mode}", '
        f"min_gram_length = 1, max_gram_length = 3, max_skip_count = 1, {settings}> (x) }}"
    )
    flat = drawn(40)
    for shape in ((4, 10), (40,), (20, 2)):
        for target in (8, 7):
            converts(source, target, {"flat": flat, "shape": np.array(shape)}, exact=True)


def test_tf_idf_vectorizer_of_pairs_in_order() -> None:
    """Nothing is moved where the places are those of the pool; no n-gram may be left."""
    x = drawn(2, 12)
    pool = {"pool_int64s": [1, 2, 3, 4], "ngram_counts": [0, 0], "ngram_indexes": [0, 1]}
    more = {"mode": "TF", "min_gram_length": 2, "max_gram_length": 2, **pool}
    assert "Gather" not in op_types(converts(node(x, **more), 8, {"x": x}, exact=True))
    more |= {"min_gram_length": 1, "max_gram_length": 1}
    converts(node(x, **more), 8, {"x": x}, exact=True)


def test_tf_idf_vectorizer_with_weights_of_shared_places() -> None:
    """A weight is that of an n-gram, not of its place; ONNX Runtime 1.23 mixes them up."""
    x = drawn(2, 40)
    for weights in (WEIGHTS, [2.0] * 9):
        source = node(x, mode="TFIDF", weights=weights)
        converts(source, 8, {"x": x}, exact=True, in_numpy=True)
    source = node(x, mode="IDF", weights=[2.0] * 9)
    converts(source, 8, {"x": x}, exact=True, in_numpy=True)
    (blocker,) = blockers(node(x, mode="IDF", weights=WEIGHTS), 8)
    assert "n-grams with different weights are counted in one column, 2" in str(blocker)


def test_tf_idf_vectorizer_of_strings() -> None:
    more = {"pool_strings": ["a", "b"], "ngram_counts": [0], "ngram_indexes": [0, 1]}
    x = np.array(["a", "b"], object)
    source = one_node(
        "TfIdfVectorizer",
        9,
        {"x": x},
        output_shapes=[[2]],
        mode="TF",
        min_gram_length=1,
        max_gram_length=1,
        max_skip_count=0,
        **more,
    )
    (blocker,) = blockers(source, 8)
    assert "nothing before opset 9 compares strings" in str(blocker)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ngram_indexes": [0, 1, 3]},
        {"ngram_indexes": [0, 1, 3, 2, 5, 6, 4, 9, 1 << 40]},
        {"ngram_counts": [0, 10, 4]},
        {"ngram_counts": [-4, 4, 10]},
        {"weights": [1.0], "mode": "TFIDF"},
    ],
)
def test_attributes_that_do_not_fit_each_other(wrong: dict[str, Any]) -> None:
    x = np.array([1, 2, 3])
    source = node(x, **{"mode": "TF", **wrong})
    (blocker,) = blockers(source, 8)
    assert "mend the model" in str(blocker)


def test_what_is_skipped_ends_with_the_row() -> None:
    x = drawn(7)
    more = {"mode": "TF", "max_skip_count": (1 << 31) - 1}
    converts(node(x, **more), 8, {"x": x}, exact=True, in_numpy=True)
    (blocker,) = blockers(node(x, ["c"], **more), 8)
    assert "skip up to 2,147,483,647 elements" in blocker.reason
