"""Strings that are not UTF-8, which protobuf's Python interface gives as `bytes`."""

from __future__ import annotations

from collections.abc import Iterable


def is_text(value: str | bytes) -> bool:
    """Return whether a field's value is UTF-8."""
    if isinstance(value, str):
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def first_no_text(names: Iterable[str | bytes]) -> bytes | None:
    """Return the first of a field's strings that is not UTF-8; None if all are."""
    for name in names:
        if isinstance(name, bytes):
            return name
    return None
