"""What some runtime computes wrong of a model, silently, though it takes the model's opset.

To read the files of all runtimes takes longer than to convert a small model. What they say of this
is in `wrong.json`: not kept by hand, but written by ``python -m onnxreduce_cli.report.targets``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.targets.forms import has_form

INDEX = Path(__file__).with_name("wrong.json")

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


@dataclass(frozen=True, slots=True)
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
    versions: dict[str, set[str]] = {}
    numbers: Counter[str] = Counter()
    for (op_type, forms), number in hit.items():
        numbers[op_type] += number if forms else 0
        for name, version in (item for form in forms for item in known[op_type][form]):
            versions.setdefault(name, set()).add(version)
    if not versions:
        return None
    from onnxreduce_cli.targets.spans import span

    told = {name: span(_index()[name]["versions"], own) for name, own in sorted(versions.items())}
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
def _wrong(opset: int) -> dict[str, dict[str, set[tuple[str, str]]]]:
    """What versions that take an opset compute wrong there, by operator and form of the node."""
    found: dict[str, dict[str, set[tuple[str, str]]]] = {}
    for name, known in _index().items():
        for quirk in known["wrong"]:
            places = {
                (name, version)
                for version, (first, last) in quirk["at"].items()
                if first <= opset and (last is None or opset <= last)
            }
            for op_type in quirk["operators"] if places else ():
                found.setdefault(op_type, {}).setdefault(quirk["form"], set()).update(places)
    return found


@cache
def _index() -> dict[str, Any]:
    """By the name of a runtime its ``versions``, the oldest first, and what it gets ``wrong``.

    That is the operators, the form, and for each version the first opset and the last.
    """
    found: dict[str, Any] = json.loads(INDEX.read_text(encoding="utf-8"))
    return found
