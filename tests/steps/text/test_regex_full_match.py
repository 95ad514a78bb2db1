"""RegexFullMatch below opset 20, StringNormalizer below 10."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, one_node, op_types

X = np.array([["cat", "dog", ""], ["a cat", "Cat", "bird"]], object)


@pytest.mark.parametrize("pattern", ["cat", "cat|dog", "cat||bird", ""])
def test_regex_full_match(pattern: str) -> None:
    source = one_node("RegexFullMatch", 20, {"x": X}, pattern=pattern)
    for target in (19, 18, 11):
        converts(source, target, {"x": X}, exact=True)


@pytest.mark.parametrize("pattern", ["c.t", "(cat)", "cat$", r"cat\\b", "[c]at", "ca?t"])
def test_patterns(pattern: str) -> None:
    (blocker,) = blockers(one_node("RegexFullMatch", 20, {"x": X}, pattern=pattern), 19)
    assert blocker.reason == "nothing before opset 20 matches patterns"


def test_string_normalizer() -> None:
    inputs = {"x": np.array([["monday", "Tuesday"]], object)}
    source = one_node("StringNormalizer", 10, inputs, case_change_action="NONE")
    for target in (9, 7):
        assert op_types(converts(source, target, inputs, exact=True)) == ["Identity"]
    for settings, what in (
        ({"case_change_action": "LOWER"}, "changes the case of strings"),
        ({"stopwords": ["monday"]}, "picks strings by their letters"),
    ):
        (blocker,) = blockers(one_node("StringNormalizer", 10, inputs, **settings), 9)
        assert blocker.reason == f"nothing before opset 10 {what}"
