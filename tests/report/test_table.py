"""Tables on terminals of several widths."""

from __future__ import annotations

import pytest

from onnxreduce_cli.report.table import table
from onnxreduce_cli.text import width

ROWS = [
    ("MODEL", "RESULT", ""),
    ("models/encoder.onnx", "converted", "opset 18 to 13, 4 nodes changed; all checked " * 3),
    ("模型/編碼器.onnx", "cannot be converted", "2 in the way"),
    ("e\u0301cole.onnx", "converted", "한국어 설명이 있는 긴 문장 " * 9),
    ("x" * 150, "unreadable", "a\nforged line\x1b[2J"),
]


@pytest.mark.parametrize("total", [80, 120, 200])
def test_no_line_is_wider_than_the_terminal(total: int) -> None:
    lines = table(ROWS, total=total).split("\n")
    assert max(map(width, lines)) <= total
    assert not any(line.endswith(" ") for line in lines)
    assert "\x1b" not in table(ROWS, total=total)


@pytest.mark.parametrize("total", [80, 120, 200])
def test_columns_begin_at_the_same_cell(total: int) -> None:
    rows = [ROWS[index] for index in (0, 1, 2, 3)]
    lines = table(rows, total=total).split("\n")
    places = set()
    for line in lines:
        for word in ("RESULT", "cannot be", "converted"):
            if word in line:
                places.add(width(line[: line.index(word)]))
                break
    assert len(places) == 1


def test_nothing_is_lost_where_cells_are_wrapped() -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    shown = table([("name", " ".join(words * 4)), ("漢字" * 40, "x")], total=60)
    for word in ("name", *words):
        assert word in shown
    assert shown.count("漢") == shown.count("字") == 40


def test_what_fits_is_left_as_it_is() -> None:
    assert table([("a", "bcd"), ("ef", "g"), ("h",)], indent=2) == "  a   bcd\n  ef  g\n  h"
    assert table([]) == ""
    assert table([("a" * 30, "b" * 30)], total=4), "narrower than that is nothing readable"


def test_widths() -> None:
    assert [width(text) for text in ("abc", "漢字", "e\u0301", "한", "→")] == [3, 4, 1, 2, 1]
