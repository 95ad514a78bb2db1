"""A process for calls that may end it, or not end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from tests.apart import Apart, EndedError, LateError


@pytest.fixture
def apart() -> Iterator[Apart]:
    found = Apart()
    yield found
    found.end()


def test_a_call_gives_what_its_function_does(apart: Apart) -> None:
    assert apart.call(divmod, 7, 2, seconds=60) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        apart.call(divmod, 7, 0, seconds=60)


def test_a_call_that_ends_the_process_costs_that_call(apart: Apart) -> None:
    with pytest.raises(EndedError):
        apart.call(os.abort, seconds=60)
    assert apart.call(abs, -1, seconds=60) == 1


def test_a_call_that_takes_too_long_is_ended(apart: Apart) -> None:
    with pytest.raises(LateError):
        apart.call(time.sleep, 600, seconds=0.1)
    assert apart.call(abs, -1, seconds=60) == 1
