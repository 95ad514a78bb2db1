"""How many models are right where they are to run: `python -m lab.score [--for]`.

With `--for` also what becomes of them when they are converted for the runtime, by what the table of
targets says of the result; some minutes. `python -m lab` runs them in the runtimes themselves.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from typing import Any

from lab.measured import Verdict, load, pairs
from lab.models import model
from lab.predict import predicted, target_of
from onnxreduce_cli import ConversionError, convert
from onnxreduce_cli.model.types.facts import admit


@dataclass(frozen=True)
class Score:
    """Figures of some runtimes.

    Attributes:
        runtimes: how many they are.
        pairs: how many pairs of a runtime and a source.
        exported: how many of them are right, wrong and refused as exported.
        best: how many are right at some opset.
    """

    runtimes: int
    pairs: int
    exported: Counter[Verdict]
    best: int

    def __str__(self) -> str:
        """The figures on three lines."""
        count = self.exported
        return (
            f"{self.runtimes} runtimes, {self.pairs:,} pairs\n"
            f"as exported: {count['right']:,} right, {count['wrong']:,} silently wrong, "
            f"{count['refused']:,} refused\n"
            f"at the best opset for each: {self.best:,} right"
        )


def score(measured: dict[str, Any]) -> Score:
    """Count over the runtimes that a user would name."""
    found = list(pairs(measured))
    return Score(
        len({pair.runtime for pair in found}),
        len(found),
        Counter(pair.exported for pair in found),
        sum("right" in pair.verdicts.values() for pair in found),
    )


def converted(measured: dict[str, Any]) -> Counter[str]:
    """What becomes of each pair when the source is converted for the runtime.

    That is ``right`` or else what the table says, ``refused by us``, or ``broken`` where it is not
    right and was as exported.
    """
    found: Counter[str] = Counter()
    for pair in pairs(measured):
        target = target_of(pair.runtime)
        version = target.label.rpartition(" ")[2]
        given = model(pair.source, pair.source_opset)
        try:
            made = convert(given, runtime=f"{target.runtime.name}=={version}", check=False)
        except ConversionError:
            verdict = "refused by us"
        else:
            verdict = predicted(target, admit(made))
        found[verdict] += 1
        found["broken"] += verdict != "right" and pair.exported == "right"
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m lab.score", description=__doc__)
    parser.add_argument("--for", dest="converted", action="store_true")
    options = parser.parse_args()
    measured = load()
    print(score(measured))
    if options.converted:
        counts = ", ".join(f"{number:,} {what}" for what, number in converted(measured).items())
        print(f"converted for the runtime, by the table: {counts}")


if __name__ == "__main__":
    main()
