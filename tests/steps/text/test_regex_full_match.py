"""RegexFullMatch below opset 20."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, one_node

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
