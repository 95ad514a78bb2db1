"""Dataclasses of `onnxreduce_cli.records` are as those of Python."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from functools import cached_property

import pytest

from onnxreduce_cli import records


@records.dataclass(frozen=True)
class Quick:
    """A class of ours."""

    name: str
    sizes: tuple[int, ...] = ()
    text: str = dataclasses.field(default="", compare=False, repr=False)

    @cached_property
    def total(self) -> int:
        return sum(self.sizes)


@records.dataclass(frozen=True, repr=False)
class Derived(Quick):
    """One with another field, and a text of its own."""

    more: dict[str, int] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        return "derived"


@records.dataclass
class Changing:
    """One that changes."""

    names: list[str]


@records.dataclass(slots=True)
class Slotted:
    """One without a dict."""

    number: int = 0


def test_equal_values_are_equal() -> None:
    assert Quick("a", (1,), "x") == Quick("a", (1,), "y") != Quick("a", (2,), "x")
    assert hash(Quick("a", (1,), "x")) == hash(Quick("a", (1,), "y"))
    assert Quick("a") != Derived("a") != "a"
    assert len({Quick("a"), Quick("a"), Quick("b")}) == 2
    assert Changing([]) == Changing([])
    assert Slotted(1) != Slotted(2)


def test_how_it_is_shown() -> None:
    assert repr(Quick("a", (1,), "x")) == "Quick(name='a', sizes=(1,))"
    assert repr(Derived("a")) == "derived"
    assert repr(Slotted(1)) == "Slotted(number=1)"


def test_frozen_is_frozen() -> None:
    found = Derived("a", more={"b": 1})
    for name in ("name", "more", "other"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"assign to field '{name}'"):
            setattr(found, name, 1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="delete field 'name'"):
        del found.name
    assert (found.name, found.total, found.more) == ("a", 0, {"b": 1})


def test_what_changes_has_no_hash() -> None:
    changing, slotted = Changing([]), Slotted()
    changing.names, slotted.number = ["a"], 2
    assert (changing.names, slotted.number) == (["a"], 2)
    for item in (changing, slotted):
        with pytest.raises(TypeError, match="unhashable"):
            hash(item)
    with pytest.raises(AttributeError):
        slotted.other = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("item", [Quick("a", (1,)), Derived("a"), Changing(["b"]), Slotted(3)])
def test_what_python_does_with_dataclasses(item: Quick | Derived | Changing | Slotted) -> None:
    for same in (pickle.loads(pickle.dumps(item)), copy.copy(item), copy.deepcopy(item)):
        assert same == item
        assert same is not item
    name = dataclasses.fields(item)[0].name
    value = getattr(item, name)
    assert dataclasses.replace(item, **{name: value}) == item
    assert dataclasses.asdict(item)[name] == value
    assert type(item).__match_args__[0] == name
