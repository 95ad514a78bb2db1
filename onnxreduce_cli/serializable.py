"""Dataclasses of results as plain data, which JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar


class Serializable:
    """The base class of dataclasses that reports are made of.

    What its fields become is described by ``report/schemas``.

    Attributes:
        EXTRA_FIELDS: properties that are serialised beside the fields.
        OMITTED_FIELDS: fields that are left out because the report has their content elsewhere.
    """

    EXTRA_FIELDS: ClassVar[tuple[str, ...]] = ()
    OMITTED_FIELDS: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name as data for `json.dumps`, as ``--json`` prints them."""
        return {name: as_plain_data(getattr(self, name)) for name in field_names(type(self))}


def field_names(owner: type) -> list[str]:
    """Return the names of the serialised fields and properties of a dataclass, in order."""
    omitted = getattr(owner, "OMITTED_FIELDS", ())
    names = [item.name for item in fields(owner) if item.name not in omitted]
    return [*names, *getattr(owner, "EXTRA_FIELDS", ())]


def as_plain_data(value: Any) -> Any:
    """Return a value as data that JSON can hold; NaN and infinities become strings."""
    if is_dataclass(value):
        return {name: as_plain_data(getattr(value, name)) for name in field_names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): as_plain_data(item) for key, item in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Collection):
        return [as_plain_data(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
