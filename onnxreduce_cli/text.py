"""Text that may come from a model or a file's name, made fit for people and their terminals.

Names in a model are anybody's: they may hold newlines, which forge a line of ours, sequences that a
terminal obeys, characters that turn the reading direction round, and be as long as the file.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Longer names are cut where they are part of a sentence.
NAME = 200

#: Longer lines are cut.
LINE = 1_900


def printable(text: str) -> str:
    """Return a text in one line, with an escape such as ``\\x1b`` for whatever cannot be seen."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, limit: int = NAME) -> str:
    """Return a text that is too long without its middle, of which it says how long that was.

    Args:
        text: the text.
        limit: how many characters of it are kept.
    """
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]} [... {len(text) - limit} characters ...] {text[-tail:]}"


def quoted(name: str | bytes) -> str:
    """Return a name in quotes, without its middle where it is too long; bytes if it is no text."""
    return shortened(repr(name))


def joined(lines: Iterable[str]) -> str:
    """Join lines that are printed: each stays one line, whatever it quotes, and is not too long."""
    # What is escaped is longer than what it stands for.
    return "\n".join(shortened(printable(shortened(line, LINE)), LINE) for line in lines)
