"""The verdict on a conversion, in one line: what became of the model, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from onnxreduce_cli.engine.description import WRITTEN_OUT, OperatorCoverage, Plan
from onnxreduce_cli.model.file.document import STREAM
from onnxreduce_cli.text import count

if TYPE_CHECKING:
    from onnxreduce_cli.api.file_conversion import Converted


def verdict_text(done: Converted, *, dry_run: bool) -> str:
    """Return ``Ready for OpenCV 4.6: opset 12, 28 nodes changed, all checked, bit-exact (file)``.

    A model is ready for a runtime if it is known of that very version that it takes each operator,
    and everything that changed was checked. Else it was written for the runtime.

    Args:
        done: the conversion.
        dry_run: whether nothing was written.
    """
    plan = done.plan
    if plan.blockers:
        what = f"Cannot be converted {plan.aim}"
        return f"{what}: {count(len(plan.blockers), 'node')} in the way"
    unknown, checks = list(_unknown(plan.coverage)), list(_checks(done))
    ran = done.checks or done.verified or done.whole
    parts = [*unknown, *_changes(plan), *(checks if ran or not dry_run else ())]
    if dry_run:
        return f"Can be converted {plan.aim}: {', '.join(parts)}"
    file = "standard output" if done.target == STREAM else done.target
    ready = not unknown and not unchecked(done)
    what = f"{'Unchanged' if done.data.unchanged else 'Converted'} {plan.aim}"
    if plan.runtime:
        what = f"{'Ready' if ready else 'Written'} for {plan.runtime}"
    return f"{what}: {', '.join(parts)} ({file})"


def _unknown(coverage: OperatorCoverage | None) -> Iterator[str]:
    """Yield what is not known of a runtime."""
    if coverage is None:
        return
    if not coverage.exact:
        yield "its operators are not known of that very version"
    of, only = count(coverage.operators, "operator"), len(coverage.conditions)
    if coverage.unknown:
        yield f"{len(coverage.unknown)} of {of} not known there"
    if only:
        first = only if coverage.unknown else f"{only} of {of}"
        yield f"{first} taken on conditions not known"


def _changes(plan: Plan) -> Iterator[str]:
    """Yield the opset where a runtime decided it, and how much changes."""
    if plan.runtime:
        yield f"opset {plan.target}"
    if changed_nodes(plan) or not plan.whole_changes:
        yield f"{count(changed_nodes(plan), 'node')} changed"
    if plan.whole_changes:
        yield f"{count(plan.whole_changes, 'change')} of the whole model"


def changed_nodes(plan: Plan) -> int:
    """Return how many nodes are written in another way."""
    return sum(not change.stays for change in plan.changes)


def _checks(done: Converted) -> Iterator[str]:
    """Yield how much was checked, the largest error, and what was compared as a whole."""
    plan, missing = done.plan, unchecked(done)
    by = " by NumPy alone" if done.numpy_alone else ""
    if missing:
        yield f"NOT checked: {' and '.join(missing)}"
    if missing and by:
        yield f"the rest checked{by}"
    elif by or (not missing and (changed_nodes(plan) or plan.whole_changes)):
        yield f"all checked{by}"
    compared = _largest_error(done)
    if compared is not None:
        yield f"largest error {compared:.2g}" if compared else "bit-exact"
    if done.verified is not None:
        compared_sets = sum(not trial.void for trial in done.verified.trials)
        yield f"verified on {count(compared_sets, 'input')}"
        if done.verified.warnings:
            yield count(len(done.verified.warnings), "warning")


def unchecked(done: Converted) -> list[str]:
    """Return the parts of a conversion that nothing has checked, each with its number."""
    plan, found = done.plan, []
    changed, together = changed_nodes(plan), written_together(plan)
    whole = done.verified is not None
    compared = whole or (done.whole is not None and not done.whole.uncompared)
    if done.checks is not None:
        nodes = sum(item.sites for item in done.checks.unchecked)
    else:
        nodes = 0 if compared or not changed else changed - together
    if not compared:
        nodes += together
    if nodes:
        found.append(count(nodes, "node"))
    if plan.whole_changes and not compared:
        found.append(count(plan.whole_changes, "change") + " of the whole model")
    return found


def written_together(plan: Plan) -> int:
    """Return how many nodes of sequences or optional values are written out together."""
    return sum(change.edits == (WRITTEN_OUT,) for change in plan.changes)


def _largest_error(done: Converted) -> float | None:
    """Return the largest absolute error of nodes and whole models; None where none was compared."""
    errors = [] if done.checks is None else list(done.checks.errors)
    exact = done.checks is not None and done.checks.bit_exact > 0
    if done.verified is not None:
        errors += [
            item.errors
            for item in done.verified.comparisons
            if item.agree and item.first[0] != item.second[0] and item.first[1] == item.second[1]
        ]
    if not errors:
        return 0.0 if exact else None
    return max(item.max_abs for item in errors)
