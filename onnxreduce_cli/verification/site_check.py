"""Checking one distinct site: by a pair of small models, by larger ones where they do not tell."""

from __future__ import annotations

from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.verification.errors import UncheckableError
from onnxreduce_cli.verification.pair_check import TOO_LARGE, Found, check_pair
from onnxreduce_cli.verification.site_models import PairMaker
from onnxreduce_cli.verification.site_pair import Pair
from onnxreduce_cli.verification.site_smaller import smaller

#: Elements that one run may compute where nothing smaller is left to try.
_AT_LAST = 1 << 25


def check_site(maker: PairMaker, site: Site, pair: Pair, seed: int) -> Found:
    """Check one of some sites that are alike, of which `pair` is made."""
    found = check_pair(pair, seed)
    if pair.full and found.unchecked != TOO_LARGE:
        return found
    if (found.failure or found.unchecked) and not pair.full:
        # The replacement may rest on the true dimensions and constants, so only they can tell.
        pair = maker.pair(site, full=True)
        found = check_pair(pair, seed)
        if pair.full and found.unchecked != TOO_LARGE:
            return found
    if found.failure or found.unchecked:
        try:
            return check_pair(smaller(pair, site, maker.conversion, seed), seed, _AT_LAST)
        except UncheckableError as error:
            if pair.full:
                found = check_pair(pair, seed, _AT_LAST)
            if not pair.full or found.unchecked == TOO_LARGE:
                return Found(unchecked=f"{TOO_LARGE}; {error}")
    return found
