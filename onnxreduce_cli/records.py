"""Dataclasses that are quickly made.

Python's own compile each method of each class where it is imported, the six of a frozen one in most
of a millisecond, and a conversion needs some thirty. Of these only the constructor is compiled; the
other methods look at the fields.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        given: type | None = None, *, frozen: bool = False, repr: bool = True, slots: bool = False
    ) -> Any:
        """The decorator `dataclasses.dataclass`, but for what few need of it.

        Of a frozen class one must not derive one that is not frozen.
        """

        def made(owner: type) -> type:
            owner = dataclasses.dataclass(eq=False, repr=False, slots=slots)(owner)
            methods: dict[str, Any] = {"__eq__": _equal, "__hash__": _hash if frozen else None}
            if frozen:
                methods |= {"__setattr__": _set, "__delattr__": _delete}
            if repr:
                methods["__repr__"] = _shown
            own = vars(owner)
            for name, method in methods.items():
                if name not in own:
                    setattr(owner, name, method)
            return owner

        return made if given is None else made(given)


def _compared(record: Any) -> tuple[Any, ...]:
    fields = dataclasses.fields(record)
    return tuple([getattr(record, item.name) for item in fields if item.compare])


def _equal(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _compared(self) == _compared(other)


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _shown(self: Any) -> str:
    fields = [item.name for item in dataclasses.fields(self) if item.repr]
    shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in fields])
    return f"{type(self).__qualname__}({shown})"


def _set(self: Any, name: str, value: object) -> None:
    """Set a field once, which the constructor does."""
    if name in vars(self) or name not in self.__dataclass_fields__:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
