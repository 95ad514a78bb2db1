"""Checking what a conversion does, site by site.

Each distinct site becomes two tiny models, the original node at its own opset and what replaces
it at the target; both run in ONNX Runtime and in the NumPy executor on inputs of several shapes
and value profiles. Weights are not needed: inputs are drawn, dimensions made small.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.verification.compare import Errors
from onnxreduce_cli.verification.errors import UncheckableError
from onnxreduce_cli.verification.pair_process import check_here, prepared
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
    sites = [site for site in conversion.sites if site.blocked is None]
    with collector_paused():
        alike = _alike(maker, sites)
    unchecked: dict[tuple[str, str], Unchecked] = {}
    groups: dict[bytes, tuple[Pair, Site, int]] = {}
    each: list[SiteCheck] = []
    for group, made in _pairs(maker, alike):
        if isinstance(made, UncheckableError):
            each.append(_leave(unchecked, group[0], len(group), str(made)))
            continue
        pair, pair_key = made
        _, first, count = groups.get(pair_key, (pair, group[0], 0))
        groups[pair_key] = (pair, first, count + len(group))
    exact, loose, failures = 0, [], []
    remarks: dict[str, None] = {}
    for site, count, found in _found(maker, groups.values(), seed):
        remarks.update(dict.fromkeys(f"{_where(site)}: {text}" for text in found.remarks))
        if found.unchecked:
            each.append(_leave(unchecked, site, count, found.unchecked))
        elif found.failure:
            failures.append(_failure(site, found, count))
            each.append(_check(site, count, "failed", found.failure, found.errors))
        elif found.errors.bit_exact:
            exact += 1
            each.append(_check(site, count, "bit-exact", "", found.errors))
        else:
            loose.append(found.errors)
            each.append(_check(site, count, "within tolerance", "", found.errors))
    return SiteReport(
        len(sites),
        len(each),
        exact,
        tuple(loose),
        tuple(unchecked.values()),
        tuple(failures),
        tuple(remarks),
        tuple(each),
    )


def _alike(maker: PairMaker, sites: Iterable[Site]) -> Collection[list[Site]]:
    """The sites in groups of those that are alike by a cheap key, each of one function alone."""
    #: By the identity of a site that of its group, which is faster to compare than its key.
    own: dict[int, int] = {}
    found: dict[Any, list[Site]] = {}
    for site in sites:
        if site.like is None:
            group = found.setdefault(maker.signature(site), [])
            own[id(site)] = id(group)
        else:
            group = found.setdefault((id(site.scope), own[id(site.like)]), [])
        group.append(site)
    return found.values()


def _pairs(
    maker: PairMaker, groups: Iterable[list[Site]]
) -> Iterator[tuple[list[Site], tuple[Pair, bytes] | UncheckableError]]:
    """Each group with its first site as two models, and their key; or why it is not checked."""
    known: dict[int, tuple[Pair, bytes] | UncheckableError] = {}
    for group in groups:
        site = group[0].like or group[0]
        if id(site) not in known:
            try:
                pair = maker.pair(site)
                known[id(site)] = (pair, pair.key)
            except UncheckableError as error:
                known[id(site)] = error
        yield group, known[id(site)]


def _found(
    maker: PairMaker, groups: Collection[tuple[Pair, Site, int]], seed: int
) -> Iterator[tuple[Site, int, Found]]:
    """One site of each group, the number of those, and what checking its pair finds."""
    elsewhere = prepared()
    if elsewhere is not None:
        elsewhere.begin([pair for pair, _, _ in groups], seed)
    check = check_here if elsewhere is None else elsewhere.check
    for pair, site, count in groups:
        yield site, count, check_site(maker, site, pair, seed, check)


def _where(site: Site) -> str:
    return f"{site.node.op_type} node {site.scope.describe(site.node)}"


def _leave(
    unchecked: dict[tuple[str, str], Unchecked], site: Site, count: int, reason: str
) -> SiteCheck:
    """Note sites that could not be checked together with others of the same reason."""
    key = (site.node.op_type, reason)
    known = unchecked.get(key)
    if known is None:
        node = site.scope.describe(site.node)
        unchecked[key] = Unchecked(node, site.node.op_type, count, reason)
    else:
        unchecked[key] = replace(known, sites=known.sites + count)
    return _check(site, count, "not checked", reason)


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
