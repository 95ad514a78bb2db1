"""What `survivors.md` says of changes: why no test can notice them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

#: A row of the table: files, texts that changed lines contain, and why it is the same.
_ROW = re.compile(r"\| `([^`]+)` \| (.*`.+`.*) \| (.+) \|")


class Explained:
    """The changes that are explained.

    Attributes:
        rows: the files, and the texts of each of which one is in the changed line, as it was not
            before.
    """

    def __init__(self, text: str) -> None:
        """Read the text of `survivors.md`."""
        self.rows = [
            (f"onnxreduce_cli/{row[1]}", [*map(_plain, re.findall("`([^`]+)`", row[2]))])
            for row in map(_ROW.fullmatch, text.splitlines())
            if row
        ]

    def covers(self, path: str, change: Sequence[str]) -> bool:
        """Return whether a change is explained.

        Args:
            path: the file, relative to the root.
            change: the lines that it takes away, each after a "-", and those that it adds, after a
                "+".
        """
        before, after = (
            _plain("".join(line[1:] for line in change if line[0] == sign)) for sign in "-+"
        )
        return any(
            fnmatch.fnmatch(path, files) and text in after and text not in before
            for files, texts in self.rows
            for text in texts
        )


def _plain(text: str) -> str:
    """Text without its spaces, of which changes have more, and without a table's escapes."""
    return re.sub(r"\s+", "", text.replace(r"\|", "|"))
