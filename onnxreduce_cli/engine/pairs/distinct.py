"""The distinct sites of a conversion, and the pairs to check each by."""

from __future__ import annotations

from collections.abc import Hashable

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pairs.making import PairMaker
from onnxreduce_cli.engine.pairs.pair import DistinctSite, Pair, UncheckableError
from onnxreduce_cli.engine.pairs.smaller import Draw, smaller_pair
from onnxreduce_cli.engine.pairs.work import estimated_work
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.sites import Site

#: Elements that one run may compute: more of them take seconds, and hundreds of megabytes.
_MOST = 1 << 23

#: The same where there is no pair that computes less.
_MOST_AT_LAST = 1 << 25

_TOO_LARGE = "its tensors are too large to try"


class DistinctSites:
    """The distinct sites of a conversion, each with a pair to check it by.

    That is a pair of small tensors at first. What replaces a site may depend on its true dimensions
    and constants: where small tensors differ, or cannot be run, a pair of these decides. Where one
    run of it would compute too much, it is made of the smallest tensors for which the same
    operators result.
    """

    def __init__(self, conversion: Conversion, draw: Draw) -> None:
        """Prepare.

        Args:
            conversion: a conversion that has not been applied yet.
            draw: draws constants in place of large ones.
        """
        self._conversion = conversion
        self._draw = draw
        self._maker = PairMaker(conversion)
        self._first: list[Site] = []

    def with_small_tensors(self) -> list[DistinctSite]:
        """Return the sites that are not blocked, equivalent ones as one, with their first pairs."""
        groups: dict[Hashable, list[Site]] = {}
        with collector_paused():
            for site in self._conversion.sites:
                if site.blocked is None:
                    groups.setdefault(self._maker.signature(site), []).append(site)
        found: dict[Hashable, DistinctSite] = {}
        for first, *others in groups.values():
            one = _described(len(found), first, 1 + len(others))
            try:
                one = one._replace(pair=self._maker.pair(first))
            except UncheckableError as error:
                one = one._replace(reason=str(error))
            key = id(first) if one.pair is None else one.pair.key
            same = found.get(key)
            if same is None:
                self._first.append(first)
            found[key] = one if same is None else same._replace(sites=same.sites + one.sites)
        ordered = sorted(found.values(), key=lambda one: one.pair is not None)
        return [self._sized(one) for one in ordered]

    def with_true_tensors(self, one: DistinctSite) -> DistinctSite:
        """Return a site with the pair that decides where small tensors do not."""
        pair = self._maker.pair(self._first[one.number], full=True)
        return self._sized(one._replace(pair=pair))

    def _sized(self, one: DistinctSite) -> DistinctSite:
        """Return a site with another pair, or a reason, where its own would compute too much."""
        pair = one.pair
        if pair is None or (work := _work(pair)) <= _MOST:
            return one
        if not pair.full:
            return self.with_true_tensors(one)
        try:
            smaller = smaller_pair(pair, self._first[one.number], self._conversion, self._draw)
        except UncheckableError as error:
            if work <= _MOST_AT_LAST:
                return one
            return one._replace(pair=None, reason=f"{_TOO_LARGE}; {error}")
        if _work(smaller) <= _MOST_AT_LAST:
            return one._replace(pair=smaller)
        return one._replace(pair=None, reason=_TOO_LARGE)


def _described(number: int, site: Site, sites: int) -> DistinctSite:
    """Return a distinct site without a pair."""
    place = (site.scope.describe(site.node), site.node.op_type, site.scope.label)
    return DistinctSite(number, *place, site.operators, sites, None, "")


def _work(pair: Pair) -> int:
    return estimated_work(pair.reference) + estimated_work(pair.candidate)
