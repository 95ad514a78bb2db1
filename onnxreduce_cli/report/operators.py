"""Operators, their versions and the steps between them, as text and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.emulation import MOST_NODES
from onnxreduce_cli.idioms.registry import GROUPS
from onnxreduce_cli.model.graph.domains import LEARNING, default_opset, domain_of, is_default
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.report.emulated import may_be_emulated
from onnxreduce_cli.report.schema_changes import schema_changes
from onnxreduce_cli.steps import audit
from onnxreduce_cli.steps.dispatch import expandable_operators, step_for
from onnxreduce_cli.steps.loading import INDEX, steps_index_text
from onnxreduce_cli.steps.registry import Direction, Step
from onnxreduce_cli.text import LINE, count, joined, wrapped

_DIRECTIONS: tuple[Direction, Direction] = ("up", "down")


def operator_text(op_type: str) -> str:
    """Describe an operator: its versions, what changed at each, and the steps up and down.

    Below each step stand the file and the function that implement it.
    """
    since = all_versions(op_type)
    of = f" of {domain}" if (domain := domain_of(op_type)) else ""
    lines = [f"{op_type}{of}: since-versions {', '.join(str(version) for version in since)}"]
    for boundary, steps in boundaries(op_type):
        lines.append(f"opset {boundary}: {change_at(op_type, boundary)}")
        for step in steps:
            lines.append(f"  {_way(boundary, step.direction)}: {_verdict(step)}")
            if step.place:
                lines.append(f"    {step.place}")
    return wrapped(lines, LINE)


def own_operators_text(facts: Facts, name: str) -> str:
    """List the operators of a model, one on a line, as ``convert --allow-ops`` reads them."""
    found = own_operators(facts)
    opset = default_opset(facts.model)
    at = "" if opset is None else f", opset {opset}"
    return joined([f"# {name}{at}: {count(len(found), 'operator')}", *found])


def own_operators(facts: Facts) -> list[str]:
    """Return the operators of a model by name, those of other domains as ``domain.Name``.

    Functions of the model are left out; the operators in their bodies count.
    """
    found = {
        node.op_type if is_default(node.domain) else f"{node.domain}.{node.op_type}"
        for scope in facts.scopes
        for node in scope.nodes
        if facts.calls.function_of(node) is None
    }
    return sorted(found)


def operators_text() -> str:
    """List every operator on a line: its versions, the boundaries without a step, and the options
    of ``convert`` that take it.
    """
    lines = []
    for op_type in schemas.operators():
        since = schemas.versions(op_type)
        versions = " ".join(str(version) for version in since)
        lacking = [
            _way(boundary, step.direction)
            for boundary, steps in boundaries(op_type)
            for step in steps
            if step.status in ("impossible", "undeclared") and boundary != since[0]
        ]
        line = f"{op_type}: {versions}" + (f"; no step {', '.join(lacking)}" if lacking else "")
        line += "; --expand" if op_type in expandable_operators() else ""
        lines.append(line + ("; --contract" if op_type in GROUPS["all"] else ""))
    of_runtime = [name for name in expandable_operators() if not schemas.versions(name)]
    lines += [f"{name}: --expand" for name in of_runtime]
    lines.append(_totals())
    lines.append(
        "--expand: convert --expand writes it in other operators; --contract: convert --contract "
        "finds the nodes that stand for it"
    )
    return "\n".join(lines)


def all_versions(op_type: str) -> tuple[int, ...]:
    """Return the since-versions of an operator of the default domain or of ai.onnx.ml."""
    return schemas.versions(op_type, domain_of(op_type))


def boundaries(op_type: str) -> Iterator[tuple[int, list[Step]]]:
    """Yield each boundary with its steps; the one that introduced the operator has one, down."""
    since = all_versions(op_type)
    for boundary in since:
        if boundary == since[0]:
            if boundary > 1:
                yield boundary, [step_for(op_type, boundary, "down")]
        else:
            yield boundary, [step_for(op_type, boundary, way) for way in _DIRECTIONS]


def change_at(op_type: str, boundary: int) -> str:
    """Return what changed at a boundary: as the audit says or, without an entry, the schemas."""
    change = audit.definition_change(op_type, boundary)
    if change is not None:
        return change.what
    if boundary == all_versions(op_type)[0]:
        return "The operator came with this opset."
    changes = "; ".join(schema_changes(op_type, boundary)) or "the signature is the same"
    return (
        "Undeclared: this onnxreduce was made before that change, and lets no node across. By the "
        f"installed onnx, {changes}."
    )


def _totals() -> str:
    counts = Counter(
        step.status
        for op_type in schemas.operators()
        for boundary in schemas.versions(op_type)[1:]
        for step in (step_for(op_type, boundary, way) for way in _DIRECTIONS)
    )
    total = sum(counts.values())
    parts = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    return f"{len(schemas.operators())} operators, {total} steps: {parts}"


def _way(boundary: int, direction: Direction) -> str:
    older, newer = boundary - 1, boundary
    return f"{older} to {newer}" if direction == "up" else f"{newer} to {older}"


def _verdict(step: Step) -> str:
    return step.status if step.status == "unchanged" else f"{step.status}: {step.full_description}"


def operators_markdown() -> str:
    """Return a Markdown table of every boundary of every operator, with both steps."""
    lines = [
        "# Operators",
        "",
        "Search the table for your operator. Each row is an opset at which its definition changed, "
        "and says what becomes of a node that crosses it, up or down:",
        "",
        "- *unchanged*: the node stays as it is, if its dtypes exist on the other side;",
        "- *step*: it is rewritten;",
        "- *conditional*: it is rewritten or stays, or it blocks for the reason given;",
        "- *impossible*: it always blocks;",
        "- *emulation*: some nodes need control flow that was not there. These block without "
        "`--emulate`, but for the Reduce and Softmax family down to opset 11.",
        "",
        "A node that *blocks* is named, and nothing is written. A node that would need more than "
        f"{MOST_NODES} others blocks too. `onnxreduce ops Resize` prints the rows of one operator.",
        "",
        f"These are all operators of the default domain up to opset {schemas.newest_opset()}, and "
        f"at the end those of {LEARNING} that changed, by its own versions. Written by "
        "`python -m onnxreduce_cli.report.operators`.",
        "",
        _totals() + ".",
        "",
        "| operator | opset | what changed | up | down |",
        "|---|---|---|---|---|",
    ]
    for op_type in (*schemas.operators(), *schemas.operators(LEARNING)):
        prefix = f"{domain}." if (domain := domain_of(op_type)) else ""
        for boundary, steps in boundaries(op_type):
            by_way = {step.direction: _cell(step) for step in steps}
            what = change_at(op_type, boundary)
            cells = [prefix + op_type, str(boundary), what, by_way.get("up", ""), by_way["down"]]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, *_FAMILY]) + "\n"


#: What the documentation shows below the table: pictures that are drawn when it is built.
_FAMILY = (
    "",
    "## The Reduce and Softmax family, in pictures",
    "",
    "All ten Reduce operators, Softmax, LogSoftmax and Hardmax are converted between any two "
    "opsets. Going down, axes may be constant in any form, or computed from constants and known "
    "shapes. Axes that are known at run time only need opset 7: from 13 on a ReduceSum takes them, "
    "below there is one conditional reduction for each axis. Below, each node is drawn before and "
    "after every opset that changed it, in the documentation as it is built.",
    "",
    "```{include} generated/family-pictures.md",
    "```",
)


def _cell(step: Step) -> str:
    if step.status == "unchanged":
        return step.status
    emulated = "; may be an *emulation*" if may_be_emulated(step) else ""
    return f"*{step.status}*: {step.full_description}{emulated}"


if __name__ == "__main__":
    from pathlib import Path

    from onnxreduce_cli.executor import registry

    registry.INDEX.write_text(registry.index_text(), encoding="utf-8")
    INDEX.write_text(steps_index_text(), encoding="utf-8")
    Path("docs/operators.md").write_text(operators_markdown(), encoding="utf-8")
