"""TfIdfVectorizer of the executor: what its text says and onnx's cases leave out."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli.executor import UnsupportedError
from tests.support import one_node, run

X = np.array([5, 4, 2, 5, 4, 3, 2])


def counted(mode: str, places: list[int], weights: list[float]) -> list[float]:
    source = one_node(
        "TfIdfVectorizer",
        9,
        {"x": X},
        mode=mode,
        min_gram_length=1,
        max_gram_length=1,
        max_skip_count=3,
        pool_int64s=[2, 3, 5, 4],
        ngram_counts=[0],
        ngram_indexes=places,
        weights=weights,
    )
    found: list[float] = run(source, {"x": X}, in_numpy=True)["y0"].tolist()
    return found


def test_a_weight_is_that_of_an_ngram_not_of_a_place() -> None:
    weights = [10.0, 20.0, 30.0, 40.0]
    assert counted("TF", [2, 0, 1, 3], weights) == [1, 2, 2, 2]
    assert counted("IDF", [2, 0, 1, 3], weights) == [20, 30, 10, 40]
    assert counted("TFIDF", [2, 0, 1, 3], weights) == [20, 60, 20, 80]
    assert counted("TFIDF", [2, 0, 2, 4], weights) == [20, 0, 80, 0, 80]


def test_ngrams_of_one_place_are_one() -> None:
    assert counted("IDF", [2, 0, 2, 4], [7.0] * 4) == [7, 0, 7, 0, 7]
    with pytest.raises(UnsupportedError, match="different weights"):
        counted("IDF", [2, 0, 2, 4], [1.0, 2.0, 3.0, 4.0])
