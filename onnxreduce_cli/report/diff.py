"""The differences of two models as text."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from onnxreduce_cli.diffing.results import Diff, Difference
from onnxreduce_cli.errors import node_in_scope
from onnxreduce_cli.report.plan import change_lines
from onnxreduce_cli.text import count, listed, shortened, wrapped

_Item = TypeVar("_Item")

#: How many constants, or types, get a line each; more are put together.
_EACH = 8


def diff_text(diff: Diff, *, verbose: bool = False) -> str:
    """Return a headline and a line for each kind of difference; empty where nothing differs.

    Args:
        diff: the differences.
        verbose: whether each difference gets a line of its own.
    """
    if not diff.differs:
        return ""
    lines = [_headline(diff)]
    lines += [f"  {_difference_text(item)}" for item in diff.imports]
    for name, items in (("", diff.model), ("input ", diff.inputs), ("output ", diff.outputs)):
        lines += [f"  {name}{_difference_text(item)}" for item in items]
    lines += [f"  function {_difference_text(item)}" for item in diff.functions]
    lines += change_lines(diff.changes, verbose=verbose)
    for what, nodes in (("added", diff.added), ("removed", diff.removed)):
        groups = _grouped(nodes, lambda node: node.op_type, verbose)
        for group in groups:
            names = listed([node_in_scope(node.node, node.scope) for node in group])
            lines.append(f"  {what}: {len(group):,} {group[0].op_type}: {names}")
    lines += _difference_lines(("constant", "{} constants"), diff.constants, verbose=verbose)
    lines += _renamed(diff.renamed, verbose=verbose)
    lines += _difference_lines(("type of", "types of {} values"), diff.values, verbose=verbose)
    lines += [f"  {field}: of {count(number, 'node')}" for field, number in diff.metadata]
    return wrapped(lines)


def _headline(diff: Diff) -> str:
    numbers = [
        f"{len(found):,} {what}"
        for what, found in (
            ("changed", diff.changes),
            ("added", diff.added),
            ("removed", diff.removed),
        )
        if found
    ]
    nodes = f"nodes: {', '.join(numbers)}" if numbers else "the same nodes"
    return f"{diff.a} -> {diff.b}: {nodes}"


def _difference_text(item: Difference) -> str:
    """Return ``x: float[N,3] → float[1,3]``, ``y: int64 added`` or ``z: float[3] removed``."""
    name = node_in_scope(shortened(item.name), item.scope)
    if item.before and item.after:
        return f"{name}: {item.before} → {item.after}"
    return f"{name}: {item.after} added" if item.after else f"{name}: {item.before} removed"


def _kind(item: Difference) -> str:
    return "changed" if item.before and item.after else "added" if item.after else "removed"


def _difference_lines(
    what: tuple[str, str], items: Sequence[Difference], *, verbose: bool
) -> Iterator[str]:
    """Describe differences one by one or, where there are many, all of a kind in one line."""
    for group in _grouped(items, _kind, verbose or len(items) <= _EACH):
        if len(group) == 1:
            yield f"  {what[0]} {_difference_text(group[0])}"
        else:
            names = listed([node_in_scope(shortened(item.name), item.scope) for item in group])
            yield f"  {what[1].format(f'{len(group):,}')} {_kind(group[0])}: {names}"


def _renamed(items: Sequence[Difference], *, verbose: bool) -> Iterator[str]:
    for group in _grouped(items, lambda item: item.name == "initializer", verbose):
        what = "initializer" if group[0].name == "initializer" else "node"
        names = listed(
            [node_in_scope(f"{item.before} → {item.after}", item.scope) for item in group]
        )
        yield f"  {count(len(group), what)} renamed: {names}"


def _grouped(
    items: Iterable[_Item], key: Callable[[_Item], Hashable], apart: bool
) -> list[list[_Item]]:
    """Group items by a key, or put each in a group of its own if `apart`."""
    groups: dict[Hashable, list[_Item]] = {}
    for index, item in enumerate(items):
        groups.setdefault((index if apart else 0, key(item)), []).append(item)
    return [*groups.values()]
