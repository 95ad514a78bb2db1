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

from onnxreduce_cli.engine.pairs.pair import DistinctSite, Pair, UncheckableError
from onnxreduce_cli.errors import CheckError, UncheckedError, node_in_scope
from onnxreduce_cli.verification.compare.values import Errors
from onnxreduce_cli.verification.sites.pair_check import TOO_LARGE, PairResult, check_pair
from onnxreduce_cli.verification.sites.report import SiteCheck, SiteFailure, SiteReport, Unchecked

if TYPE_CHECKING:
    from onnxreduce_cli.engine.changes import ContractionKey

#: Elements that one run may compute in the last attempt at a site.
_AT_LAST = 1 << 25


#: The results of checks by the key of the pair, to check no pair twice.
CheckedPairs = dict[bytes, PairResult]


def refused_contractions(
    sites: Iterable[DistinctSite], results: CheckedPairs
) -> tuple[dict[ContractionKey, str], list[str]]:
    """Check contractions, and return those that are not to be made: a reason each, and remarks.

    Nothing requires a contraction, so one that may differ from its nodes is none of a conversion.

    Args:
        sites: the contractions, equivalent ones together.
        results: the results so far; new ones are added.
    """
    reasons: dict[ContractionKey, str] = {}
    remarks = []
    for site in sites:
        reason = f"it cannot be checked: {site.reason}"
        if site.pair is not None:
            found = _checked(site, site.pair, 0, results)
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


def check_conversion(
    sites: Iterable[DistinctSite], *, strict: bool = False, results: CheckedPairs | None = None
) -> SiteReport:
    """Check the sites of a conversion; what reproduces a failure goes to a new folder.

    Args:
        sites: the sites, equivalent ones together.
        strict: whether every site must be checked.
        results: the results of earlier checks.

    Raises:
        CheckError: a site does not compute the same.
        UncheckedError: a site could not be checked, and the check is strict.
    """
    report = check_sites(sites, results=results)
    if report.ok and strict and report.unchecked:
        head = "nothing was converted, as these nodes could not be checked:"
        unchecked = UncheckedError("\n".join([head, *map(str, report.unchecked)]))
        unchecked.report = report
        raise unchecked
    if report.ok:
        return report
    folder = tempfile.mkdtemp(prefix="onnxreduce-failure-")
    for number, failure in enumerate(report.failures):
        failure.save(os.path.join(folder, str(number)))
    lines = [
        "what would replace these nodes does not compute the same, so nothing was converted:",
        *(str(failure) for failure in report.failures),
        f"This is a bug in onnxreduce; please report it with what is kept in {folder}",
    ]
    raise CheckError(lines, folder, report)


def check_sites(
    sites: Iterable[DistinctSite], *, seed: int = 0, results: CheckedPairs | None = None
) -> SiteReport:
    """Check each distinct pair once, and report on all sites.

    Args:
        sites: the sites, equivalent ones together; some may have equal pairs all the same.
        seed: of the inputs that are drawn.
        results: the results of earlier checks with that seed.
    """
    known = {} if results is None else results
    found = _Results()
    distinct: dict[bytes, tuple[DistinctSite, Pair, int]] = {}
    for site in sites:
        if site.pair is None:
            found.add_unchecked(site, site.sites, site.reason)
            continue
        key = site.pair.key
        first, pair, count = distinct.get(key, (site, site.pair, 0))
        distinct[key] = (first, pair, count + site.sites)
    for site, pair, count in distinct.values():
        found.add(site, count, _checked(site, pair, seed, known))
    return found.report()


def _checked(site: DistinctSite, pair: Pair, seed: int, results: CheckedPairs) -> PairResult:
    """Return the result of checking a site, from `results` if it is there."""
    if pair.key not in results:
        results[pair.key] = _check_site(site, pair, seed)
    return results[pair.key]


def _check_site(site: DistinctSite, pair: Pair, seed: int) -> PairResult:
    """Check a site by a pair of small tensors, then of its true ones, then of smaller ones.

    What replaces it may depend on the true dimensions and constants: where small tensors differ,
    or cannot be run, these decide.
    """
    found = check_pair(pair, seed)
    if not pair.full and (found.failure or found.unchecked):
        pair = next(site.others)
        found = check_pair(pair, seed)
    enough = found.unchecked != TOO_LARGE if pair.full else not (found.failure or found.unchecked)
    if enough:
        return found
    try:
        return check_pair(next(site.others), seed, _AT_LAST)
    except UncheckableError as error:
        if pair.full:
            found = check_pair(pair, seed, _AT_LAST)
        if pair.full and found.unchecked != TOO_LARGE:
            return found
        return PairResult(unchecked=f"{TOO_LARGE}; {error}")


class _Results:
    """The results so far."""

    def __init__(self) -> None:
        self._exact = 0
        self._loose: list[Errors] = []
        self._unchecked: dict[tuple[str, str], Unchecked] = {}
        self._failures: list[SiteFailure] = []
        self._remarks: dict[str, None] = {}
        self._each: list[SiteCheck] = []

    def add(self, site: DistinctSite, count: int, found: PairResult) -> None:
        """Add the result of checking one of `count` equivalent sites."""
        where = f"{site.op_type} node {site.node}"
        self._remarks.update(dict.fromkeys(f"{where}: {text}" for text in found.remarks))
        if found.unchecked:
            self.add_unchecked(site, count, found.unchecked)
        elif found.failure:
            assert found.pair is not None
            self._failures.append(
                SiteFailure(
                    site.node,
                    site.op_type,
                    site.scope,
                    site.result,
                    count,
                    found.failure,
                    found.pair.reference,
                    found.pair.candidate,
                    found.inputs,
                )
            )
            self._add(site, count, "failed", found.failure, found.errors)
        elif found.errors.bit_exact:
            self._exact += 1
            self._add(site, count, "bit-exact", "", found.errors)
        else:
            self._loose.append(found.errors)
            self._add(site, count, "within tolerance", "", found.errors)

    def add_unchecked(self, site: DistinctSite, count: int, reason: str) -> None:
        """Add sites that could not be checked to others of the same operator and reason."""
        key = (site.op_type, reason)
        known = self._unchecked.get(key)
        if known is None:
            self._unchecked[key] = Unchecked(site.node, site.op_type, count, reason)
        else:
            self._unchecked[key] = replace(known, sites=known.sites + count)
        self._add(site, count, "not checked", reason)

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
        count: int,
        verdict: Literal["bit-exact", "within tolerance", "failed", "not checked"],
        reason: str,
        errors: Errors | None = None,
    ) -> None:
        place = (site.node, site.op_type, site.scope)
        self._each.append(SiteCheck(*place, site.result, count, verdict, reason, errors))
