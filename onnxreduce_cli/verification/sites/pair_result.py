"""What checking a pair finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.verification.compare.values import Errors

#: Why a pair is not checked that would compute too many elements.
TOO_LARGE = "its tensors are too large to try"


@dataclass(slots=True)
class PairResult:
    """The result of checking one pair.

    Attributes:
        pair: what was run.
        errors: the differences, where both sides agree.
        failure: why the sides are not the same; empty if they are, or nothing is known.
        unchecked: why nothing is known; empty if something is.
        refused: whether that is because the node accepted no inputs that were drawn.
        inputs: those on which the sides differ.
        remarks: what people should know of the executors.
    """

    pair: Pair | None = None
    errors: Errors = field(default_factory=Errors)
    failure: str = ""
    unchecked: str = ""
    refused: bool = False
    inputs: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
