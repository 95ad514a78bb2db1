"""The search for inputs of a pair that its reference accepts, in one executor or another."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.verification.compare.loop import InputRequest, Run, draw_runs
from onnxreduce_cli.verification.compare.outcomes import (
    UNSUPPORTED,
    RunKey,
    RunOutcome,
    Side,
)
from onnxreduce_cli.verification.inputs.drawing import Drawer, ShapeChoice
from onnxreduce_cli.verification.inputs.random_arrays import RandomArrays
from onnxreduce_cli.verification.inputs.ranges import FLOATS
from onnxreduce_cli.verification.running.runtime import Runner
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.sites.draws import (
    fit_integers,
    fit_learned,
    fit_regions,
    fit_scales,
    fit_shapes,
    fit_signs,
    input_plan,
    is_defined,
    required_shapes,
    special_profile,
    windows_hold_elements,
)
from onnxreduce_cli.verification.sites.site_runners import SECONDS, has_empty, in_process, run_side

#: Elements of the largest tensor of a later choice: larger ones are hardly accepted either.
_MOST = 1 << 20

#: Draws for one shape, where values decide whether the outputs have the shapes stated.
_DRAWS = 8


_REFUSED = "no inputs were found that it accepts"
#: Refusals of inputs of different sizes that may have one reason by chance.
_FEW = 3


class RefusalReasons:
    """The reasons for which a reference accepted none of the inputs that were drawn.

    Attributes:
        reasons: by executor its messages, each once; empty where it accepted some.
        accepted: whether any inputs were accepted.
        late: whether time ran out.
    """

    def __init__(self, source: ModelSource, drawer: Drawer) -> None:
        """Begin for a node that is run on what `drawer` draws."""
        elem_types = {proto.tensor_type.elem_type for proto in source.inputs.values()}
        self._are_values_free = elem_types <= FLOATS
        self._are_sizes_known = not drawer.symbols and not drawer.open_ranks
        self._accepting: set[str] = set()
        self._times = 0
        self.reasons: dict[str, dict[str, None]] = {}
        self.accepted = False
        self.late = False

    def add(self, outcomes: Mapping[RunKey, RunOutcome]) -> None:
        """Add the outcomes of the original node."""
        self._times += 1
        for (_, executor), outcome in outcomes.items():
            if outcome.values is not None:
                self._accepting.add(executor)
            elif outcome.failure:
                self.reasons.setdefault(executor, {})[outcome.failure] = None

    def __str__(self) -> str:
        """Return the text for a report."""
        if self.late:
            return f"it took longer than {SECONDS} seconds"
        reasons = list(self.reasons.get("numpy") or next(iter(self.reasons.values()), ()))
        if not reasons:
            return _REFUSED
        if self._is_invalid(reasons):
            return f"the model itself is invalid there: {reasons[0]}"
        return f"{_REFUSED}: {reasons[0]}"

    def _is_invalid(self, reasons: list[str]) -> bool:
        """Return whether other inputs would be refused too: for one reason, whatever their size."""
        same = self._are_sizes_known or (len(reasons) == 1 and self._times > _FEW)
        return same and self._are_values_free and not self._accepting


def search_inputs(
    pair: Pair,
    drawer: Drawer,
    runners: Mapping[RunKey, Runner],
    seed: int,
    refusals: RefusalReasons,
) -> Iterator[Iterator[Run]]:
    """Find inputs that the reference accepts, by one executor after another.

    The NumPy executor in this process goes first; where it accepts no inputs, all executors try.

    Args:
        pair: the pair.
        drawer: what draws for its reference.
        runners: what runs the models.
        seed: of what is drawn.
        refusals: takes in why inputs are not accepted.

    Yields:
        runs of both models in the executors that were tried.
    """
    own = in_process(runners)
    for tried in (own, runners) if own else (runners,):
        wanted = _wanted(pair, drawer, seed, refusals)
        yield draw_runs(wanted, partial(_run_both, pair, tried, refusals), persistent=True)
        if refusals.late:
            return


def _wanted(
    pair: Pair, drawer: Drawer, seed: int, refusals: RefusalReasons
) -> Iterator[InputRequest]:
    """Yield requests for inputs, until time runs out or none are accepted of known ranks."""
    rng = RandomArrays(seed)
    end = time.monotonic() + SECONDS
    times = _DRAWS if pair.promised else 1
    for choices, values in input_plan(drawer, rng, special_profile(pair), required_shapes(pair)):
        most = max(_MOST, drawer.elements(choices[0]))

        def draw(
            choice: ShapeChoice,
            values: str = values,
            first: ShapeChoice = choices[0],
            most: int = most,
        ) -> dict[str, Any] | None:
            refusals.late |= time.monotonic() > end
            if refusals.late or (choice is not first and drawer.elements(choice) > most):
                return None
            feeds = drawer.draw(choice, values, rng, negative=True)
            fit_shapes(pair, feeds, rng)
            fit_regions(pair, feeds, rng)
            fit_signs(pair, feeds)
            fit_scales(pair, feeds)
            fit_integers(pair, feeds)
            fit_learned(pair, feeds, rng)
            return feeds

        yield InputRequest(values, choices, draw, times)
        if refusals.late or not (refusals.accepted or drawer.open_ranks):
            return


def _run_both(
    pair: Pair, runners: Mapping[RunKey, Runner], refusals: RefusalReasons, feeds: dict[str, Any]
) -> tuple[dict[RunKey, RunOutcome], bool]:
    """Run both models once; the candidate only where the reference accepts the inputs."""
    if not is_defined(pair, feeds):
        return {}, False
    names = [output.name for output in pair.reference.graph.output]
    chosen = _runners_for(feeds, runners)
    outcomes = {
        key: run_side(runner, feeds, names)
        for key, runner in chosen.items()
        if key[0] is Side.REFERENCE
    }
    refusals.add(outcomes)
    if outcomes.get((Side.REFERENCE, "numpy"), UNSUPPORTED).failure:
        return {}, False  # Not valid inputs, even if ONNX Runtime accepts them.
    if not windows_hold_elements(pair, feeds, runners.get((Side.REFERENCE, "numpy"))):
        return {}, False
    if not any(_as_promised(outcome, pair) for outcome in outcomes.values()):
        return {}, False
    for key in [key for key in chosen if key[0] is Side.CANDIDATE]:
        outcomes[key] = run_side(chosen[key], feeds, names)
    refusals.accepted = True
    return outcomes, True


def _runners_for(feeds: dict[str, Any], runners: Mapping[RunKey, Runner]) -> dict[RunKey, Runner]:
    """Return the runners for some inputs: for empty tensors only the NumPy executor's."""
    empty = has_empty(feeds)
    return {key: item for key, item in runners.items() if not empty or key[1] == "numpy"}


def _as_promised(outcome: RunOutcome, pair: Pair) -> bool:
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
