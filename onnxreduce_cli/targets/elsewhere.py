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

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.targets.forms import has_form
from onnxreduce_cli.targets.spans import span

INDEX = Path(__file__).with_name("wrong.json")

#: The forms of a node, names of `forms.FORMS`, that some runtime computes wrong.
Forms = tuple[str, ...]


class Alike(NamedTuple):
    """Nodes that differ in nothing but names, the first input and the outputs.

    Attributes:
        op_type: their operator.
        nodes: the nodes, at least one.
        ask: gives what is known of one of them.
        types: gives for each of them what is equal for those that read and make values of the same
            types; None where that is not known, or for all.
    """

    op_type: str
    nodes: list[NodeProto]
    ask: Callable[[NodeProto], NodeFacts]
    types: Callable[[], Sequence[Hashable] | None] = lambda: None


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
            hit[group.op_type, forms] += number
    versions: dict[str, set[str]] = {}
    numbers: Counter[str] = Counter()
    for (op_type, forms), number in hit.items():
        numbers[op_type] += number if forms else 0
        for name, version in (item for form in forms for item in known[op_type][form]):
            versions.setdefault(name, set()).add(version)
    if not versions:
        return None
    told = {name: span(_index()[name]["versions"], own) for name, own in sorted(versions.items())}
    return Wrong(opset, dict(+numbers), told)


def _forms(group: Alike, wanted: Iterable[str]) -> Iterator[tuple[Forms, int]]:
    """The wanted forms that nodes have, and how many have just these."""
    known: dict[Hashable, Forms] = {}
    types: Sequence[Hashable] | None = None
    for place, node in enumerate(group.nodes):
        kin = types[place] if types else None
        if kin in known:
            yield known[kin], 1
            continue
        asked = group.ask(node)
        forms = tuple(form for form in wanted if has_form(asked, form))
        found = asked.lookups
        if found.are_own(node.input[:], node.output[:]) and found.constants.isdisjoint(
            node.input[:1]
        ):
            if place == 0 and not found.types:
                yield forms, len(group.nodes)
                return
            types = group.types() if types is None else types
            if types and types[place] is not None:
                known[types[place]] = forms
        yield forms, 1


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
