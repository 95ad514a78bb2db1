"""What some runtime computes wrong of a model, silently, though it takes the model's opset.

To read the files of all runtimes takes longer than to convert a small model. What they say of this
is in `wrong.json`: not kept by hand, but written by ``python -m onnxreduce_cli.report.targets``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.records import dataclass
from onnxreduce_cli.targets.forms import has_form

INDEX = Path(__file__).with_name("wrong.json")

#: The forms of a node, names of `forms.FORMS`, that some runtime computes wrong.
Forms = tuple[str, ...]


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
    opset: int, nodes: Callable[[Collection[str]], Iterable[NodeFacts]]
) -> Wrong | None:
    """Return what some runtimes compute wrong of a model that is valid; None if nothing.

    Args:
        opset: that of the model.
        nodes: gives its nodes of some operators.
    """
    known = _wrong(opset)
    hit: Counter[tuple[str, Forms]] = Counter()
    for node in nodes(known):
        op_type = node.node.op_type
        hit[op_type, tuple(form for form in known[op_type] if has_form(node, form))] += 1
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
