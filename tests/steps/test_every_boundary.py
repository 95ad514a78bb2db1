"""Every boundary of every installed operator, both ways: declared, and in words for people."""

from __future__ import annotations

import re

import onnx
import pytest

from onnxreduce_cli import schemas
from onnxreduce_cli.steps import audit
from onnxreduce_cli.steps.dispatch import step_for
from onnxreduce_cli.steps.registry import STEPS, Direction, impossible

#: What cannot be crossed, with the reason.
NO_WAY = {
    ("Scatter", 11, "down"): "is deprecated from opset 11 on",
    ("Upsample", 10, "down"): "is deprecated from opset 10 on",
}


def histories() -> dict[str, list[int]]:
    """The since-versions by operator, from the schemas themselves."""
    found: dict[str, list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            found.setdefault(schema.name, []).append(schema.since_version)
    return {op_type: sorted(since) for op_type, since in found.items()}


HISTORIES = histories()
DIRECTED: list[tuple[str, int, Direction]] = [
    (op_type, boundary, direction)
    for op_type, since in sorted(HISTORIES.items())
    for boundary in since[1:]
    # Of what is not declared, test_audit tells what is to be done.
    if audit.definition_change(op_type, boundary) is not None
    for direction in ("up", "down")  # type: ignore[misc]
]
INTRODUCED = [(op_type, since[0]) for op_type, since in sorted(HISTORIES.items()) if since[0] > 1]


def test_the_tables_know_every_schema() -> None:
    assert set(HISTORIES) == set(schemas.operators())
    for op_type, since in HISTORIES.items():
        assert list(schemas.versions(op_type)) == since
    assert len(DIRECTED) >= 770


def test_each_directed_step_has_one_status() -> None:
    for op_type, boundary, direction in DIRECTED:
        step = step_for(op_type, boundary, direction)
        place = f"{op_type} {boundary} {direction}"
        assert (step.op_type, step.boundary, step.direction) == (op_type, boundary, direction)
        assert step.status in ("step", "unchanged", "conditional", "impossible"), place
        acts = step.apply is not None
        assert acts == (step.status in ("step", "conditional")), place
        assert len(step.full_description) > 8, place


def test_what_needs_an_edit_has_a_step_or_a_reason() -> None:
    impossible_ones = set()
    for op_type, boundary, direction in DIRECTED:
        change = audit.definition_change(op_type, boundary)
        key = (op_type, boundary, direction)
        if change is not None and direction not in change.unedited:
            assert key in STEPS, f"{key} needs an edit and has no step"
        if step_for(*key).status == "impossible":
            impossible_ones.add(key)
            assert NO_WAY[key] in step_for(*key).description
    assert impossible_ones == set(NO_WAY)


def test_no_words_put_off() -> None:
    for op_type, boundary, direction in DIRECTED:
        description = step_for(op_type, boundary, direction).description
        assert not re.search(r"\byet\b|does not know|TODO|not implemented", description), (
            description
        )


@pytest.mark.parametrize(("op_type", "opset"), INTRODUCED)
def test_introduced(op_type: str, opset: int) -> None:
    step = step_for(op_type, opset, "down")
    if (op_type, opset, "down") in STEPS:
        assert step.status in ("step", "conditional")
    else:
        assert step.status == "impossible"
        assert step.description == f"{op_type} does not exist before opset {opset}"


def test_steps_are_of_boundaries() -> None:
    for op_type, boundary, direction in STEPS:
        since = HISTORIES.get(op_type)
        if since is not None and boundary <= schemas.newest_opset():
            assert boundary in since, (op_type, boundary)
            assert direction == "down" or boundary > since[0]


def test_no_boundary_is_declared_twice() -> None:
    key = next(iter(NO_WAY))
    assert key in STEPS
    with pytest.raises(ValueError, match="two steps"):
        impossible(key[0], key[1], "down", "again")
