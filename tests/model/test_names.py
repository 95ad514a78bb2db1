"""Names of values."""

from __future__ import annotations

import pytest

from onnxreduce_cli.model.names import without_absent_last


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        (["x", "", "axes", "", ""], ["x", "", "axes"]),
        (["", ""], []),
        ([], []),
        (["", "y"], ["", "y"]),
    ],
)
def test_only_those_at_the_end_are_left_out(inputs: list[str], found: list[str]) -> None:
    assert without_absent_last(iter(inputs)) == found
