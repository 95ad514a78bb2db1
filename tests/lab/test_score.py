"""The figures of what was measured."""

from __future__ import annotations

from lab.measured import LEFT_OUT, load, pairs
from lab.score import score


def test_what_was_measured() -> None:
    found = score(load())
    assert (found.runtimes, found.pairs, found.best) == (38, 3057, 2722)
    assert found.exported == {"right": 1794, "wrong": 392, "refused": 871}


def test_right_without_the_batch_axis_is_right_and_what_dies_refuses() -> None:
    source = {"op": "Abs", "form": "f", "source_opset": 13}
    outcomes = {"right-shape": [11], "crash": [13]}
    measured = {"sources": {"a": source}, "results": {"one-1.0": {"a": outcomes}}}
    found = score(measured)
    assert (found.exported["refused"], found.best) == (1, 1)


def test_what_is_left_out_was_measured() -> None:
    measured = load()
    assert set(measured["results"]) >= LEFT_OUT
    assert len(list(pairs(measured, left_out=frozenset()))) > 3057
