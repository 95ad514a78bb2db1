"""The README and the pages of the documentation, and the code that stands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"

#: Pages whose commands follow on each other; elsewhere each stands for itself.
SESSIONS = ("start.md", "verifying.md", "files.md", "recipes/")


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        language: what its fence says, such as ``sh`` or ``{terminal}``; empty if it is indented.
        lines: its lines, without options.
        ends: the exit code that its commands shall have.
    """

    language: str
    lines: tuple[str, ...]
    ends: int = 0


def pages() -> dict[str, Path]:
    """The README, and the pages written by hand, by what they are called here."""
    found = {"README.md": ROOT / "README.md"}
    for path in sorted(DOCS.rglob("*.md")):
        name = path.relative_to(DOCS).as_posix()
        if not name.startswith(("_build/", "generated/")):
            found[name] = path
    return found


def is_session(name: str) -> bool:
    """Whether the commands of a page follow on each other."""
    return name.startswith(SESSIONS)


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of a page, fenced or indented."""
    text = path.read_text(encoding="utf-8")
    pattern = r"^```([^\n]*)\n(.*?)^```$|(?<=\n\n)((?:    [^\n]*\n|\n(?=    ))+)"
    for language, fenced, indented in re.findall(pattern, text, flags=re.M | re.S):
        lines = dedent(indented).splitlines() if indented else fenced.splitlines()
        options = [line for line in lines if line.startswith(":")]
        ends = next((int(line.split()[1]) for line in options if line.startswith(":exit:")), 0)
        rest = tuple(line for line in lines if line.strip() and line not in options)
        if language == "python" or (indented and lines[0].startswith(("import ", "from "))):
            yield Block("python", tuple(lines))
        else:
            yield Block(language.strip(), rest, ends)


def commands(path: Path) -> Iterator[tuple[str, int]]:
    """The lines of a page that are typed, without their comments, and how they shall end."""
    for block in blocks(path):
        if block.language in ("", "sh", "{terminal}"):
            for line in block.lines:
                yield line.partition("  #")[0].strip(), block.ends


def python(path: Path) -> Iterator[str]:
    """The Python code of a page."""
    for block in blocks(path):
        if block.language == "python":
            yield "\n".join(block.lines)
