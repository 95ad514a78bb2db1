"""Tables on a terminal: columns as wide as what they show, their cells wrapped where need be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from onnxreduce_cli.text import character_width, columns, printable, shortened, width

#: Between columns, and the least that one keeps where there is too much in all.
_GAP, _LEAST = 2, 8

#: In a pipe or a file lines have room for every row: what reads them goes by lines.
_PIPED = 10_000

#: Cells are cut where they have more characters.
_LONGEST = 300


def table(rows: Iterable[Sequence[str]], *, indent: int = 0, total: int = 0) -> str:
    """Lines with the cells of rows below each other.

    Where a row is too long its widest cells are wrapped, at blanks as far as there are any.

    Args:
        rows: the cells; of each row as many, or fewer.
        indent: how many blanks stand before each line.
        total: how many columns there are; 0 for those of the terminal, and no end elsewhere.
    """
    cells = [[shortened(printable(cell), _LONGEST) for cell in row] for row in rows]
    count = max(map(len, cells), default=0)
    cells = [[*row, *[""] * (count - len(row))] for row in cells]
    wanted = [max(width(row[index]) for row in cells) for index in range(count)]
    given = _fitted(wanted, (total or columns(_PIPED)) - indent - _GAP * (count - 1))
    return "\n".join(" " * indent + line for row in cells for line in _lines(row, given))


def _fitted(wanted: Sequence[int], total: int) -> list[int]:
    """Widths that fit: the widest give way first, none below the least."""
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
    """A text over several lines, none wider than a limit."""
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
    """How many characters of a text fit; one at least."""
    taken = 0
    for index, character in enumerate(text):
        taken += character_width(character)
        if taken > limit:
            return max(index, 1)
    return len(text)
