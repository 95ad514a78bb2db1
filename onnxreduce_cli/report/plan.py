"""Plans as text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from onnxreduce_cli.engine.description import WRITTEN_OUT, Change, Plan
from onnxreduce_cli.text import joined, shortened

if TYPE_CHECKING:
    from onnxreduce_cli.api.convert_file import Converted


def changes_text(plan: Plan, source: str, target: str) -> str:
    """Describe a finished conversion: a headline, then a line for each kind of change."""
    return joined([f"{source} -> {target}: {headline(plan)}", *_whole(plan), *_kinds(plan)])


def remarks(done: Converted) -> list[str]:
    """Return the warnings and remarks of a finished conversion, a line each."""
    found = []
    if done.sites is not None:
        found += [f"warning: not checked: {item}" for item in done.sites.unchecked]
        found += [f"remark: {remark}" for remark in done.sites.remarks]
    together = sum(change.steps == (WRITTEN_OUT,) for change in done.plan.changes)
    if together and done.verified is None:
        found.append(
            f"warning: not checked: {together} {_plural(together, 'node')} of sequences or "
            "optional values, written out together; --verify compares the whole models"
        )
    if done.verified is not None:
        found += [f"warning: {warning}" for warning in done.verified.warnings]
        found += [f"remark: {remark}" for remark in done.verified.remarks]
    found += [
        f"warning: {path} is a hard link: as long as both files exist, onnx loads neither"
        for path in done.data.linked
    ]
    found += [f"warning: {item}" for item in done.false_shapes]
    for change in done.plan.changes:
        found += [
            f"warning: {change.op_type} node {shortened(change.node)}: {item}"
            for item in change.warnings
        ]
    return found


def plan_text(plan: Plan, source: str) -> str:
    """Describe a plan: a headline, each change, the values removed, and the blockers."""
    lines = [f"{source}: {headline(plan)}"]
    lines += _whole(plan)
    lines += [line for change in plan.changes for line in _change(change)]
    if plan.removed:
        lines.append(f"  no longer read, removed: {', '.join(plan.removed)}")
    count = len(plan.blockers)
    lines.append(
        f"cannot be converted: {count} {_plural(count, 'node')} in the way"
        if count
        else "can be converted"
    )
    return joined(lines)


def headline(plan: Plan) -> str:
    """From which opset to which, and how much changes."""
    source = "no opset" if plan.source is None else f"opset {plan.source}"
    count = len(plan.changes)
    way = f"{source} as it was" if plan.source == plan.target else f"{source} to {plan.target}"
    parts = [way, f"{count} {_plural(count, 'node')} changed"]
    reason = f" ({plan.ir_version_reason})" if plan.ir_version_reason else ""
    if plan.target_ir_version != plan.ir_version:
        parts.append(f"IR version {plan.ir_version} to {plan.target_ir_version}{reason}")
    elif reason:
        parts.append(f"IR version {plan.ir_version} stays{reason}")
    return ", ".join(parts)


def _whole(plan: Plan) -> list[str]:
    """Describe the changes of functions and of imports, a line each."""
    found = [f"  {item}" for item in (*plan.specialised, *plan.inlined)]
    if plan.types:
        found.append(f"  types taken as given, stated in value_info: {', '.join(plan.types)}")
    if plan.unread:
        found.append(f"  imports that nothing reads, removed: {', '.join(plan.unread)}")
    return found


def _kinds(plan: Plan) -> list[str]:
    kinds = Counter((change.op_type, change.steps) for change in plan.changes)
    return [
        f"  {count} x {op_type}: {'; '.join(steps) or 'unchanged'}"
        for (op_type, steps), count in kinds.items()
    ]


def _change(change: Change) -> list[str]:
    place = f" in {change.scope}" if change.scope else ""
    result = _result(change)
    node = f"{change.op_type} node {shortened(change.node)}"
    return [
        f"  {node}{place}: {'; '.join(change.steps)}{result}",
        *(f"    warning: {warning}" for warning in change.warnings),
    ]


def _result(change: Change) -> str:
    if change.result == (change.op_type,):
        return ""
    if not change.result:
        return " -> an initializer"
    return " -> " + ", ".join(change.result)


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"
