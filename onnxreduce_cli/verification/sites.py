"""Checking what a conversion does, site by site.

Each distinct site becomes two tiny models, the original node at its own opset and what replaces
it at the target; both run in ONNX Runtime and in the NumPy executor on inputs of several shapes
and value profiles. Weights are not needed: inputs are drawn, dimensions made small.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.verification.compare import Errors
from onnxreduce_cli.verification.errors import UncheckableError
from onnxreduce_cli.verification.pair_check import check_pair
from onnxreduce_cli.verification.site_check import check_site
from onnxreduce_cli.verification.site_models import PairMaker
from onnxreduce_cli.verification.site_pair import Found, Pair
from onnxreduce_cli.verification.site_report import SiteCheck, SiteFailure, SiteReport, Unchecked


def check_sites(conversion: Conversion, *, seed: int = 0) -> SiteReport:
    """Check every distinct site of a conversion that has not been applied yet.

    Args:
        conversion: a conversion; its blocked sites are left out.
        seed: of the inputs that are drawn.
    """
    maker = PairMaker(conversion)
    by_signature: dict[Any, list[Site]] = {}
    with collector_paused():
        for site in conversion.sites:
            if site.blocked is None:
                by_signature.setdefault(maker.signature(site), []).append(site)
    found = _Findings()
    groups: dict[bytes, tuple[Pair, Site, int]] = {}
    for group in by_signature.values():
        try:
            pair = maker.pair(group[0])
        except UncheckableError as error:
            found.leave(group[0], len(group), str(error))
            continue
        pair_key = pair.key
        pair, first, count = groups.get(pair_key, (pair, group[0], 0))
        groups[pair_key] = (pair, first, count + len(group))
    for pair, site, count in groups.values():
        found.add(site, count, check_site(maker, site, pair, seed, check_pair))
    return found.report()


class _Findings:
    """What was found so far."""

    def __init__(self) -> None:
        self._exact = 0
        self._loose: list[Errors] = []
        self._unchecked: dict[tuple[str, str], Unchecked] = {}
        self._failures: list[SiteFailure] = []
        self._remarks: dict[str, None] = {}
        self._each: list[SiteCheck] = []

    def add(self, site: Site, count: int, found: Found) -> None:
        """Add what checking one of `count` sites found."""
        where = f"{site.node.op_type} node {site.scope.describe(site.node)}"
        self._remarks.update(dict.fromkeys(f"{where}: {text}" for text in found.remarks))
        if found.unchecked:
            self.leave(site, count, found.unchecked)
        elif found.failure:
            self._failures.append(_failure(site, found, count))
            self._each.append(_check(site, count, "failed", found.failure, found.errors))
        elif found.errors.bit_exact:
            self._exact += 1
            self._each.append(_check(site, count, "bit-exact", "", found.errors))
        else:
            self._loose.append(found.errors)
            self._each.append(_check(site, count, "within tolerance", "", found.errors))

    def leave(self, site: Site, count: int, reason: str) -> None:
        """Add sites that could not be checked, together with others of the same reason."""
        key = (site.node.op_type, reason)
        known = self._unchecked.get(key)
        if known is None:
            node = site.scope.describe(site.node)
            self._unchecked[key] = Unchecked(node, site.node.op_type, count, reason)
        else:
            self._unchecked[key] = replace(known, sites=known.sites + count)
        self._each.append(_check(site, count, "not checked", reason))

    def report(self) -> SiteReport:
        """All of it."""
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


def _check(
    site: Site,
    count: int,
    verdict: Literal["bit-exact", "within tolerance", "failed", "not checked"],
    reason: str = "",
    errors: Errors | None = None,
) -> SiteCheck:
    node, scope = site.scope.describe(site.node), site.scope.label
    return SiteCheck(node, site.node.op_type, scope, site.operators, count, verdict, reason, errors)


def _failure(site: Site, found: Found, count: int) -> SiteFailure:
    assert found.pair is not None
    return SiteFailure(
        site.scope.describe(site.node),
        site.node.op_type,
        site.scope.label,
        tuple(node.op_type for node in site.result),
        count,
        found.failure,
        found.pair.before,
        found.pair.after,
        found.inputs,
    )
