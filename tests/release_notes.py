"""Prints what the changelog says of the version that a tag names; refuses a tag that is no release.

python -m tests.release_notes v0.1.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: Where the package says its version. It is read, as what builds a release has not installed it.
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)

#: A heading of the changelog: a version, and the day of its release or "unreleased".
_HEADING = re.compile(r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", re.MULTILINE)


def version() -> str:
    """Return the version that the package says."""
    (found,) = _VERSION.findall((ROOT / "onnxreduce_cli" / "__init__.py").read_text("utf-8"))
    return str(found)


def changelog() -> str:
    """Return the text of the changelog."""
    return (ROOT / "CHANGELOG.md").read_text("utf-8")


def headings(text: str) -> list[tuple[str, str]]:
    """Return the versions of a changelog, the newest first, each with its day or "unreleased"."""
    return _HEADING.findall(text)


def release_notes(tag: str, version: str, text: str) -> str:
    """Return what the changelog says of the newest version.

    Args:
        tag: the tag that is to release it.
        version: the version that the package says.
        text: the changelog.

    Raises:
        ValueError: the tag, the package and the changelog do not name one version, or the
            changelog has no day for it.
    """
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, and onnxreduce_cli/__init__.py says {version}")
    newest, day = headings(text)[0]
    if newest != version:
        raise ValueError(f"the tag is {tag}, and CHANGELOG.md begins with {newest}")
    if day == "unreleased":
        raise ValueError(
            f"CHANGELOG.md calls {version} unreleased; write the day there: 2026-01-31"
        )
    return _HEADING.split(text)[3].strip()


if __name__ == "__main__":
    try:
        print(release_notes(sys.argv[1], version(), changelog()))
    except ValueError as error:
        sys.exit(f"nothing is released: {error}")
