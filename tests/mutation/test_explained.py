"""The table in `survivors.md` is read as it is meant."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest

from tests.mutation.explained import Explained

ROOT = Path(__file__).parents[2]
TABLE = r"""
| in `onnxreduce_cli/` | changed to | why it is the same |
|---|---|---|
| `model/*.py` | `a != b`, `a \| b` | they are |
"""


@pytest.mark.parametrize(
    ("path", "before", "after", "explained"),
    [
        ("onnxreduce_cli/model/a.py", "if a < b:", "if a !=  b:", True),
        ("onnxreduce_cli/model/a.py", "if a & b:", "if a | b:", True),
        ("onnxreduce_cli/model/a.py", "if a & b:", "if a ^ b:", False),
        ("onnxreduce_cli/model/a.py", "if a != b or a | c:", "if a != b or a & c:", False),
        ("onnxreduce_cli/engine/a.py", "if a < b:", "if a != b:", False),
    ],
)
def test_what_is_explained(path: str, before: str, after: str, explained: bool) -> None:
    assert Explained(TABLE).covers(path, [f"-{before}", f"+{after}"]) is explained


def test_each_row_is_of_files_that_there_are() -> None:
    text = Path(__file__).with_name("survivors.md").read_text(encoding="utf-8")
    rows = Explained(text).rows
    assert len(rows) == text.partition("why it is the same")[2].count("\n|") - 1
    paths = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("onnxreduce_cli/**/*.py")]
    for files, texts in rows:
        assert fnmatch.filter(paths, files), files
        assert texts
