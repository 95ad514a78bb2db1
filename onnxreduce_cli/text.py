"""Text that may come from a model or a file's name, made fit for people and their terminals.

Names in a model are anybody's: they may hold newlines, which forge a line of ours, sequences that a
terminal obeys, characters that turn the reading direction round, and be as long as the file.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size

#: Longer names are cut where they are part of a sentence.
NAME = 200

#: Longer lines are cut.
LINE = 1_900

#: Columns that lines are wrapped to where there is no terminal, and the fewest of one.
_COLUMNS, _FEWEST = 100, 40

#: Names in a list of several are cut where they are longer, and left out after the first few.
_LISTED = 60
LISTED = 3

#: What differs between texts that say the same: what is quoted, in brackets, and numbers.
_VALUES = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|(?<![\w.])-?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?(?![\w])"""

#: Categories of the marks that join with, or shape, the character before them.
_NO_WIDTH = ("Mn", "Me", "Cf")

#: A word, and the blanks after it.
_WORD = r"([^ ]+)( *)"

#: An option to type, with its value.
_OPTION = r"(?<!\S)(--[a-z-]+) (\S+)"


def columns(elsewhere: int = _COLUMNS) -> int:
    """How many columns lines may have: those of the terminal, or as ``COLUMNS`` says.

    Args:
        elsewhere: how many they may have in a pipe or a file.
    """
    if os.environ.get("COLUMNS", "").isdigit() or (sys.stdout is not None and sys.stdout.isatty()):
        return max(get_terminal_size((_COLUMNS, 24)).columns, _FEWEST)
    return elsewhere


def as_text(value: str | bytes) -> str:
    """Return what a file says as text; protobuf gives bytes that are not UTF-8 as they are."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def printable(text: str) -> str:
    """Return a text in one line, with an escape such as ``\\x1b`` for whatever cannot be seen."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, limit: int = NAME) -> str:
    """Return a text that is too long without its middle, of which it says how long that was.

    Args:
        text: the text.
        limit: how many characters of it are kept; a few more where leaving them out saves nothing.
    """
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    cut = f"{text[:head]} [... {len(text) - limit} characters ...] {text[-tail:]}"
    return cut if len(cut) < len(text) else text


def quoted(name: str | bytes) -> str:
    """Return a name in quotes, without its middle where it is too long; bytes if it is no text."""
    return shortened(repr(name))


def joined(lines: Iterable[str]) -> str:
    """Join lines that are printed: each stays one line, whatever it quotes, and is not too long."""
    # What is escaped is longer than what it stands for.
    return "\n".join(shortened(printable(shortened(line, LINE)), LINE) for line in lines)


def wrapped(lines: Iterable[str], elsewhere: int = _COLUMNS) -> str:
    """Join lines as `joined` does, each over several where it is longer than the terminal.

    What follows of a line stands further in than the line, so that nothing that it quotes looks
    like a line of its own. An option to type stays together with its value.

    Args:
        lines: the lines.
        elsewhere: how many columns they may have in a pipe or a file.
    """
    found, total = list[str](), columns(elsewhere)
    for line in joined(lines).split("\n"):
        text = line.lstrip(" ")
        indent = " " * (len(line) - len(text))
        found += _over_lines(re.sub(_OPTION, r"\1\0\2", text), total, indent)
    return "\n".join(found).replace("\0", " ")


def _over_lines(text: str, total: int, indent: str) -> list[str]:
    """A text broken at blanks where it is wider than so many columns, with its indent."""
    lines, line, begun = list[str](), indent, False
    for word, blanks in re.findall(_WORD, text.rstrip()):
        if begun and width(f"{line}{word}") > total:
            lines.append(line.rstrip())
            line = f"{indent}    "
        line, begun = f"{line}{word}{blanks}", True
    return [*lines, line.rstrip()]


def width(text: str) -> int:
    """How many columns of a terminal a text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(map(character_width, text))


def character_width(character: str) -> int:
    """How many columns of a terminal a character takes."""
    import unicodedata  # Hardly any text needs it.

    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def listed(names: Sequence[str], total: int = 0) -> str:
    """``a, b, c and 197 more``: the first names, and how many follow.

    Args:
        names: the names, or the first `LISTED` of them at least.
        total: how many there are; by default those given.
    """
    first = ", ".join(shortened(name, _LISTED) for name in names[:LISTED])
    total = total or len(names)
    return f"{first} and {total - LISTED:,} more" if total > LISTED else first


def count(number: int, noun: str) -> str:
    """``1 node``, ``1,024 nodes``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(size: int) -> str:
    """``1.2 MB``; below 10 kB to the byte."""
    if size < 10_000:
        return f"{size:,} bytes"
    for unit, factor in (("kB", 10**3), ("MB", 10**6)):
        if size < 1000 * factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 10**9:,.1f} GB"


def without_values(text: str) -> str:
    """Return a text with ``...`` for what it quotes, for lists and for numbers."""
    return re.sub(_VALUES, "...", text)


def common_text(texts: Sequence[str]) -> str:
    """Return what texts that differ in values alone all say, with ``...`` where they differ."""
    found = list(dict.fromkeys(texts))
    values = zip(*[re.findall(_VALUES, item) for item in found], strict=False)
    kept = iter([those[0] if len(set(those)) == 1 else "..." for those in values])
    return re.sub(_VALUES, lambda _: next(kept, "..."), found[0])


def html_table(rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table for notebooks; whatever the cells hold is text there.

    Args:
        rows: the cells of each; those of the first row are its head.
        caption: what stands above; may be empty.
    """
    from html import escape

    lines = ["<table>"]
    if caption:
        lines.append(f"<caption>{escape(printable(caption))}</caption>")
    for index, row in enumerate(rows):
        tag = "td" if index else "th"
        cells = "".join(
            f'<{tag} style="text-align: left">{escape(printable(str(cell)))}</{tag}>'
            for cell in row
        )
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</table>"])
