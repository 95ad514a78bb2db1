"""What some runtime computes wrong of a model, silently, though it takes the model's opset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.targets.reading import names, runtime, text_of
from onnxreduce_cli.targets.rows import is_within
from onnxreduce_cli.targets.verdict import has_form
from onnxreduce_cli.targets.versions import Version

#: The forms of a node, names of `forms.FORMS`, that some runtime computes wrong.
Forms = tuple[str, ...]


class Alike(NamedTuple):
    """Nodes that differ in nothing but names, the first input and the outputs.

    Attributes:
        op_type: their operator.
        nodes: how many they are, at least one.
        ask: gives what is known of one of them, by its number.
        types: gives for each of them what is equal for those that read and make values of the same
            types; None where that is not known, or for all.
        times: in how many functions that are alike there are these.
    """

    op_type: str
    nodes: int
    ask: Callable[[int], NodeFacts]
    types: Callable[[], Sequence[Hashable] | None] = lambda: None
    times: int = 1


@dataclass(frozen=True)
class Wrong:
    """Nodes that some runtimes compute wrong.

    Attributes:
        opset: that of the model.
        nodes: how many of each operator.
        runtimes: the versions of each runtime, by its name: ``{"openvino": "2025.4 to 2026.4"}``.
    """

    opset: int
    nodes: dict[str, int]
    runtimes: dict[str, str]


def wrong_elsewhere(
    opset: int, nodes: Callable[[Collection[str]], Iterable[Alike]]
) -> Wrong | None:
    """Return what some runtimes compute wrong of a model that is valid; None if nothing.

    Args:
        opset: that of the model.
        nodes: gives its nodes of some operators, those alike together.
    """
    known = _wrong(opset)
    hit: Counter[tuple[str, Forms]] = Counter()
    for group in nodes(known):
        for forms, number in _forms(group, known[group.op_type]):
            hit[group.op_type, forms] += number * group.times
    versions: dict[str, set[Version]] = {}
    numbers: Counter[str] = Counter()
    for (op_type, forms), number in hit.items():
        numbers[op_type] += number if forms else 0
        for name, version in (item for form in forms for item in known[op_type][form]):
            versions.setdefault(name, set()).add(version)
    if not versions:
        return None
    told = {name: runtime(name).span(own) for name, own in sorted(versions.items())}
    return Wrong(opset, dict(+numbers), told)


def _forms(group: Alike, wanted: Collection[str]) -> Iterator[tuple[Forms, int]]:
    """The wanted forms that nodes have, and how many have just these."""
    first = _asked(group, 0, wanted)
    if group.nodes == 1 or (first.shared and not first.typed):
        yield first.forms, group.nodes
        return
    types = group.types() or [None] * group.nodes
    alone = [index for index, kin in enumerate(types) if kin is None]
    found = dict(zip(reversed(types), reversed(range(group.nodes)), strict=True))
    for kin, count in Counter(types).items():
        if kin is None:
            continue
        asked = _asked(group, found[kin], wanted)
        if asked.shared:
            yield asked.forms, count
        else:
            alone += [index for index, own in enumerate(types) if own is kin]
    for index in alone:
        yield _asked(group, index, wanted).forms, 1


class _Asked(NamedTuple):
    """What was found of one node.

    Attributes:
        forms: the wanted forms that it has.
        shared: whether it is true of all nodes like it that read and make values of its types.
        typed: whether it depends on these.
    """

    forms: Forms
    shared: bool
    typed: bool


def _asked(group: Alike, index: int, wanted: Collection[str]) -> _Asked:
    asked = group.ask(index)
    forms = tuple(form for form in wanted if has_form(asked, form))
    inputs, found = asked.node.input[:], asked.lookups
    is_own = found.are_own(inputs, asked.node.output[:])
    return _Asked(forms, is_own and found.constants.isdisjoint(inputs[:1]), found.types)


@cache
def _wrong(opset: int) -> dict[str, dict[str, set[tuple[str, Version]]]]:
    """What versions that take an opset compute wrong there, by operator and form of the node."""
    found: dict[str, dict[str, set[tuple[str, Version]]]] = {}
    for name in names():
        if "wrong" not in text_of(name):
            continue  # Most say it of nothing.
        for row in runtime(name).rows:
            taken = (row.number("oldest") or 1, row.number("newest"))
            for quirk in row.quirks if is_within(opset, taken) else ():
                if quirk.effect == "wrong" and quirk.at(opset):
                    for op_type in quirk.operators:
                        forms = found.setdefault(op_type, {})
                        forms.setdefault(quirk.form, set()).add((name, row.version))
    return found
