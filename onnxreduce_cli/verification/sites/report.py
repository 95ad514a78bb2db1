"""The result of checking the sites of a conversion, as data."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import onnx
from onnx import ModelProto

from onnxreduce_cli.serializable import Serializable
from onnxreduce_cli.text import count
from onnxreduce_cli.verification.compare.values import Errors, Tolerance

#: Larger errors are given as absolute ones: ULPs of results that cancel to nearly 0 are many.
_MOST_ULPS = 64


@dataclass(frozen=True, slots=True)
class SiteFailure:
    """A changed node whose replacement is not the same function.

    Attributes:
        node: the first such node's name, or a description by its output.
        op_type: its operator.
        scope: where it is: empty for the main graph.
        result: the operators that replace it.
        sites: how many nodes changed in the same way.
        reason: how the results differ.
        before: the node as a model.
        after: its replacement as a model.
        inputs: the inputs on which they differ; empty if the replacement is not even valid.
    """

    node: str
    op_type: str
    scope: str
    result: tuple[str, ...]
    sites: int
    reason: str
    before: ModelProto = field(repr=False)
    after: ModelProto = field(repr=False)
    inputs: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        """Return one line."""
        place = f" in {self.scope}" if self.scope else ""
        others = f" (and {self.sites - 1} more like it)" if self.sites > 1 else ""
        return f"{self.op_type} node {self.node}{place}{others}: {self.reason}"

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Keep what reproduces the failure: both models and the inputs.

        ``verify before.onnx after.onnx --inputs test_data_set_0`` in that folder shows it again.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        onnx.save(self.before, path / "before.onnx")
        onnx.save(self.after, path / "after.onnx")
        (path / "README.txt").write_text(f"{self}\n", encoding="utf-8")
        if self.inputs:
            from onnxreduce_cli.verification.inputs.files import write_inputs

            write_inputs(path / "test_data_set_0", self.inputs, self.before)


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Sites of one operator that could not be checked for one reason.

    Attributes:
        node: the first such node.
        op_type: its operator.
        sites: how many there are.
        reason: why.
    """

    node: str
    op_type: str
    sites: int
    reason: str

    def __str__(self) -> str:
        """Return one line."""
        others = f" (and {self.sites - 1} more like it)" if self.sites > 1 else ""
        return f"{self.op_type} node {self.node}{others}: {self.reason}"


@dataclass(frozen=True, slots=True)
class SiteCheck:
    """A changed node, equal ones once, and what running it found.

    Attributes:
        node: the first such node's name, or a description by its output.
        op_type: its operator.
        scope: where it is: empty for the main graph.
        result: the operators that replace it.
        sites: how many nodes changed in the same way.
        verdict: how it ended.
        reason: how the results differ, or why nothing could be run; may be empty.
        errors: the errors over all inputs; None where nothing was compared.
        seconds: how long it took to run both sides.
    """

    node: str
    op_type: str
    scope: str
    result: tuple[str, ...]
    sites: int
    verdict: Literal["bit-exact", "within tolerance", "failed", "not checked"]
    reason: str = ""
    errors: Errors | None = None
    seconds: float = 0.0


@dataclass(frozen=True, repr=False)
class SiteReport(Serializable):
    """The result of checking the changed nodes of a conversion.

    Attributes:
        sites: how many nodes change.
        distinct: how many of them differ in operator, attributes, dtypes, ranks or replacement.
        bit_exact: how many different ones agree in every bit.
        errors: the differences of each that agrees, but not in every bit.
        unchecked: those that nothing could run.
        failures: those that do not agree.
        remarks: where ONNX Runtime deviates from the specification on a node, and which nodes are
            not contracted, as that differs or cannot be checked.
        each: every changed node by itself, equal ones once.
    """

    EXTRA_FIELDS: ClassVar = ("summary", "checked", "tolerances")
    OMITTED_FIELDS: ClassVar = ("errors", "unchecked", "failures")

    sites: int
    distinct: int
    bit_exact: int
    errors: tuple[Errors, ...]
    unchecked: tuple[Unchecked, ...]
    failures: tuple[SiteFailure, ...]
    remarks: tuple[str, ...]
    each: tuple[SiteCheck, ...] = ()

    def __repr__(self) -> str:
        """Return the summary."""
        return f"<SiteReport {self.summary}>"

    @property
    def ok(self) -> bool:
        """True if no node fails; unchecked ones do not count as failing."""
        return not self.failures

    @property
    def checked(self) -> int:
        """How many different nodes were run on both sides."""
        return self.bit_exact + len(self.errors) + len(self.failures)

    @property
    def tolerances(self) -> dict[str, tuple[float, float]]:
        """By dtype, the relative and absolute tolerance; ten times as large between executors."""
        return Tolerance().by_dtype()

    @property
    def max_ulp(self) -> int:
        """The largest error of a node that agrees, in units in the last place."""
        return max((errors.max_ulp or 0 for errors in self.errors), default=0)

    @property
    def summary(self) -> str:
        """One line: ``12 nodes, 4 different, all checked: 3 bit-exact, 1 within 2 ULP``."""
        if not self.sites:
            return "no nodes to check"
        different = f"{self.distinct} different, " if self.distinct != self.sites else ""
        head = f"{count(self.sites, 'node')}, {different}"
        if not self.checked:
            return f"{head}none checked"
        parts = [f"{self.bit_exact} bit-exact"] if self.bit_exact else []
        distances = [errors.max_ulp or 0 for errors in self.errors]
        ulps = [ulp for ulp in distances if ulp <= _MOST_ULPS]
        if ulps:
            parts.append(f"{len(ulps)} within {max(ulps)} ULP")
        loose = [errors for errors in self.errors if (errors.max_ulp or 0) > _MOST_ULPS]
        if loose:
            worst = max(errors.max_abs for errors in loose)
            parts.append(f"{len(loose)} within tolerance (largest error {worst:.2g})")
        if self.failures:
            parts.append(f"{len(self.failures)} FAILED")
        left = self.distinct - self.checked
        how = "all checked" if not left else f"{self.checked} checked, {left} NOT checked"
        return f"{head}{how}: {', '.join(parts)}"
