"""docs/targets.md is what the runtimes' files say, and so is the text of a runtime."""

from __future__ import annotations

from pathlib import Path

from onnxreduce_cli.report.targets import target_text, targets_markdown, targets_text
from onnxreduce_cli.targets.reading import runtime_names
from onnxreduce_cli.targets.requirement import find_target

DOCUMENT = Path(__file__).parents[2] / "docs" / "targets.md"


def test_the_document_is_up_to_date() -> None:
    written = DOCUMENT.read_text(encoding="utf-8")
    assert written == targets_markdown(), "run python -m onnxreduce_cli.report.targets"


def test_each_runtime_has_a_line() -> None:
    lines = [line for line in targets_text().splitlines() if not line.startswith("    ")]
    assert [line.split()[0] for line in lines] == list(runtime_names())
    assert (
        "opencv                OpenCV, its dnn module: 4.5 to 5.0, opset 23, 16 known faults"
        in lines
    )


def test_a_row_with_its_sources() -> None:
    text = " ".join(target_text(find_target("onnxruntime==1.8.1"), whole=False).split())
    assert "1.8: opset from 7 [1], opset to 14 [2], IR version to 7 [2]" in text
    assert "1.9:" not in text
    assert "1.8 to 1.30: ReduceSum (noop) from opset 13 on: refuses it [4]" in text
    assert "[1] document, 2026-11-22: microsoft/onnxruntime docs/Versioning.md" in text
    assert "not known: best opset, functions, external data, dtypes operators of 1.8: " in text
    assert "taken: Abs; Acos; Acosh; Add; " in text


def test_all_rows() -> None:
    text = " ".join(target_text(find_target("opencv"), whole=True).split())
    said = (
        "4.6 to 4.7: Reduce* but ReduceSum (axes input) from opset 18 on: wrong: reduces all axes"
    )
    assert said in text
    assert "5.0: opset to 23" in text
