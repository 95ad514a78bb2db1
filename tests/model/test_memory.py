"""Limits of this process's memory."""

from __future__ import annotations

import sys

import pytest

from onnxreduce_cli.model import memory
from onnxreduce_cli.model.memory import data_limited

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only there a process limits its memory"
)

ROOM = 200_000_000


def limit() -> int:
    import resource

    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def test_what_goes_beyond_the_room_fails_and_what_is_within_does_not() -> None:
    before = limit()
    with data_limited(ROOM):
        bytearray(ROOM // 2)
        with pytest.raises(MemoryError):
            bytearray(2 * ROOM)
    assert limit() == before
    bytearray(2 * ROOM)


def test_a_limit_around_holds_on() -> None:
    before = limit()
    with data_limited(ROOM):
        outer = limit()
        with data_limited(10 * ROOM):
            assert limit() == outer
        with data_limited(ROOM // 4):
            assert limit() < outer
        assert limit() == outer
    assert limit() == before


def test_the_limit_is_lifted_after_a_failure() -> None:
    before = limit()
    with pytest.raises(MemoryError), data_limited(ROOM):
        bytearray(2 * ROOM)
    assert limit() == before


def test_where_nothing_tells_what_there_is_nothing_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: str, mode: str) -> None:
        raise PermissionError(path)

    before = limit()
    monkeypatch.setattr(memory, "open", refuse, raising=False)
    with data_limited(ROOM):
        assert limit() == before
