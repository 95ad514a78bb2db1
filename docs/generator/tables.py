"""Short tables of what steps do."""

from __future__ import annotations

from onnxreduce_cli import schemas
from onnxreduce_cli.schemas import REDUCE, SOFTMAX
from onnxreduce_cli.steps.dispatch import step_for
from onnxreduce_cli.steps.registry import Direction


def family() -> str:
    """The operators of the family and the boundaries they have, with how nodes cross each."""
    lines = ["| operator | boundary | up | down |", "|---|---|---|---|"]
    for op_type in (*sorted(REDUCE), *sorted(SOFTMAX)):
        link = f'<a href="#{op_type}">{op_type}</a>'
        for boundary in schemas.versions(op_type)[1:]:
            cells = [link, str(boundary), *(_way(op_type, boundary, way) for way in _WAYS)]
            lines.append("| " + " | ".join(cells) + " |")
            link = ""
    return "\n".join(lines) + "\n"


_WAYS: tuple[Direction, Direction] = ("up", "down")


def _way(op_type: str, boundary: int, direction: Direction) -> str:
    step = step_for(op_type, boundary, direction)
    return step.status if step.status == "unchanged" else step.full_description
