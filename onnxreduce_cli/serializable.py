"""Results as plain data, which JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar


class Told:
    """What a dataclass of results is derived from, so that it can be told as plain data.

    Reports are made of it, whatever form they take: see ``docs/schemas``.

    Attributes:
        ALSO_TOLD: properties that are told beside the fields.
        NOT_TOLD: fields that are not told, as the same report says it elsewhere.
    """

    ALSO_TOLD: ClassVar[tuple[str, ...]] = ()
    NOT_TOLD: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """What it holds by name, as ``--json`` prints it: for `json.dumps`."""
        return {name: plain(getattr(self, name)) for name in told_names(type(self))}


def told_names(owner: type) -> list[str]:
    """The names of the fields and properties of a dataclass that are told, in order."""
    left_out = getattr(owner, "NOT_TOLD", ())
    names = [item.name for item in fields(owner) if item.name not in left_out]
    return [*names, *getattr(owner, "ALSO_TOLD", ())]


def plain(value: Any) -> Any:
    """A value as data that JSON can hold; numbers that JSON lacks become strings."""
    if is_dataclass(value):
        return {name: plain(getattr(value, name)) for name in told_names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Collection):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
