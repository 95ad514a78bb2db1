"""The distinct sites of a conversion, with the pairs to check each by."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pairs.making import PairMaker
from onnxreduce_cli.engine.pairs.pair import DistinctSite, Pair, UncheckableError
from onnxreduce_cli.engine.pairs.smaller import Draw, smaller_pair
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.sites import Site


def distinct_sites(
    conversion: Conversion, draw: Draw, *, contracted: bool = False
) -> Iterator[DistinctSite]:
    """Yield the sites of a conversion that are not blocked, equivalent ones grouped.

    Args:
        conversion: a conversion that has not been applied yet.
        draw: draws constants in place of large ones.
        contracted: whether only contractions are yielded.
    """
    maker = PairMaker(conversion)
    groups: dict[Hashable, list[Site]] = {}
    with collector_paused():
        for site in conversion.sites:
            if site.blocked is None and (site.contraction or not contracted):
                groups.setdefault(maker.signature(site), []).append(site)
    for sites in groups.values():
        first, pair, reason = sites[0], None, ""
        try:
            pair = maker.pair(first)
        except UncheckableError as error:
            reason = str(error)
        yield DistinctSite(
            first.scope.describe(first.node),
            first.node.op_type,
            first.scope.label,
            first.operators,
            len(sites),
            pair,
            reason,
            iter(()) if pair is None else _others(maker, first, pair, draw),
            tuple(site.contraction_key for site in sites if site.contraction),
        )


def _others(maker: PairMaker, site: Site, pair: Pair, draw: Draw) -> Iterator[Pair]:
    """Yield further pairs to check a site by if `pair` does not suffice."""
    if not pair.full:
        pair = maker.pair(site, full=True)
        yield pair
    yield smaller_pair(pair, site, maker.conversion, draw)
