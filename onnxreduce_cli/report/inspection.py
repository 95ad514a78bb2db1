"""Inspections as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnxreduce_cli.engine.inspection import Inspection
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.text import joined, shortened

#: How many blockers are shown for opsets that have the same ones.
_SHOWN = 10


def inspection_text(found: Inspection, name: str) -> str:
    """A model's opsets, operators, family nodes and reachable opsets."""
    return joined(_lines(found, name))


def _lines(found: Inspection, name: str) -> Iterator[str]:
    yield f"{name}: IR version {found.ir_version}, {_opsets(found.opsets)}"
    for function, imports in found.functions.items():
        yield f"  function {shortened(function)}: {_opsets(imports)}"
    count = sum(found.operators.values())
    names = ((shortened(op) or "no operator", n) for op, n in found.operators.items())
    operators = ", ".join(f"{name} x {n}" for name, n in names)
    yield f"{count} node{'s' * (count != 1)}" + (f": {operators}" if operators else "")
    if found.family:
        yield f"{len(found.family)} of the Reduce and Softmax family:"
    for node in found.family:
        place = f" in {node.scope}" if node.scope else ""
        yield f"  {node.op_type} node {shortened(node.node)}{place}: {node.axes}"
    reachable = [opset for opset, blockers in found.reach.items() if not blockers]
    yield f"can reach opset {_ranges(reachable)}" if reachable else "can reach no other opset"
    for opsets, blockers in _alike(found.reach):
        yield f"cannot reach opset {_ranges(opsets)}:"
        yield from (f"  {blocker}" for blocker in blockers[:_SHOWN])
        if len(blockers) > _SHOWN:
            more = len(blockers) - _SHOWN
            yield f"  and {more} more; convert --opset {opsets[-1]} --dry-run shows all"


def _opsets(opsets: dict[str, int]) -> str:
    return (
        ", ".join(f"{shortened(domain)} {version}" for domain, version in opsets.items())
        or "no opset"
    )


def _alike(
    reach: dict[int, tuple[Blocker, ...]],
) -> Iterator[tuple[list[int], tuple[Blocker, ...]]]:
    """Neighbouring opsets with the same blockers, together."""
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
    """``1-3, 5`` for 1, 2, 3 and 5."""
    runs: list[list[int]] = []
    for opset in opsets:
        if runs and opset == runs[-1][-1] + 1:
            runs[-1].append(opset)
        else:
            runs.append([opset])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)
