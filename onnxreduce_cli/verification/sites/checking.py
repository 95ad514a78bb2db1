"""Checking what a conversion does, site by site.

Each distinct site is a pair of tiny models, the original node at its own opset and what replaces
it at the target; both run in ONNX Runtime and in the NumPy executor on inputs of several shapes
and value profiles. Weights are not needed: inputs are drawn, dimensions made small.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from onnxreduce_cli.engine.pairs.pair import DistinctSite
from onnxreduce_cli.errors import CheckError, UncheckedError, node_in_scope
from onnxreduce_cli.verification.compare.values import Errors
from onnxreduce_cli.verification.sites.pair_check import PairResult, check_pair
from onnxreduce_cli.verification.sites.report import SiteCheck, SiteFailure, SiteReport, Unchecked

if TYPE_CHECKING:
    from onnxreduce_cli.engine.changes import ContractionKey


def check_site(site: DistinctSite, seed: int = 0) -> PairResult:
    """Check a site by its pairs, all of which must agree.

    Args:
        site: the site.
        seed: of the inputs that are drawn.
    """
    if not site.pairs:
        return PairResult(unchecked=site.reason)
    total, unchecked = PairResult(), None
    for pair in site.pairs:
        found = check_pair(pair, seed)
        if found.failure:
            return found
        if found.unchecked:
            unchecked = unchecked or found
        total.errors += found.errors
        total.remarks += found.remarks
    return unchecked or total


def refused_contractions(
    results: Iterable[tuple[DistinctSite, PairResult]],
) -> tuple[dict[ContractionKey, str], list[str]]:
    """Return the contractions that are not to be made: a reason for each, and remarks.

    Nothing requires a contraction, so one that may differ from its nodes is none of a conversion.

    Args:
        results: the contractions, equivalent ones together, with the results of their checks.
    """
    reasons: dict[ContractionKey, str] = {}
    remarks = []
    for site, found in results:
        if not (found.failure or found.unchecked):
            continue
        reason = found.failure or f"it cannot be checked: {found.unchecked}"
        reasons |= dict.fromkeys(site.contractions, reason)
        others = f" (and {site.sites - 1} more like it)" if site.sites > 1 else ""
        place = node_in_scope(site.node, site.scope)
        remarks.append(
            f"{site.op_type} node {place}{others} stays, with the nodes before it: it is not "
            f"contracted to {site.contractions[0].op_type}, as {reason}"
        )
    return reasons, remarks


def report_on(results: Iterable[tuple[DistinctSite, PairResult]]) -> SiteReport:
    """Return the report on sites by the results of their checks."""
    found = _Results()
    for site, result in results:
        found.add(site, result)
    return found.report()


def refuse_failures(report: SiteReport, *, strict: bool) -> None:
    """Raise where a site failed; what reproduces it goes to a new folder.

    Args:
        report: the report on the sites of a conversion.
        strict: whether every site must be checked.

    Raises:
        CheckError: a site does not compute the same.
        UncheckedError: a site could not be checked, and the check is strict.
    """
    if report.ok and strict and report.unchecked:
        head = "nothing was converted, as these nodes could not be checked:"
        unchecked = UncheckedError(head, *map(str, report.unchecked))
        unchecked.report = report
        raise unchecked
    if report.ok:
        return
    folder = tempfile.mkdtemp(prefix="onnxreduce-failure-")
    for number, failure in enumerate(report.failures):
        failure.save(os.path.join(folder, str(number)))
    lines = [
        "what would replace these nodes does not compute the same, so nothing was converted:",
        *(str(failure) for failure in report.failures),
        f"This is a bug in onnxreduce; please report it with what is kept in {folder}",
    ]
    raise CheckError(lines, folder, report)


class _Results:
    """The results so far."""

    def __init__(self) -> None:
        self._exact = 0
        self._loose: list[Errors] = []
        self._unchecked: dict[tuple[str, str], Unchecked] = {}
        self._failures: list[SiteFailure] = []
        self._remarks: dict[str, None] = {}
        self._each: list[SiteCheck] = []

    def add(self, site: DistinctSite, found: PairResult) -> None:
        """Add the result of checking one of equivalent sites."""
        where = f"{site.op_type} node {site.node}"
        self._remarks.update(dict.fromkeys(f"{where}: {text}" for text in found.remarks))
        if found.unchecked:
            self._add_unchecked(site, found)
        elif found.failure:
            assert found.pair is not None
            self._failures.append(
                SiteFailure(
                    site.node,
                    site.op_type,
                    site.scope,
                    site.result,
                    site.sites,
                    found.failure,
                    found.pair.reference,
                    found.pair.candidate,
                    found.inputs,
                )
            )
            self._add(site, found, "failed", found.failure, found.errors)
        elif found.errors.bit_exact:
            self._exact += 1
            self._add(site, found, "bit-exact", "", found.errors)
        else:
            self._loose.append(found.errors)
            self._add(site, found, "within tolerance", "", found.errors)

    def _add_unchecked(self, site: DistinctSite, found: PairResult) -> None:
        """Add sites that could not be checked to others of the same operator and reason."""
        reason = found.unchecked
        key = (site.op_type, reason)
        known = self._unchecked.get(key)
        if known is None:
            self._unchecked[key] = Unchecked(site.node, site.op_type, site.sites, reason)
        else:
            self._unchecked[key] = replace(known, sites=known.sites + site.sites)
        self._add(site, found, "not checked", reason)

    def report(self) -> SiteReport:
        """Return the report."""
        return SiteReport(
            sum(item.sites for item in self._each),
            len(self._each),
            self._exact,
            tuple(self._loose),
            tuple(self._unchecked.values()),
            tuple(self._failures),
            tuple(self._remarks),
            tuple(self._each),
        )

    def _add(
        self,
        site: DistinctSite,
        found: PairResult,
        verdict: Literal["bit-exact", "within tolerance", "failed", "not checked"],
        reason: str,
        errors: Errors | None = None,
    ) -> None:
        place = (site.node, site.op_type, site.scope)
        check = SiteCheck(*place, site.result, site.sites, verdict, reason, errors, found.seconds)
        self._each.append(check)
