"""What was measured, in `measured.json` or another file of that form.

what     what the file is, for people
forms    what the forms of the sources are called: {"a2k": "axes=[2], keepdims=1", ...}
sources  one-node models: {"ReduceL1_a2k": {"op", "form", "source_opset"}, ...}
results  what a runtime made of each: {"opencv-4.6.0": {"ReduceL1_a2k": {"right": [7, 11],
         "wrong": [18]}}}, by outcome the opsets, of which the source's own is as exported
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

#: What was measured in 42 versions of runtimes.
MEASURED = Path(__file__).with_name("measured.json")

#: What nobody would name: the oracle itself, what takes none of the models as IR version 8 and is
#: there with a lower one too, and what was measured at few opsets.
LEFT_OUT = frozenset(
    {"onnxruntime-1.31.1", "onnxruntime-1.8.1", "onnxruntime-web-1.10.0", "onnx2tf-2.6.9"}
)

#: What a runtime made of a model; a crash is one that it dies of, or does not come to an end with.
Verdict = Literal["right", "wrong", "refused", "crash"]

#: A result without the batch axis, which some runtimes drop, is right; what dies refuses.
VERDICTS: dict[str, Verdict] = {
    "right": "right",
    "right-shape": "right",
    "wrong": "wrong",
    "refused": "refused",
    "crash": "refused",
}


@dataclass(frozen=True)
class Pair:
    """What one runtime makes of one source.

    Attributes:
        runtime: its name and version.
        source: the model's name.
        source_opset: the model's opset as it is exported.
        verdicts: by opset; the source's own is as exported, any other as converted to it.
    """

    runtime: str
    source: str
    source_opset: int
    verdicts: dict[int, Verdict]

    @property
    def exported(self) -> Verdict:
        """The verdict as exported."""
        return self.verdicts[self.source_opset]


def load(path: Path = MEASURED) -> dict[str, Any]:
    """The file as it is."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def pairs(measured: dict[str, Any], *, left_out: frozenset[str] = LEFT_OUT) -> Iterator[Pair]:
    """Each runtime with each source that was run in it."""
    for runtime, results in measured["results"].items():
        if runtime in left_out:
            continue
        for source, outcomes in results.items():
            verdicts = {
                opset: VERDICTS[name] for name, opsets in outcomes.items() for opset in opsets
            }
            yield Pair(runtime, source, measured["sources"][source]["source_opset"], verdicts)
