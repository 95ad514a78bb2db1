"""Inspections as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from onnxreduce_cli.engine.inspection import Inspection
from onnxreduce_cli.engine.runtime_reach import Runtimes
from onnxreduce_cli.errors import Blocker, blocker_lines, node_in_scope
from onnxreduce_cli.report.contents import ModelContents, contents_text
from onnxreduce_cli.text import count, listed, shortened, without_values, wrapped

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
    yield from _unreachable(found.reach)
    yield from _runtimes(found.runtimes)


def _unreachable(reach: dict[int, tuple[Blocker, ...]]) -> Iterator[str]:
    """Yield what is in the way to which opsets, each node once."""
    blocked = [opset for opset, blockers in reach.items() if blockers]
    if not blocked:
        return
    yield f"cannot reach opset {_ranges(blocked)}:"
    by_reason: dict[tuple[object, ...], dict[int, Blocker]] = {}
    for opset, blockers in reach.items():
        for blocker in blockers:
            reason = without_values(blocker.reason), without_values(blocker.advice)
            key = (blocker.scope, blocker.node, blocker.op_type, *reason)
            by_reason.setdefault(key, {})[opset] = blocker
    by_opsets: dict[str, list[Blocker]] = {}
    for found in sorted(by_reason.values(), key=len, reverse=True):
        by_opsets.setdefault(_ranges(found), []).append(found[max(found)])
    lines = [
        (f"{opsets}: " if len(by_opsets) > 1 else "") + line
        for opsets, blockers in by_opsets.items()
        for line in blocker_lines(blockers)
    ]
    yield from (f"  {line}" for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        more = len(lines) - _SHOWN
        yield f"  and {more} more; convert --opset {blocked[0]} --dry-run shows all"


def _runtimes(found: Runtimes) -> Iterator[str]:
    """Yield the runtimes that take the model, with versions where not all of them do."""
    yield from _named("known to take it as it is", found.as_it_is)
    unknown = [
        f"{_with_versions(name, span)} ({listed(operators)})"
        for name, by_span in found.unknown.items()
        for span, operators in _by_versions(by_span).items()
    ]
    if unknown:
        yield f"not known to take all of it: {'; '.join(unknown)}"
    yield from _named("after convert --for", found.converted)
    yield from _named("convert --for says why not for", found.refused)
    if found.wrong:
        yield "warning: computed wrong as it is, with no error; convert --for avoids that:"
    for name, operators in found.wrong.items():
        for span, named in _by_versions(operators).items():
            yield f"  {_with_versions(name, span)}: {', '.join(named)}"


def _named(what: str, versions: Mapping[str, str]) -> Iterator[str]:
    if versions:
        yield f"{what}: {'; '.join(_with_versions(*item) for item in versions.items())}"


def _with_versions(name: str, span: str) -> str:
    return f"{name} {span}".rstrip()


def _by_versions(operators: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the operators by the versions that have them."""
    found: dict[str, list[str]] = {}
    for op_type, span in operators.items():
        found.setdefault(span, []).append(op_type)
    return found


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
