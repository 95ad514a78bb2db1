"""Conversions give what is kept of them; `python -m tests.golden` writes what they give now."""

from __future__ import annotations

import pytest

from onnxreduce_cli import schemas
from onnxreduce_cli.idioms.registry import IDIOMS
from onnxreduce_cli.steps.registry import STEPS
from tests.golden import for_runtimes, forms
from tests.golden.conversions import OPERATORS, file_of, text


@pytest.mark.newest  # What is kept was written with the newest onnx: others know fewer opsets.
@pytest.mark.parametrize("op_type", OPERATORS)
def test_conversions_give_what_is_kept(op_type: str) -> None:
    kept = file_of(op_type).read_text(encoding="utf-8").splitlines()
    assert text(op_type).splitlines() == kept, "python -m tests.golden writes it anew"


def test_there_is_a_file_for_each_operator_and_no_other() -> None:
    kept = {path.stem for path in file_of("").parent.glob("*.txt")}
    assert kept == set(OPERATORS)
    assert kept >= {idiom.op_type for idiom in IDIOMS}


@pytest.mark.parametrize("op_type", forms.OPERATORS)
def test_each_boundary_of_the_family_is_crossed_both_ways(op_type: str) -> None:
    crossed = [
        (min(model.opset_import[0].version, target), max(model.opset_import[0].version, target))
        for _, model, targets in forms.cases(op_type)
        for target in targets
    ]
    for boundary in schemas.versions(op_type)[1:]:
        if {(op_type, boundary, way) for way in ("up", "down")} & STEPS.keys():
            assert any(low < boundary <= high for low, high in crossed), boundary


@pytest.mark.newest
@pytest.mark.parametrize("runtime", for_runtimes.RUNTIMES)
def test_what_is_said_of_exports_is_what_is_kept(runtime: str) -> None:
    kept = for_runtimes.file_of(runtime).read_text(encoding="utf-8").splitlines()
    assert for_runtimes.text(runtime).splitlines() == kept, "python -m tests.golden writes it anew"
