"""Inspections as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnxreduce_cli.engine.inspection import Inspection
from onnxreduce_cli.engine.runtime_reach import Runtimes
from onnxreduce_cli.errors import Blocker, blocker_lines, node_in_scope
from onnxreduce_cli.report.contents import ModelContents, contents_text
from onnxreduce_cli.text import count, listed, shortened, wrapped

#: How many functions, and how many reasons of blockers for opsets, are shown at most.
_SHOWN = 10


def inspection_text(found: Inspection, held: ModelContents, name: str) -> str:
    """Describe a model: its contents, operators and family nodes, and opsets that it can reach."""
    head = wrapped([f"{name}: IR version {found.ir_version}, {_opsets(found.opsets)}"])
    return "\n".join(filter(None, (head, contents_text(held), wrapped(_lines(found, held)))))


def _lines(found: Inspection, held: ModelContents) -> Iterator[str]:
    for function, imports in [*found.functions.items()][:_SHOWN]:
        size = count(held.functions[function], "node")
        yield f"function {shortened(function)}: {size}, {_opsets(imports)}"
    if len(found.functions) > _SHOWN:
        yield f"and {count(len(found.functions) - _SHOWN, 'other function')}"
    nodes = sum(found.operators.values())
    kinds = ((shortened(op) or "no operator", n) for op, n in found.operators.items())
    operators = ", ".join(f"{name} x {n}" for name, n in kinds)
    yield count(nodes, "node") + (f": {operators}" if operators else "")
    if found.family:
        yield f"{len(found.family)} of the Reduce and Softmax family:"
    family: dict[tuple[str, str], list[str]] = {}
    for node in found.family:
        family.setdefault((node.op_type, node.axes), []).append(
            node_in_scope(node.node, node.scope)
        )
    for (op_type, axes), names in family.items():
        yield f"  {len(names):,} {op_type}: {axes}: {listed(names)}"
    reachable = [opset for opset, blockers in found.reach.items() if not blockers]
    yield f"can reach opset {_ranges(reachable)}" if reachable else "can reach no other opset"
    for opsets, blockers in opsets_by_blockers(found.reach):
        yield f"cannot reach opset {_ranges(opsets)}:"
        lines = blocker_lines(blockers)
        yield from (f"  {line}" for line in lines[:_SHOWN])
        if len(lines) > _SHOWN:
            more = len(lines) - _SHOWN
            yield f"  and {more} more; convert --opset {opsets[-1]} --dry-run shows all"
    yield from _runtimes(found.runtimes)


def _runtimes(found: Runtimes) -> Iterator[str]:
    """Yield the runtimes that take the model, with versions where not all of them do."""
    for what, versions in (
        ("runs as it is, by what onnxreduce targets knows, in", found.as_it_is),
        ("after convert --for in", found.converted),
        ("convert --for says why not in", found.refused),
    ):
        named = [f"{name} {span}".rstrip() for name, span in versions.items()]
        if named:
            yield f"{what}: {'; '.join(named)}"
    if found.wrong:
        yield "warning: computed wrong as it is, with no error; convert --for avoids that:"
    for name, operators in found.wrong.items():
        for span in dict.fromkeys(operators.values()):
            named = [op_type for op_type, versions in operators.items() if versions == span]
            yield f"  {name} {span}".rstrip() + f": {', '.join(named)}"


def _opsets(opsets: dict[str, int]) -> str:
    return (
        ", ".join(f"{shortened(domain)} {version}" for domain, version in opsets.items())
        or "no opset"
    )


def opsets_by_blockers(
    reach: dict[int, tuple[Blocker, ...]],
) -> Iterator[tuple[list[int], tuple[Blocker, ...]]]:
    """Yield ranges of neighbouring opsets that have the same blockers, with these."""
    group: list[int] = []
    for opset, blockers in reach.items():
        if group and (blockers != reach[group[-1]] or opset != group[-1] + 1):
            yield group, reach[group[0]]
            group = []
        if blockers:
            group.append(opset)
    if group:
        yield group, reach[group[0]]


def _ranges(opsets: Iterable[int]) -> str:
    """Return opsets as ranges, such as ``1-3, 5`` for 1, 2, 3 and 5."""
    runs: list[list[int]] = []
    for opset in opsets:
        if runs and opset == runs[-1][-1] + 1:
            runs[-1].append(opset)
        else:
            runs.append([opset])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)
