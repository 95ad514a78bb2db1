"""StringNormalizer below opset 10."""

from __future__ import annotations

import numpy as np

from tests.support import blockers, converts, one_node, op_types


def test_string_normalizer() -> None:
    inputs = {"x": np.array([["monday", "Tuesday"]], object)}
    source = one_node("StringNormalizer", 10, inputs, case_change_action="NONE")
    for target in (9, 7):
        assert op_types(converts(source, target, inputs, exact=True)) == ["Identity"]
    for settings, what in (
        ({"case_change_action": "LOWER"}, "changes the case of strings"),
        ({"stopwords": ["monday"]}, "leaves out strings by what they are"),
    ):
        (blocker,) = blockers(one_node("StringNormalizer", 10, inputs, **settings), 9)
        assert blocker.reason == f"nothing before opset 10 {what}"
