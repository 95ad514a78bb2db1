"""Parts of one long run of bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onnxreduce_cli.model.byte_parts import PADDING, ByteParts

#: Of few letters, and up to some words long: many are equal, or nearly so.
texts = st.lists(st.text("ab", max_size=3) | st.text("ab", min_size=7, max_size=25), min_size=1)


def _parts(found: list[str]) -> ByteParts:
    content = np.frombuffer("".join(found).encode() + PADDING, np.uint8)
    sizes = np.array([len(item) for item in found])
    return ByteParts(content, np.cumsum(sizes) - sizes, sizes)


@given(texts)
def test_equal_parts_have_one_place(found: list[str]) -> None:
    places = _parts(found).equal().tolist()
    assert [found[place] for place in places] == found
    assert len({*places}) == len({*found})


@given(texts, st.data())
def test_parts_of_two_kinds_are_not_equal(found: list[str], data: st.DataObject) -> None:
    one = st.integers(0, 1)
    kinds = data.draw(st.lists(one, min_size=len(found), max_size=len(found)))
    places = _parts(found).equal(np.array(kinds)).tolist()
    rows = [*zip(found, kinds, strict=True)]
    assert [rows[place] for place in places] == rows
    assert len({*places}) == len({*rows})


@given(texts, st.text("ab", max_size=20))
def test_the_places_of_a_part(found: list[str], part: str) -> None:
    for wanted in (part, found[0]):
        expected = [place for place, item in enumerate(found) if item == wanted]
        assert _parts(found).places(wanted.encode()).tolist() == expected
