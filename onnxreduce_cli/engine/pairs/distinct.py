"""The distinct sites of a conversion, and the pairs to check each by."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pairs.attribute_values import AttributeValues, attribute_values
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
    """The distinct sites of a conversion, each with pairs to check it by.

    A site of a function has a pair for each combination of attributes that calls set. They are of
    small tensors at first. What replaces a site may depend on its true dimensions
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
        self._first: list[tuple[Site, list[AttributeValues]]] = []

    def with_small_tensors(self, *, contracted: bool = False) -> list[DistinctSite]:
        """Return the sites that are not blocked, equivalent ones as one, with their first pairs.

        Args:
            contracted: whether only contractions are returned.
        """
        groups: dict[tuple[Hashable, int], list[Site]] = {}
        with collector_paused():
            for site in self._conversion.sites:
                if site.blocked is None and (site.contraction or not contracted):
                    group = self._maker.signature(site), id(site.scope.function)
                    groups.setdefault(group, []).append(site)
        found: dict[Hashable, DistinctSite] = {}
        # What is not checked is told of each function, so it is made for each of them.
        made: dict[Hashable, tuple[list[AttributeValues], tuple[Pair, ...]]] = {}
        for (signature, _), (first, *others) in groups.items():
            one = _described(len(found), [first, *others])
            values: list[AttributeValues] = []
            try:
                if signature not in made:
                    made[signature] = self._first_pairs(first)
                values, pairs = made[signature]
                one = one._replace(pairs=pairs)
            except UncheckableError as error:
                one = one._replace(reason=str(error))
            key = one.key if one.pairs else id(first)
            same = found.get(key)
            if same is None:
                self._first.append((first, values))
            found[key] = (
                one
                if same is None
                else same._replace(
                    sites=same.sites + one.sites,
                    contractions=same.contractions + one.contractions,
                )
            )
        ordered = sorted(found.values(), key=lambda one: bool(one.pairs))
        return [self._sized(one) for one in ordered]

    def with_true_tensors(self, one: DistinctSite) -> DistinctSite:
        """Return a site with the pairs that decide where small tensors do not."""
        pairs = self._pairs(*self._first[one.number], full=True)
        return self._sized(one._replace(pairs=pairs))

    def _first_pairs(self, site: Site) -> tuple[list[AttributeValues], tuple[Pair, ...]]:
        """Return the attributes that a site refers to, and a pair for each combination of them."""
        values = attribute_values(self._conversion, site)
        return values, self._pairs(site, values, full=False)

    def _pairs(
        self, site: Site, values: Iterable[AttributeValues], *, full: bool
    ) -> tuple[Pair, ...]:
        return tuple(self._maker.pair(site, item, full=full) for item in values)

    def _sized(self, one: DistinctSite) -> DistinctSite:
        """Return a site with other pairs, or a reason, where one of its own computes too much."""
        if not one.pairs:
            return one
        site, values = self._first[one.number]
        pairs = zip(values, one.pairs, strict=True)
        try:
            return one._replace(pairs=tuple(self._sized_pair(site, *item) for item in pairs))
        except UncheckableError as error:
            return one._replace(pairs=(), reason=str(error))

    def _sized_pair(self, site: Site, values: AttributeValues, pair: Pair) -> Pair:
        """Return another pair of a site where its own would compute too much.

        Raises:
            UncheckableError: no pair computes less.
        """
        if (work := _work(pair)) <= _MOST:
            return pair
        if not pair.full:
            return self._sized_pair(site, values, self._maker.pair(site, values, full=True))
        try:
            smaller = smaller_pair(pair, site, self._conversion, self._draw)
        except UncheckableError as error:
            if work <= _MOST_AT_LAST:
                return pair
            raise UncheckableError(f"{_TOO_LARGE}; {error}") from error
        if _work(smaller) > _MOST_AT_LAST:
            raise UncheckableError(_TOO_LARGE)
        return smaller


def _described(number: int, sites: Sequence[Site]) -> DistinctSite:
    """Return equivalent sites without pairs."""
    site = sites[0]
    place = (site.scope.describe(site.node), site.node.op_type, site.scope.label)
    contractions = tuple(item.contraction_key for item in sites if item.contraction)
    return DistinctSite(number, *place, site.operators, len(sites), (), "", contractions)


def _work(pair: Pair) -> int:
    return estimated_work(pair.reference) + estimated_work(pair.candidate)
