"""docs/operators.md is what the tables say."""

from __future__ import annotations

from pathlib import Path

from onnxreduce_cli import schemas
from onnxreduce_cli.report.operators import operators_markdown

DOCUMENT = Path(__file__).parents[2] / "docs" / "operators.md"

#: The newest opset of the onnx that the document was written with.
WRITTEN_WITH = 28


def rows() -> dict[tuple[str, int], str]:
    found = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if line.startswith("| ") and cells[1].isdigit():
            found[cells[0].removeprefix("| "), int(cells[1])] = line
    return found


def test_every_installed_boundary_is_in_it() -> None:
    told = rows()
    for op_type in schemas.operators():
        versions = schemas.versions(op_type)
        # What came with opset 1 has no boundary there.
        for boundary in versions if versions[0] > 1 else versions[1:]:
            assert (op_type, boundary) in told, "run python -m onnxreduce_cli.report.operators"
    assert len(told) >= 500


def test_it_is_up_to_date() -> None:
    written = DOCUMENT.read_text(encoding="utf-8")
    if schemas.newest_opset() == WRITTEN_WITH:
        assert written == operators_markdown(), "run python -m onnxreduce_cli.report.operators"
    else:
        # Another onnx has other rows; those that it has are tested above.
        assert f"up to opset {WRITTEN_WITH}," in written


def test_the_reasons_why_not_are_in_it() -> None:
    told = rows()["Scatter", 11]
    assert "*impossible*: Scatter is deprecated from opset 11 on" in told
    assert "impossible" not in rows()["ReduceSum", 13]
