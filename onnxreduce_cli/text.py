"""Texts from models and names of files, made safe and short for people and terminals.

Names in a model may contain newlines, which forge lines of messages, control sequences that a
terminal obeys, and characters that reverse the reading direction; they may be as long as the file.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size

#: Longer names are cut in sentences.
NAME = 200

#: Longer lines are cut.
LINE = 1_900

#: The width of lines where there is no terminal, and the least width of a terminal.
_COLUMNS, _FEWEST = 100, 40

#: In a list of names longer ones are cut, and those after the first few are counted.
_LISTED = 60
LISTED = 3

#: Values in a message: quoted texts, lists in brackets, and numbers.
_VALUES = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|(?<![\w.])-?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?(?![\w])"""

#: Unicode categories of characters without width, such as combining marks.
_NO_WIDTH = ("Mn", "Me", "Cf")

#: A word, and the blanks after it.
_WORD = r"([^ ]+)( *)"

#: An option to type, with its value.
_OPTION = r"(?<!\S)(--[a-z-]+) (\S+)"


def columns(elsewhere: int = _COLUMNS) -> int:
    """Return the width of lines: that of the terminal, or the variable ``COLUMNS``.

    Args:
        elsewhere: the width in a pipe or a file.
    """
    if os.environ.get("COLUMNS", "").isdigit() or (sys.stdout is not None and sys.stdout.isatty()):
        return max(get_terminal_size((_COLUMNS, 24)).columns, _FEWEST)
    return elsewhere


def as_text(value: str | bytes) -> str:
    """Return a string of a protobuf message as text, also where it is not UTF-8 but bytes."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def printable(text: str) -> str:
    """Return a text in one line, with escapes such as ``\\x1b`` for invisible characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, limit: int = NAME) -> str:
    """Return a text with the middle left out if it is too long, and the length of that noted.

    Args:
        text: the text.
        limit: how many characters are kept; all are if the note is no shorter than the middle.
    """
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    cut = f"{text[:head]} [... {len(text) - limit} characters ...] {text[-tail:]}"
    return cut if len(cut) < len(text) else text


def quoted(name: str | bytes) -> str:
    """Return a name in quotes, shortened if it is too long; bytes as Python writes them."""
    return shortened(repr(name))


def joined(lines: Iterable[str]) -> str:
    """Join lines for printing: each stays one line, whatever it quotes, and is cut if too long."""
    # Shortened twice, as escapes are longer than the characters that they stand for.
    return "\n".join(shortened(printable(shortened(line, LINE)), LINE) for line in lines)


def wrapped(lines: Iterable[str], elsewhere: int = _COLUMNS) -> str:
    """Join lines as `joined` does, and wrap those that are wider than the terminal.

    Continuation lines are indented, so that no quoted text looks like a line of its own. An option
    to type stays together with its value.

    Args:
        lines: the lines.
        elsewhere: the width in a pipe or a file.
    """
    found, total = list[str](), columns(elsewhere)
    for line in joined(lines).split("\n"):
        text = line.lstrip(" ")
        indent = " " * (len(line) - len(text))
        found += _over_lines(re.sub(_OPTION, r"\1\0\2", text), total, indent)
    return "\n".join(found).replace("\0", " ")


def _over_lines(text: str, total: int, indent: str) -> list[str]:
    """Return a text as indented lines, broken at blanks where it is wider than `total`."""
    lines, line, begun = list[str](), indent, False
    for word, blanks in re.findall(_WORD, text.rstrip()):
        if begun and width(f"{line}{word}") > total:
            lines.append(line.rstrip())
            line = f"{indent}    "
        line, begun = f"{line}{word}{blanks}", True
    return [*lines, line.rstrip()]


def width(text: str) -> int:
    """Return the width of a text in a terminal: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(map(character_width, text))


def character_width(character: str) -> int:
    """Return the width of a character in a terminal."""
    import unicodedata  # Hardly any text needs it.

    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def listed(names: Sequence[str], total: int = 0) -> str:
    """Return the first names and how many follow: ``a, b, c and 197 more``.

    Args:
        names: the names, or at least the first `LISTED` of them.
        total: how many there are in all, if `names` are not all.
    """
    first = ", ".join(shortened(name, _LISTED) for name in names[:LISTED])
    total = total or len(names)
    return f"{first} and {total - LISTED:,} more" if total > LISTED else first


def nearest(name: str, known: Iterable[str], most: int = LISTED) -> list[str]:
    """Return the known names that a mistyped one may stand for, whatever its case, best first."""
    from difflib import get_close_matches  # Hardly any command needs it.

    spelled = {item.lower(): item for item in known}
    return [spelled[item] for item in get_close_matches(name.lower(), spelled, most)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question for a mistyped name, after a semicolon; empty if no name is near."""
    near = nearest(name, known)
    return f"; did you mean {listed(near)}?" if near else ""


def count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 node``, ``1,024 nodes``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(size: int) -> str:
    """Return a number of bytes as text: ``1.2 MB``; exact below 10 kB."""
    if size < 10_000:
        return f"{size:,} bytes"
    for unit, factor in (("kB", 10**3), ("MB", 10**6)):
        if size < 1000 * factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 10**9:,.1f} GB"


def without_values(text: str) -> str:
    """Return a text with ``...`` in place of quoted texts, lists and numbers."""
    return re.sub(_VALUES, "...", text)


def common_text(texts: Sequence[str], *, lists: bool = False) -> str:
    """Return the text that several have in common, with ``...`` for values in which they differ.

    Args:
        texts: the texts.
        lists: write the first quoted values one after the other, as options take them.
    """
    found = list(dict.fromkeys(texts))
    values = zip(*[re.findall(_VALUES, item) for item in found], strict=False)
    kept = iter([_common_value(list(dict.fromkeys(those)), lists) for those in values])
    return re.sub(_VALUES, lambda _: next(kept, "..."), found[0])


def _common_value(those: Sequence[str], lists: bool) -> str:
    if len(those) == 1:
        return those[0]
    if not lists or not all(item[0] in "'\"" for item in those):
        return "..."
    return ",".join([*those[:LISTED], *(["..."] if len(those) > LISTED else [])])


def html_table(rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Return an HTML table for notebooks, with the cells' texts escaped.

    Args:
        rows: the cells of each row; the first row is the head.
        caption: the caption; may be empty.
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
