"""Plans as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from onnxreduce_cli.engine.changes import Change, grouped
from onnxreduce_cli.engine.description import Plan
from onnxreduce_cli.engine.emulation import MANY_NODES
from onnxreduce_cli.errors import Blocker, blocker_lines, node_in_scope
from onnxreduce_cli.report.verdict import verdict_text, written_together
from onnxreduce_cli.text import count, joined, listed, size_text, wrapped

if TYPE_CHECKING:
    from onnxreduce_cli.api.file_conversion import Converted

#: How many lines kinds of changes take at most, without ``--verbose``.
_MOST_LINES = 14


def changes_text(done: Converted, *, verbose: bool = False) -> str:
    """Describe a finished conversion: the verdict, what is not known, then the changes."""
    plan = done.plan
    return wrapped(
        [
            verdict_text(done, dry_run=False),
            *_unknown(plan, verbose=verbose),
            *_head(plan, done.sizes),
            *_whole(plan),
            *_nodes(plan, verbose=verbose),
        ]
    )


def check_lines(done: Converted) -> list[str]:
    """Return a line for each check that ran: of the sites, of passes, of the whole models."""
    found = [] if done.checks is None else [done.checks.summary]
    if done.whole is not None:
        found.append(done.whole.summary)
    if done.verified is not None:
        compared = sum(not trial.void for trial in done.verified.trials)
        agreed = f"the whole models agree on {count(compared, 'input')}, by {done.verified.by}"
        found.append(f"verified: {agreed}")
    return found


def remarks(done: Converted) -> list[str]:
    """Return the warnings and remarks of a finished conversion, a line each."""
    found = []
    if done.numpy_alone:
        found.append(f"warning: checked by NumPy alone: ONNX Runtime {done.numpy_alone}")
    if done.checks is not None:
        found += [f"warning: not checked: {item}" for item in done.checks.unchecked]
        found += [f"remark: {remark}" for remark in done.checks.remarks]
    together = written_together(done.plan)
    if together and done.verified is None and done.whole is None:
        found.append(
            f"warning: not checked: {count(together, 'node')} of sequences or "
            "optional values, written out together; --verify compares the whole models"
        )
    if done.whole is not None:
        found += [f"warning: {warning}" for warning in done.whole.warnings]
    if done.verified is not None:
        found += [f"warning: {warning}" for warning in done.verified.warnings]
        found += [f"remark: {remark}" for remark in done.verified.remarks]
    found += [
        f"warning: {path} is a hard link: as long as both files exist, onnx loads neither"
        for path in done.data.linked
    ]
    found += [f"warning: {item}" for item in done.false_shapes]
    return found + _warnings(done.plan)


def plan_text(done: Converted, *, verbose: bool = False) -> str:
    """Describe a plan: whether it is possible, what is not known, changes and removed values."""
    plan = done.plan
    lines = [
        verdict_text(done, dry_run=True),
        *_unknown(plan, verbose=verbose),
        *_head(plan, None),
        *_whole(plan),
        *_nodes(plan, verbose=verbose),
    ]
    if plan.removed:
        removed = ", ".join(plan.removed) if verbose else listed(plan.removed)
        lines.append(f"  no longer read, removed: {removed}")
    return wrapped([*lines, *(f"  {warning}" for warning in _warnings(plan))])


def blockers_text(blockers: Sequence[Blocker], *, verbose: bool = False) -> str:
    """Describe blockers: one line for each reason or, if `verbose`, for each node."""
    return wrapped(map(str, blockers) if verbose else blocker_lines(blockers))


def each_blocker_text(source: str, blockers: Sequence[Blocker]) -> str:
    """Return a line for each node in the way of a model, which programs can read."""
    return joined(f"{source}: {blocker}" for blocker in blockers)


def _head(plan: Plan, sizes: tuple[int, int] | None) -> list[str]:
    """Return what becomes of the opset, the nodes, the file and the IR version."""
    way, version = _way(plan), _ir_version(plan)
    if sizes is not None:
        way = f"{way}, {' → '.join(map(size_text, sizes))}"
    if plan.ir_version_reason:
        return [f"  {way}", f"  {version}"]
    return [f"  {way}, {version}" if version else f"  {way}"]


def _way(plan: Plan) -> str:
    source = "no opset" if plan.source is None else f"opset {plan.source}"
    way = f"{source} as it was" if plan.source == plan.target else f"{source} to {plan.target}"
    if plan.ml_opset != plan.target_ml_opset:
        way += f", ai.onnx.ml {plan.ml_opset} to {plan.target_ml_opset}"
    if plan.nodes == plan.target_nodes:
        return way
    return f"{way}, {plan.nodes:,} → {plan.target_nodes:,} nodes"


def _ir_version(plan: Plan) -> str:
    reason = f" ({plan.ir_version_reason})" if plan.ir_version_reason else ""
    if plan.target_ir_version != plan.ir_version:
        return f"IR version {plan.ir_version} to {plan.target_ir_version}{reason}"
    return f"IR version {plan.ir_version} stays{reason}" if reason else ""


def _unknown(plan: Plan, *, verbose: bool) -> list[str]:
    """Describe what is not known of the runtime; where the rest is known from if `verbose`."""
    known = plan.coverage.lines(verbose=verbose) if plan.coverage else ()
    return [f"  {line}" for line in known]


def _whole(plan: Plan) -> list[str]:
    """Describe the choice of the opset, and the changes of functions and imports, a line each."""
    found = [f"  {plan.choice}"] if plan.choice else []
    found += [f"  {item}" for item in (*plan.prepared, *plan.specialised, *plan.inlined)]
    if plan.types:
        found.append(f"  types taken as given, stated in value_info: {', '.join(plan.types)}")
    if plan.lacking:
        found.append(f"  nothing to change there: the model has no {listed(plan.lacking)}")
    if plan.foreign:
        operators = listed([f"{number} {op_type}" for op_type, number in plan.foreign])
        found.append(
            f"  of ONNX Runtime's own domain, as they were: {operators}; "
            "--expand com.microsoft writes out those that it can"
        )
    if plan.unread:
        found.append(f"  imports that nothing reads, removed: {', '.join(plan.unread)}")
    return found


def _nodes(plan: Plan, *, verbose: bool) -> list[str]:
    """Describe the changes of nodes, their cost and, if `verbose`, near misses of idioms."""
    lines = [*change_lines(plan.changes, verbose=verbose), *_costs(plan)]
    return lines + [f"  not contracted: {item}" for item in plan.near_misses if verbose]


def change_lines(changes: Sequence[Change], *, verbose: bool) -> list[str]:
    """Describe changes: each if `verbose`, else one line for each kind, the rarest left out."""
    if verbose:
        return [f"  {change.summary}: {_names([change])}" for change in changes]
    groups = grouped(changes)
    lines = [f"  {group.summary}: {group.names}" for group in groups]
    by_size = sorted(range(len(groups)), key=lambda index: len(groups[index].changes))
    kept = set(by_size)
    for index in by_size:
        if _height(lines[kind] for kind in kept) <= _MOST_LINES:
            break
        kept.remove(index)
    shown = [line for index, line in enumerate(lines) if index in kept]
    rest = [group for index, group in enumerate(groups) if index not in kept]
    if rest:
        nodes = count(sum(len(group.changes) for group in rest), "node")
        shown.append(
            f"  and {count(len(rest), 'other kind')} of change, of {nodes}; --verbose lists all"
        )
    return shown


def _height(lines: Iterable[str]) -> int:
    return wrapped(lines).count("\n") + 1


def _warnings(plan: Plan) -> list[str]:
    """Return the warnings of changes, one line for all nodes of an operator with the same text."""
    found: dict[tuple[str, str], list[Change]] = {}
    for change in plan.changes:
        for text in change.warnings:
            found.setdefault((change.op_type, text), []).append(change)
    return [
        f"warning: {op_type} {'node' if len(changes) == 1 else 'nodes'} {_names(changes)}: {text}"
        for (op_type, text), changes in found.items()
    ]


def _names(changes: Iterable[Change]) -> str:
    return listed([node_in_scope(change.node, change.scope) for change in changes])


def _costs(plan: Plan) -> list[str]:
    """Describe costs for runtimes: control flow, and many nodes in place of one."""
    found = []
    if plan.control_flow:
        added = ", ".join(f"{number:,} {op_type}" for op_type, number in plan.control_flow.items())
        names = _names(change for change in plan.changes if change.control_flow)
        found.append(f"  control flow added: {added}, for {names}")
    many = [change for change in plan.changes if change.nodes > MANY_NODES]
    for op_type in dict.fromkeys(change.op_type for change in many):
        own = [change for change in many if change.op_type == op_type]
        most = max(change.nodes for change in own)
        found.append(f"  up to {most:,} nodes for one {op_type}: {_names(own)}")
    return found
