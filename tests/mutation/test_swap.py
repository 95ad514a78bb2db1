"""Functions do what their changed code says, and what is more than that is told."""

from __future__ import annotations

from types import CodeType, ModuleType

import pytest

from tests.mutation.swap import Functions, outermost

TEXT = """
LIMIT = 3

class Box:
    size = 4

    def area(self, times=2):
        return times * sum(self.size for _ in range(self.size))

def near(a, b):
    def close():
        return abs(a - b) < 1
    return close()
"""


def compiled(old: str = "", new: str = "") -> CodeType:
    return compile(TEXT.replace(old, new, 1), "swapped.py", "exec")


@pytest.mark.parametrize(
    ("old", "new", "area", "is_near"),
    [
        ("return times *", "return times +", 18, False),
        ("self.size for", "-self.size for", -32, False),
        ("range(self.size)", "[]", 0, False),
        ("a - b", "a * b", 32, True),
        ("return close()", "return not close()", 32, True),
    ],
)
def test_a_change_of_a_function(old: str, new: str, area: int, is_near: bool) -> None:
    module = ModuleType("swapped")
    exec(compiled(), module.__dict__)
    box = module.Box()
    assert (box.area(), module.near(0, 2)) == (32, False)
    functions, codes = Functions(), outermost(compiled(), compiled(old, new))
    assert codes
    assert functions.known(next(iter(codes)))
    functions.swap(codes)
    assert (box.area(), module.near(0, 2)) == (area, is_near)


@pytest.mark.parametrize(
    ("old", "new"), [("LIMIT = 3", "LIMIT = 4"), ("size = 4", "size = 5"), ("times=2", "times=3")]
)
def test_a_change_of_what_runs_on_import(old: str, new: str) -> None:
    assert outermost(compiled(), compiled(old, new)) is None


def test_no_change() -> None:
    assert outermost(compiled(), compiled()) == {}
    assert not Functions().known(compile("def never(a): pass", "none.py", "exec").co_consts[0])
