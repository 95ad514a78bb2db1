"""What runtimes make of models as exported and as converted for them: `matrix.json`.

`python -m lab --output lab/matrix.json` adds to it, `python -m lab.matrix` writes docs/measured.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

#: What onnxreduce says itself that the runtime cannot do.
BLOCKED = "refused by us"

#: What was not run.
NOT_RUN = "not run"

MATRIX = Path(__file__).with_name("matrix.json")

#: Whole models as PyTorch and scikit-learn export them, with inputs.
EXPORTS = Path(__file__).parent.parent / "tests" / "data" / "exports"
DOCUMENT = Path(__file__).parent.parent / "docs" / "measured.md"

#: How outcomes follow each other.
_ORDER = ("right", "wrong", "refused", BLOCKED)


class Result(NamedTuple):
    """What became of a model: a verdict, or `BLOCKED` or `NOT_RUN`.

    Attributes:
        exported: as it was.
        converted: after the conversion for the runtime.
    """

    exported: str
    converted: str

    @property
    def is_wrong(self) -> bool:
        """Whether the runtime computes something else as converted."""
        return self.converted == "wrong"

    @property
    def is_broken(self) -> bool:
        """Whether it was right as exported, and is not as converted."""
        return self.exported == "right" != self.converted


Results = Mapping[str, Result]


def merge(path: Path, runtime: str, results: Results) -> None:
    """Add what was measured in a runtime to a file; a model's earlier result is replaced."""
    found = read(path) if path.exists() else {}
    found[runtime] = {**found.get(runtime, {}), **results}
    lines = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f" {json.dumps(source)}: {json.dumps(pair)}" for source, pair in own.items())
        + "\n}"
        for name, own in sorted(found.items())
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read(path: Path = MATRIX) -> dict[str, Results]:
    """What a file has, by runtime and by model."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return {
        runtime: {source: Result(*pair) for source, pair in own.items()}
        for runtime, own in found.items()
    }


def counts(results: Iterable[Result]) -> str:
    """How many of some results are what, in one line."""
    found = list(results)
    before, after = (Counter(column) for column in zip(*found, strict=True))
    was = "" if set(before) == {NOT_RUN} else f"as exported {_counted(before)}; "
    return f"{was}--for {_counted(after)}; {sum(item.is_broken for item in found)} broken"


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{counter[name]} {name}" for name in _ORDER if counter[name])


def markdown(measured: Mapping[str, Results]) -> str:
    """The tables of all runtimes, and every model that is not right as converted."""
    exports = {path.stem for path in EXPORTS.glob("*.onnx")}
    small, whole = (
        {
            runtime: kept
            for runtime, results in sorted(measured.items())
            if (kept := {name: results[name] for name in results if (name in exports) == wanted})
        }
        for wanted in (False, True)
    )
    lines = [
        "# Measured in runtimes",
        "",
        "One-node models of the Reduce and Softmax family and others (`lab/measured.json`), and "
        "models of several such nodes drawn at random (graph_0 ...), run in the runtimes "
        "themselves: as exported, and after `onnxreduce convert --for`. *Wrong*: the runtime "
        "computes something else and says nothing. *Refused by us*: the conversion says why it "
        "cannot be done. *Broken*: right as exported, and not after. Written by "
        "`python -m lab.matrix` from `lab/matrix.json`, which `python -m lab --output` writes.",
        *_table(small),
    ]
    if whole:
        lines += [
            "",
            "## Whole exports",
            "",
            "Exports of PyTorch by both exporters (ts, dyn), quantized ones (qdq, int4), and some "
            "of scikit-learn (skl), of which runtimes of neural networks take few: those of "
            "`tests/data/exports`. `python -m lab --exports` runs them.",
            *_table(whole),
        ]
    return "\n".join(lines) + "\n"


def _table(measured: Mapping[str, Results]) -> Iterator[str]:
    """The table of some runtimes, and what is not right."""
    yield from (
        "",
        "| runtime | models | right | wrong | refused | right after --for | wrong | refused "
        "| refused by us | broken |",
        "|---|" + "--:|" * 9,
    )
    total = [0] * 9
    for runtime, results in measured.items():
        row = _row(results)
        total = [a + b for a, b in zip(total, row, strict=True)]
        yield _line(runtime, row)
    yield from (_line("all", total), "", "Not right after `--for`:", "")
    for runtime, results in measured.items():
        left = [
            f"{source} ({result.converted})"
            for source, result in results.items()
            if result.converted != "right"
        ]
        if left:
            yield f"- {runtime}: {', '.join(left)}"


def _row(results: Results) -> list[int]:
    before, after = (Counter(column) for column in zip(*results.values(), strict=True))
    return [
        len(results),
        *(before[name] for name in ("right", "wrong", "refused")),
        *(after[name] for name in ("right", "wrong", "refused", BLOCKED)),
        sum(item.is_broken for item in results.values()),
    ]


def _line(name: str, row: Iterable[int]) -> str:
    return "| " + " | ".join([name, *map(str, row)]) + " |"


if __name__ == "__main__":
    DOCUMENT.write_text(markdown(read()), encoding="utf-8")
