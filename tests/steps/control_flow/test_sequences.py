"""What is taken from sequences, below opset 11."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, model, op_types

X = np.arange(24, dtype=np.float32).reshape(2, 6, 2)
HEAD = '<ir_version: 8, opset_import: ["": 13]> '


@pytest.mark.parametrize("target", [7, 9, 10])
@pytest.mark.parametrize(
    ("split", "at"),
    [
        ("<int64 by = {4}, int64 at = {1}>", "SplitToSequence<axis = 1>(x, by)"),
        ("<int64 by = {4}, int64 at = {-2}>", "SplitToSequence<axis = -2>(x, by)"),
        ("<int64[3] by = {1, 2, 3}, int64 at = {-2}>", "SplitToSequence<axis = 1>(x, by)"),
        ("<int64[3] by = {1, 2, 3}, int64 at = {0}>", "SplitToSequence<axis = 1>(x, by)"),
        ("<int64 at = {1}>", "SplitToSequence<axis = 1>(x)"),
        ("<int64 at = {5}>", "SplitToSequence<axis = 1, keepdims = 0>(x)"),
        ("<int64 at = {1}>", "SequenceConstruct(x, x2)"),
    ],
)
def test_a_part_of_a_known_sequence(target: int, split: str, at: str) -> None:
    dims = "[a, b]" if "keepdims" in at else "[a, b, c]"
    source = model(
        f"{HEAD}g (float[2, 6, 2] x) => (float{dims} y) {split} "
        f"{{ x2 = Neg(x)  parts = {at}  y = SequenceAt(parts, at) }}"
    )
    result = converts(source, target, {"x": X}, exact=True)
    assert not any("Sequence" in op_type for op_type in op_types(result))
    assert "Loop" not in op_types(result)


def test_a_part_of_a_tensor_of_unknown_size() -> None:
    text = (
        HEAD + "g (float[n, m] x) => (float[k, m] y) <int64 by = {{2}}, int64 at = {{{at}}}>"
        "{{ parts = SplitToSequence<axis = 0>(x, by)  y = SequenceAt(parts, at) }}"
    )
    converts(model(text.format(at=1)), 9, {"x": X[0]}, exact=True)
    converts(model(text.format(at=-1)), 9, {"x": X[0]}, {"x": X[0, :5]}, exact=True)


@pytest.mark.parametrize("new_axis", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_known_sequence_put_together(axis: int, new_axis: int) -> None:
    dims = "[a, b, c, d]" if new_axis else "[a, b, c]"
    source = model(
        f"{HEAD}g (float[2, 6, 2] x) => (float{dims} y) {{ x2 = Neg(x)  "
        "parts = SequenceConstruct(x, x2)  "
        f"y = ConcatFromSequence<axis = {axis}, new_axis = {new_axis}>(parts) }}"
    )
    converts(source, 9, {"x": X}, exact=True)


def test_a_position_known_at_run_time() -> None:
    source = model(
        HEAD + "g (float[2, 6, 2] x, int64 at) => (float[a, b, c] y) "
        "{ parts = SplitToSequence<axis = 1>(x)  y = SequenceAt(parts, at) }"
    )
    feeds = [{"x": X, "at": np.array(at)} for at in (0, 5, -2)]
    converts(source, 9, *feeds, exact=True)


def test_a_sequence_map_and_an_optional_value() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 6, 2] x) => (float[2, 6, 2] y, bool has) {
            parts = SplitToSequence<axis = 1>(x)
            made = SequenceMap(parts) <body = b (float[2, 1, 2] a) => (float[2, 1, 2] d) {
                d = Neg(a)
            }>
            z = ConcatFromSequence<axis = 1>(made)
            o = Optional(z)
            y = OptionalGetElement(o)
            has = OptionalHasElement(o)
        }"""
    )
    for target in (16, 14, 9):
        converts(source, target, {"x": X}, exact=True)


def test_the_advice_names_the_opset() -> None:
    source = model(
        '<ir_version: 8, opset_import: ["": 20]> g (string[2] x) => (bool[2] y) '
        '{ y = RegexFullMatch<pattern = "a+">(x) }'
    )
    (blocker,) = blockers(source, 19)
    assert blocker.advice == "choose opset 20 or later"
