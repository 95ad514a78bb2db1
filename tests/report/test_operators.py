"""docs/operators.md is what the tables say."""

from __future__ import annotations

import re
from pathlib import Path

from onnxreduce_cli import schemas
from onnxreduce_cli.report.operators import operator_text, operators_markdown
from onnxreduce_cli.steps.registry import STEPS
from tests.steps.checklist import declared, undeclared

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "operators.md"
WRITE = "run python -m onnxreduce_cli.report.operators"


def rows() -> dict[tuple[str, int], str]:
    found = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if line.startswith("| ") and cells[1].isdigit():
            name = cells[0].removeprefix("| ").removeprefix("ai.onnx.ml.")
            found[name, int(cells[1])] = line
    return found


def test_every_declared_boundary_is_in_it() -> None:
    told = rows()
    known = {(op_type, opset) for op_type, opsets in declared().items() for opset in opsets}
    assert known | {key[:2] for key in STEPS} <= told.keys(), WRITE
    assert len(told) >= 500


def test_it_is_up_to_date() -> None:
    """An older onnx has fewer rows; what a newer one has is to be declared before it is written."""
    written = DOCUMENT.read_text(encoding="utf-8")
    written_with = re.search(r"up to opset (\d+),", written)
    assert written_with is not None
    if schemas.newest_opset() >= int(written_with[1]) and not undeclared():
        assert written == operators_markdown(), WRITE


def test_the_reasons_why_not_are_in_it() -> None:
    told = rows()["Scatter", 11]
    assert "*impossible*: Scatter is deprecated from opset 11 on" in told
    assert "impossible" not in rows()["ReduceSum", 13]


def test_each_step_is_shown_with_its_file_and_function() -> None:
    negative, to_input, to_attribute = (
        STEPS["ReduceSum", boundary, direction]
        for boundary, direction in ((11, "down"), (13, "up"), (13, "down"))
    )
    assert operator_text("ReduceSum").splitlines()[1:10] == [
        "opset 11: The attribute axes may be negative, counted from the back.",
        "  10 to 11: unchanged",
        f"  11 to 10: conditional: {negative.full_description}",
        f"    {negative.place}",
        "opset 13: The attribute axes became an input, and the attribute noop_with_empty_axes was "
        "added; 0 reduces over all axes when there are none, as before.",
        f"  12 to 13: step: {to_input.full_description}",
        f"    {to_input.place}",
        f"  13 to 12: conditional: {to_attribute.full_description}",
        f"    {to_attribute.place}",
    ]
    assert to_attribute.place.endswith("/reduce_sum_13_others_18.py: reduce_axes_to_attribute")


def test_every_step_is_where_it_is_said_to_be() -> None:
    for step in STEPS.values():
        if step.apply is not None:
            file, _, function = step.place.partition(": ")
            source = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^ *def {function}\(", source, re.MULTILINE), step.place
