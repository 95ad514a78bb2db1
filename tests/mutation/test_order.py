"""What killed mutants nearby comes first, then the quickest test of each function."""

from __future__ import annotations

from tests.mutation.order import in_order, within

SECONDS = {"f[1]": 1.0, "f[2]": 2.0, "g": 3.0, "h[1]": 0.5, "h[2]": 0.25, "far": 0.125}
NEARBY = SECONDS.keys() - {"far"}


def test_order() -> None:
    order = in_order(SECONDS.keys(), SECONDS, [], NEARBY)
    assert order == ["h[2]", "f[1]", "g", "h[1]", "f[2]", "far"]
    order = in_order({"f[1]", "g", "h[1]"}, SECONDS, ["f[2]", "f[1]", "g", "f[1]"], NEARBY)
    assert order == ["f[1]", "g", "h[1]"]


def test_seconds() -> None:
    order = ["g", "f[1]", "f[2]"]
    assert list(within(order, SECONDS, 2.5)) == ["g"]
    assert list(within(order, SECONDS, 3.5)) == ["g", "f[1]"]
    assert list(within(order, SECONDS, 9.0)) == order
