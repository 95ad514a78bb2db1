"""Checking one distinct site: by a pair of small models, by larger ones where they do not tell."""

from __future__ import annotations

from typing import Protocol

from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.verification.errors import UncheckableError
from onnxreduce_cli.verification.site_models import PairMaker
from onnxreduce_cli.verification.site_pair import TOO_LARGE, Found, Pair

#: Elements that one run may compute where nothing smaller is left to try.
_AT_LAST = 1 << 25


class Check(Protocol):
    """Checks a pair."""

    def __call__(self, pair: Pair, seed: int, most: int | None = None) -> Found:
        """See `pair_check.check_pair`."""


def check_site(maker: PairMaker, site: Site, pair: Pair, seed: int, check: Check) -> Found:
    """Check one of some sites that are alike, of which `pair` is made."""
    found = check(pair, seed)
    if pair.full and found.unchecked != TOO_LARGE:
        return found
    if (found.failure or found.unchecked) and not pair.full:
        # The replacement may rest on the true dimensions and constants, so only they can tell.
        pair = maker.pair(site, full=True)
        found = check(pair, seed)
        if pair.full and found.unchecked != TOO_LARGE:
            return found
    if found.failure or found.unchecked:
        # Imported here, as few need it.
        from onnxreduce_cli.verification.site_smaller import smaller

        try:
            return check(smaller(pair, site, maker.conversion, seed), seed, _AT_LAST)
        except UncheckableError as error:
            if pair.full:
                found = check(pair, seed, _AT_LAST)
            if not pair.full or found.unchecked == TOO_LARGE:
                return Found(unchecked=f"{TOO_LARGE}; {error}")
    return found
