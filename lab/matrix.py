"""What runtimes make of models as exported and as converted for them: `matrix.json`.

`whole.json` has the same of whole models. `python -m lab --record` adds to both and writes
docs/measured.md, which `python -m lab.matrix` writes without a run.
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

#: The same of whole models.
WHOLE = Path(__file__).with_name("whole.json")
DOCUMENT = Path(__file__).parent.parent / "docs" / "measured.md"

#: What runtimes compute wrong in whole models, as they are as well: by runtime and model.
CAUSES = {
    ("iree", "skl_process"): "Scan, which it refuses alone",
    ("mnn", "asr_kaldi"): "Pad with mode=edge",
    ("mnn", "magika"): "Reciprocal of deviations near 0, which differ in their last digits",
    ("mnn", "vad_sequence"): "LSTM with initial_h and initial_c",
    ("opencv", "asr_gigaam"): "Sub of int64",
    ("opencv", "mos_noise"): "ReduceMax of much data",
    ("opencv", "turn"): "steps of uint8 that differ by 1, more from layer to layer",
}

#: The opsets that a user would try.
BY_HAND = (9, 11, 12, 13, 15, 17, 18)

#: How outcomes follow each other.
_ORDER = ("right", "wrong", "refused", "crash", BLOCKED)


class Result(NamedTuple):
    """What became of a model: a verdict, or `BLOCKED` or `NOT_RUN`.

    Attributes:
        exported: as it was.
        converted: after the conversion for the runtime.
        by_hand: as it was, or at the opset of `--opset` that suits the runtime best.
        why: what was said where it is not right as converted.
    """

    exported: str
    converted: str
    by_hand: str = NOT_RUN
    why: str = ""

    @property
    def shortest(self) -> tuple[str, ...]:
        """What a file has of it: a pair where it was not run by hand."""
        return self[:2] if self.by_hand == NOT_RUN else self

    @property
    def is_wrong(self) -> bool:
        """Whether the runtime computes something else as converted."""
        return self.converted == "wrong"

    @property
    def is_broken(self) -> bool:
        """Whether it was right as exported, and is not as converted."""
        return self.exported == "right" != self.converted

    @property
    def is_missed(self) -> bool:
        """Whether an opset by hand does what the conversion for the runtime does not."""
        return self.by_hand == "right" != self.converted and not self.is_broken


Results = Mapping[str, Result]


def merge(path: Path, runtime: str, results: Results) -> None:
    """Add what was measured in a runtime to a file; a model's earlier result is replaced."""
    found = read(path)
    found[runtime] = {**found.get(runtime, {}), **results}
    lines = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(
            f" {json.dumps(source)}: {json.dumps(result.shortest)}"
            for source, result in own.items()
        )
        + "\n}"
        for name, own in sorted(found.items())
    ]
    # A run that is ended meanwhile is to go on from what is there.
    part = path.with_suffix(".part")
    part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    part.replace(path)


