"""Sentences of a source that restrict an operator, and the conditions that stand for them here.

No sentence is copied: a few digits stand for it, so that a changed one is noticed.
"""

from __future__ import annotations

import re
from hashlib import sha1


def digest(text: str) -> str:
    """Return a few digits that stand for a sentence, whatever its markup."""
    plain = re.sub(r"<br ?/?>|[^A-Za-z0-9<>=-]+", " ", text).strip().lower()
    return sha1(plain.encode()).hexdigest()[:6]


def restrictions_of(text: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """Read lines of an operator, the digest of a sentence on it, and the names of conditions."""
    lines = [line.split() for line in text.strip().splitlines()]
    return {(name, mark): tuple(conditions) for name, mark, *conditions in lines}
