"""The distinct sites of a conversion, each with the pairs that it can be checked by."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pairs.making import PairMaker
from onnxreduce_cli.engine.pairs.pair import Pair, UncheckableError
from onnxreduce_cli.engine.pairs.smaller import Draw, smaller
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.sites import Site


class SitePairs:
    """Equivalent sites of a conversion, and the pairs that they can be checked by.

    Pairs that only few sites need are made when they are asked for.

    Attributes:
        node: the first node's name, or a description by its output.
        op_type: its operator.
        scope: where it is: empty for the main graph.
        result: the operators that replace it.
        sites: how many sites there are.
        pair: the node on small tensors; None where no pair can be made.
        reason: why none can be made; empty where one can.
    """

    def __init__(self, maker: PairMaker, site: Site, sites: int, made: Pair | str) -> None:
        """Describe so many sites by the first, and the pair, or why there is none."""
        self._maker = maker
        self._site = site
        self.node = site.scope.describe(site.node)
        self.op_type = site.node.op_type
        self.scope = site.scope.label
        self.result = site.operators
        self.sites = sites
        self.pair = None if isinstance(made, str) else made
        self.reason = made if isinstance(made, str) else ""

    def full(self) -> Pair:
        """Return the pair of the true dimensions and constants, as far as these are not large."""
        return self._maker.pair(self._site, full=True)

    def smaller(self, pair: Pair, draw: Draw) -> Pair:
        """Return a pair like `pair` with the smallest tensors that the same operators result for.

        Args:
            pair: one of these sites.
            draw: what draws constants in place of large ones.

        Raises:
            UncheckableError: no size can be made smaller, or something else replaces smaller nodes.
        """
        return smaller(pair, self._site, self._maker.conversion, draw)


def site_pairs(conversion: Conversion) -> Iterator[SitePairs]:
    """Return the sites of a conversion that are not blocked, equivalent ones together.

    Args:
        conversion: a conversion that has not been applied yet.
    """
    maker = PairMaker(conversion)
    #: By what makes sites equivalent, and by the function that they are in, the sites.
    groups: dict[Hashable, dict[int, list[Site]]] = {}
    with collector_paused():
        for site in conversion.sites:
            if site.blocked is None:
                group = groups.setdefault(maker.signature(site.like or site), {})
                group.setdefault(id(site.scope.function), []).append(site)
    for group in groups.values():
        first = next(iter(group.values()))[0]
        made: Pair | str
        try:
            made = maker.pair(first.like or first)
        except UncheckableError as error:
            made = str(error)
        for sites in group.values():
            yield SitePairs(maker, sites[0], len(sites), made)