def read(path: Path = MATRIX) -> dict[str, Results]:
    """What a file has, by runtime and by model; nothing if there is none yet."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {
        runtime: {source: Result(*pair) for source, pair in own.items()}
        for runtime, own in found.items()
    }


def counts(results: Iterable[Result]) -> str:
    """How many of some results are what, in one line."""
    found = list(results)
    before = Counter(item.exported for item in found)
    after = Counter(item.converted for item in found)
    was = "" if set(before) == {NOT_RUN} else f"as exported {_counted(before)}; "
    return f"{was}--for {_counted(after)}; {sum(item.is_broken for item in found)} broken"


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{counter[name]} {name}" for name in _ORDER if counter[name])


def markdown(measured: Mapping[str, Results], whole: Mapping[str, Results]) -> str:
    """The tables of all runtimes, and every model that is not right as converted."""
    lines = [
        "# Measured in runtimes",
        "",
        "How many models does a runtime compute right, as they are and after `onnxreduce convert "
        "--for`? Each was run in the runtime itself. The first table is of small models: one node, "
        "mostly of the Reduce and Softmax family (`lab/measured.json`), or several drawn at random "
        "(graph_0 ...).",
        "",
        "- *Wrong*: the runtime computes something else, and reports no error.",
        "- *Refused*: the runtime reports an error.",
        "- *Refused by us*: `convert` says which node is in the way.",
        "- *Broken*: right as exported, and not after the conversion.",
        "",
        "`python -m lab NAME==VERSION --record` writes the rows of a runtime.",
        *_table(measured),
        "",
        "## Whole models",
        "",
        "These are exports of PyTorch by both exporters (ts, dyn), quantized ones (qdq, int4), and "
        "some of scikit-learn (skl), which few of these runtimes take (`tests/data/exports`); and "
        "models that packages ship (`lab/shipped.py`), on the inputs that they have there.",
        "",
        "- *By hand*: right as it is, or converted by `--opset` to the best of the opsets "
        f"{', '.join(map(str, BY_HAND))}.",
        "- *Crash*: the runtime dies, or does not come to an end.",
        *_table_of_whole(whole),
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
    rows = {runtime: _row(results) for runtime, results in sorted(measured.items())}
    yield from _lines(rows)
    yield from ("", "Not right after `--for`:", "")
    for runtime, results in sorted(measured.items()):
        left = [
            f"{source} ({result.converted})"
            for source, result in results.items()
            if result.converted != "right"
        ]
        if left:
            yield f"- {runtime}: {', '.join(left)}"


def _row(results: Results) -> list[int]:
    before = Counter(result.exported for result in results.values())
    after = Counter(result.converted for result in results.values())
    return [
        len(results),
        *(before[name] for name in ("right", "wrong", "refused")),
        *(after[name] for name in ("right", "wrong", "refused", BLOCKED)),
        sum(item.is_broken for item in results.values()),
    ]


def _table_of_whole(measured: Mapping[str, Results]) -> Iterator[str]:
    """The table of whole models, and by name what was lost or computed wrong, with why."""
    yield from (
        "",
        "| runtime | models | right as exported | right by hand | right after --for | wrong "
        "| refused | crash | refused by us | broken |",
        "|---|" + "--:|" * 9,
    )
    rows = {runtime: _row_of_whole(results) for runtime, results in sorted(measured.items())}
    yield from _lines(rows)
    titles = {
        "Right as exported and not after `--for`": "is_broken",
        "Silently wrong after `--for`": "is_wrong",
        "Right at some opset by hand and not after `--for`": "is_missed",
    }
    for title, property_name in titles.items():
        yield from ("", f"{title}:", "")
        named = [
            f"- {runtime}, {source}: {result.converted}"
            f"{_quoted(result.why or CAUSES.get((runtime.partition('==')[0], source), ''))}"
            for runtime, results in sorted(measured.items())
            for source, result in sorted(results.items())
            if getattr(result, property_name)
        ]
        yield from named or ["None."]


def _row_of_whole(results: Results) -> list[int]:
    found = list(results.values())
    after = Counter(result.converted for result in found)
    return [
        len(found),
        sum(result.exported == "right" for result in found),
        sum(result.by_hand == "right" for result in found),
        *(after[name] for name in ("right", "wrong", "refused", "crash", BLOCKED)),
        sum(result.is_broken for result in found),
    ]


def _quoted(text: str) -> str:
    """A text in one line, as code, after a comma; nothing if there is none."""
    line = " ".join(text.replace("`", "'").split())
    return f", `{line}`" if line else ""


def _lines(rows: Mapping[str, list[int]]) -> Iterator[str]:
    """The lines of a table, and their sum."""
    total = [sum(column) for column in zip(*rows.values(), strict=True)]
    for name, row in [*rows.items(), ("all", total)]:
        yield "| " + " | ".join([name, *map(str, row)]) + " |"


def write_document() -> None:
    """Write docs/measured.md from both files."""
    DOCUMENT.write_text(markdown(read(), read(WHOLE)), encoding="utf-8")


if __name__ == "__main__":
    write_document()
