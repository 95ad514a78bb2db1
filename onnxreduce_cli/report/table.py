"""Tables for a terminal, with cells wrapped where a row is wider than it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from onnxreduce_cli.text import character_width, columns, printable, shortened, width

#: The blanks between columns, and the least width of a column in a row that is too long.
_GAP, _LEAST = 2, 8

#: The width in a pipe or a file, where programs read line by line: enough for every row.
_PIPED = 10_000

#: Longer cells are cut.
_LONGEST = 300


def table(rows: Iterable[Sequence[str]], *, indent: int = 0, total: int = 0) -> str:
    """Return rows as lines, with their cells in columns.

    Where a row is too long its widest cells are wrapped, at blanks if there are any.

    Args:
        rows: the cells of each row; absent ones at its end are empty.
        indent: how many blanks stand before each line.
        total: the width in characters; 0 for that of the terminal, or no limit without one.
    """
    cells = [[shortened(printable(cell), _LONGEST) for cell in row] for row in rows]
    count = max(map(len, cells), default=0)
    cells = [[*row, *[""] * (count - len(row))] for row in cells]
    wanted = [max(width(row[index]) for row in cells) for index in range(count)]
    given = _fitted(wanted, (total or columns(_PIPED)) - indent - _GAP * (count - 1))
    return "\n".join(" " * indent + line for row in cells for line in _lines(row, given))


def _fitted(wanted: Sequence[int], total: int) -> list[int]:
    """Return widths of columns that fit: the widest become narrower first, none below the least."""
    given = list(wanted)
    while sum(given) > total:
        widest = max(range(len(given)), key=given.__getitem__)
        if given[widest] <= _LEAST:
            break
        given[widest] = max(_LEAST, given[widest] - max(1, (sum(given) - total) // len(given)))
    return given


def _lines(row: Sequence[str], given: Sequence[int]) -> Iterator[str]:
    wrapped = [list(_wrapped(cell, limit)) for cell, limit in zip(row, given, strict=True)]
    for index in range(max(map(len, wrapped), default=0)):
        parts = [lines[index] if index < len(lines) else "" for lines in wrapped]
        padded = [
            part + " " * (limit - width(part)) for part, limit in zip(parts, given, strict=True)
        ]
        yield (" " * _GAP).join(padded).rstrip()


def _wrapped(text: str, limit: int) -> Iterator[str]:
    """Yield a text as lines that are no wider than a limit."""
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if width(longer) <= limit:
            line = longer
            continue
        if line:
            yield line
        line = word
        while width(line) > limit:
            head = _head(line, limit)
            yield line[:head]
            line = line[head:]
    yield line


def _head(text: str, limit: int) -> int:
    """Return how many characters of a text fit, at least one."""
    taken = 0
    for index, character in enumerate(text):
        taken += character_width(character)
        if taken > limit:
            return max(index, 1)
    return len(text)
