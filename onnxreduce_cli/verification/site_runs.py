"""Running both sides of a site on inputs that the original node accepts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.executor.limit import time_limit
from onnxreduce_cli.verification.errors import CannotRunError
from onnxreduce_cli.verification.inputs import Drawer
from onnxreduce_cli.verification.outcomes import UNSUPPORTED, Outcome, Ran, Side, run_once
from onnxreduce_cli.verification.ranges import FLOATS
from onnxreduce_cli.verification.runtime import Runner
from onnxreduce_cli.verification.site_batches import has_empty, here, with_others
from onnxreduce_cli.verification.site_draws import (
    fit_regions,
    fit_shapes,
    is_defined,
    required_shapes,
    runs,
    special_profile,
    windows_hold_elements,
)
from onnxreduce_cli.verification.source import Source

#: What a node refused of smaller tensors it will hardly take of larger ones.
_MOST = 1 << 20

#: Draws for one shape, where values decide whether the outputs are as the model says.
_DRAWS = 8


_REFUSED = "no inputs were found that it accepts"
#: Refusals of inputs of different sizes that may have one reason by chance.
_FEW = 3

#: How many seconds one site may take.
_SECONDS = 30


class Refusals:
    """Why a node accepted none of the inputs that were drawn.

    Attributes:
        reasons: by executor what it said, each once; empty where it accepted some.
        late: whether time ran out before any were accepted.
    """

    def __init__(self, source: Source, drawer: Drawer) -> None:
        """Begin for a node that is run on what `drawer` draws."""
        elem_types = {proto.tensor_type.elem_type for proto in source.inputs.values()}
        self._are_values_free = elem_types <= FLOATS
        self._are_sizes_known = not drawer.symbols and not drawer.open_ranks
        self._accepted: set[str] = set()
        self._times = 0
        self.reasons: dict[str, dict[str, None]] = {}
        self.late = False

    def add(self, outcomes: Mapping[Ran, Outcome]) -> None:
        """Take in how the executors ran the original node."""
        self._times += 1
        for (_, executor), outcome in outcomes.items():
            if outcome.values is not None:
                self._accepted.add(executor)
            elif outcome.failure:
                self.reasons.setdefault(executor, {})[outcome.failure] = None

    def __str__(self) -> str:
        """Return the text that people read."""
        if self.late:
            return f"it took longer than {_SECONDS} seconds"
        reasons = list(self.reasons.get("numpy") or next(iter(self.reasons.values()), ()))
        if not reasons:
            return _REFUSED
        if self._is_invalid(reasons):
            return f"the model itself is invalid there: {reasons[0]}"
        return f"{_REFUSED}: {reasons[0]}"

    def _is_invalid(self, reasons: list[str]) -> bool:
        """Return whether no other inputs would do better: for one reason, whatever their sizes."""
        same = self._are_sizes_known or (len(reasons) == 1 and self._times > _FEW)
        return same and self._are_values_free and not self._accepted


def run_sides(
    pair: Pair,
    drawer: Drawer,
    runners: dict[Ran, Runner],
    seed: int,
    refusals: Refusals,
) -> Iterator[tuple[str, dict[str, Any], dict[Ran, Outcome]]]:
    """Run both sides in every executor on every set of inputs that the original node accepts.

    The NumPy executor, in this process, finds the inputs; where it accepts none, all are asked.

    Args and what is yielded are those of `both_sides`.
    """
    accepted = False
    own = here(runners)
    if own:
        names = [output.name for output in pair.reference.graph.output]
        found = both_sides(pair, drawer, own, seed, refusals)
        for run in with_others(found, runners, names):
            accepted = True
            yield run
    if not accepted and not refusals.late:
        yield from both_sides(pair, drawer, runners, seed, refusals)


def both_sides(
    pair: Pair,
    drawer: Drawer,
    runners: dict[Ran, Runner],
    seed: int,
    refusals: Refusals,
) -> Iterator[tuple[str, dict[str, Any], dict[Ran, Outcome]]]:
    """Run both sides on every set of inputs that the original node accepts.

    Args:
        pair: the site.
        drawer: what draws for the original node.
        runners: they are run by these.
        seed: of what is drawn.
        refusals: is told why inputs are not accepted.

    Yields:
        the value profile, the inputs, and the outcomes by side and executor.
    """
    rng = np.random.default_rng(seed)
    end = time.monotonic() + _SECONDS
    accepted = False
    level = 0
    for attempts, values in runs(drawer, rng, special_profile(pair), required_shapes(pair)):
        most = max(_MOST, drawer.elements(attempts[0]))
        # What another run needed comes first.
        order = sorted(range(len(attempts)), key=lambda index: (index != level, index))
        for index in (index for index in order for _ in range(_DRAWS if pair.promised else 1)):
            if time.monotonic() > end:
                refusals.late = True
                return
            if index and drawer.elements(attempts[index]) > most:
                continue
            feeds = drawer.draw(attempts[index], values, rng, negative=True)
            fit_shapes(pair, feeds, rng)
            fit_regions(pair, feeds, rng)
            outcomes = _run_both(pair, runners, feeds, refusals)
            if outcomes is not None:
                accepted = True
                level = index
                yield values, feeds, outcomes
                break
        if not accepted and not drawer.open_ranks:
            return  # The shapes do not fit each other, whatever the values.


def _run_both(
    pair: Pair, runners: dict[Ran, Runner], feeds: dict[str, Any], refusals: Refusals
) -> dict[Ran, Outcome] | None:
    """Run both sides once; None where the original node does not accept the inputs."""
    if not is_defined(pair, feeds):
        return None
    names = [output.name for output in pair.reference.graph.output]
    chosen = _runners_for(feeds, runners)
    outcomes = {key: _run(chosen, key, feeds, names) for key in chosen if key[0] is Side.REFERENCE}
    refusals.add(outcomes)
    if outcomes.get((Side.REFERENCE, "numpy"), UNSUPPORTED).failure:
        return None  # Not legal, even if ONNX Runtime makes something of it.
    if not windows_hold_elements(pair, feeds, runners.get((Side.REFERENCE, "numpy"))):
        return None
    if not any(_as_promised(outcome, pair) for outcome in outcomes.values()):
        return None
    for key in [key for key in chosen if key[0] is Side.CANDIDATE]:
        outcomes[key] = _run(chosen, key, feeds, names)
    return outcomes


def _runners_for(feeds: dict[str, Any], runners: dict[Ran, Runner]) -> dict[Ran, Runner]:
    """The runners for some inputs: for empty tensors only the NumPy executor's."""
    empty = has_empty(feeds)
    return {key: item for key, item in runners.items() if not empty or key[1] == "numpy"}


def _as_promised(outcome: Outcome, pair: Pair) -> bool:
    """Return whether the node ran, and its outputs have the shapes that the model states."""
    if outcome.values is None:
        return False
    for name, dims in pair.promised.items():
        value = outcome.values[name]
        if isinstance(value, np.ndarray) and (
            len(dims) != value.ndim
            or any(
                isinstance(dim, int) and dim != size
                for dim, size in zip(dims, value.shape, strict=True)
            )
        ):
            return False
    return True


def _run(
    runners: dict[Ran, Runner],
    key: Ran,
    feeds: dict[str, Any],
    names: list[str],
) -> Outcome:
    try:
        with time_limit(_SECONDS):
            return run_once(runners[key], feeds, names)
    except CannotRunError:
        return Outcome()
