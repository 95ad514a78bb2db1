"""TfIdfVectorizer below opset 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import blockers, converts, one_node

X = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8], [2, 3, 5, 4, 2, 3]])
UNI_AND_BI: dict[str, Any] = {
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
}
TRI: dict[str, Any] = {
    "pool_int64s": [3, 6, 7, 3, 3, 3, 7, 6, 8],
    "ngram_counts": [0, 1, 3],
    "ngram_indexes": [2, 0, 5, 3],
}


@pytest.mark.parametrize("pool", [UNI_AND_BI, TRI])
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(("lengths", "skips"), [((2, 2), 0), ((1, 3), 5)])
def test_n_grams(pool: dict[str, Any], mode: str, lengths: tuple[int, int], skips: int) -> None:
    lengths = lengths[0], min(lengths[1], len(pool["ngram_counts"]))
    settings = {
        "mode": mode,
        "min_gram_length": lengths[0],
        "max_gram_length": lengths[1],
        "max_skip_count": skips,
        **pool,
    }
    for x in (X, X[0], X.astype(np.int32), X[:, :1]):
        source = one_node("TfIdfVectorizer", 9, {"x": x}, **settings)
        converts(source, 8, {"x": x})
    inputs = {"x": X}
    source = one_node("TfIdfVectorizer", 9, inputs, shapes={"x": ["n", "c"]}, **settings)
    for target in (8, 7):
        converts(source, target, inputs)


def test_weights() -> None:
    settings = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, **UNI_AND_BI}
    settings["weights"] = [0.5, 2.0, 3.0, -1.0, 0.25, 8.0, 1.5]
    for mode in ("TF", "IDF", "TFIDF"):
        source = one_node("TfIdfVectorizer", 9, {"x": X}, mode=mode, **settings)
        converts(source, 7, {"x": X})
    settings["ngram_indexes"] = [6, 5, 4, 3, 2, 1, 0]
    (blocker,) = blockers(one_node("TfIdfVectorizer", 9, {"x": X}, mode="IDF", **settings), 8)
    assert "in different orders" in blocker.reason
    settings |= {"min_gram_length": 3, "max_gram_length": 3}
    (blocker,) = blockers(one_node("TfIdfVectorizer", 9, {"x": X}, mode="TF", **settings), 8)
    assert "no n-grams of the lengths that it counts" in blocker.reason


def test_strings() -> None:
    texts = np.array(["a", "b"], object)
    settings = {"min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "mode": "TF"}
    source = one_node(
        "TfIdfVectorizer",
        9,
        {"x": texts},
        pool_strings=["a"],
        ngram_counts=[0],
        ngram_indexes=[0],
        **settings,
    )
    assert "nothing before opset 9 tells what is in a string" in blockers(source, 8)[0].reason
