"""The comparison with other converters, as `python -m benchmarks older-runtimes` recorded it.

python -m docs.generator.comparison        # prints the table of docs/comparison.md
"""

from __future__ import annotations

import json
from typing import Any

from docs.generator.workplace import ROOT

RECORD = ROOT / "benchmarks" / "older_runtimes.json"


#: What is recorded of one export, said of several.
_OF_MANY = {"does not load or run": "do not load or run", "differs": "differ"}


def recorded() -> dict[str, Any]:
    """What was measured."""
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def table() -> str:
    """How many exports load and agree, by converter and runtime; and why the others do not."""
    found = recorded()
    runtimes = found["opsets"]
    heads = [f"onnxruntime {name}, opset {opset}" for name, opset in runtimes.items()]
    lines = ["| converter | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for converter in found["outcomes"][next(iter(runtimes))]:
        cells = [_cell(found["outcomes"][name][converter]) for name in runtimes]
        lines.append("| " + " | ".join([_name(converter), *cells]) + " |")
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    measured = f"Of {found['exports']} exports, with {versions}; measured on {found['date']}."
    return "\n".join([*lines, "", measured]) + "\n"


def _name(converter: str) -> str:
    """What is typed as code: text would have a dash for the two of an option."""
    typed, *told = converter.split(", IR version")
    return f"`{typed}`" + "".join(f", IR version{more}" for more in told)


def _cell(outcomes: dict[str, int]) -> str:
    others = [
        f"{number} {what if number == 1 else _OF_MANY.get(what, what)}"
        for what, number in outcomes.items()
        if what != "agrees"
    ]
    agrees = f"**{outcomes.get('agrees', 0)}**"
    return f"{agrees}; {', '.join(others)}" if others else agrees


if __name__ == "__main__":
    print(table(), end="")
