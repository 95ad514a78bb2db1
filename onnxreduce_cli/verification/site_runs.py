"""Running both sides of a site on inputs that the original node accepts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import NodeProto

from onnxreduce_cli.verification.errors import CannotRunError
from onnxreduce_cli.verification.inputs import Drawer
from onnxreduce_cli.verification.isolated import open_isolated
from onnxreduce_cli.verification.outcomes import UNSUPPORTED, Outcome, Ran, Side, run_once
from onnxreduce_cli.verification.runtime import EXECUTORS, Runner, open_runner
from onnxreduce_cli.verification.site_draws import (
    fit_regions,
    fit_shapes,
    is_defined,
    required_shapes,
    runs,
    special_profile,
)
from onnxreduce_cli.verification.site_models import Pair
from onnxreduce_cli.verification.source import Source

#: What a node refused of smaller tensors it will hardly take of larger ones.
_MOST = 1 << 20

#: Operators whose kernels in ONNX Runtime end the process on attributes that nobody has checked.
_ENDING = frozenset({"Attention"})

#: Draws for one shape, where values decide whether the outputs are as the model says.
_DRAWS = 8


def open_runners(
    sources: dict[Side, Source],
) -> tuple[dict[Ran, Runner], dict[Ran, str]]:
    """Open both sides in every executor.

    Returns:
        the runners, and for those that cannot run a side the reasons.
    """
    runners: dict[Ran, Runner] = {}
    reasons: dict[Ran, str] = {}
    for side, source in sources.items():
        for executor in EXECUTORS:
            try:
                runners[side, executor] = _runner(source, executor)
            except CannotRunError as error:
                reasons[side, executor] = f"{executor}: {error}"
    return runners, reasons


def _runner(source: Source, executor: str) -> Runner:
    nodes = source.skeleton.graph.node
    if executor == "onnxruntime" and any(_may_end(node) for node in nodes):
        return open_isolated(source, executor)
    return open_runner(source, executor, threads=1)


def _may_end(node: NodeProto) -> bool:
    """Return whether a kernel of ONNX Runtime may crash the process on a node not yet checked."""
    absent = node.op_type == "BatchNormalization" and "" in node.output[1:]
    return absent or node.op_type in _ENDING


def both_sides(
    pair: Pair,
    sources: dict[Side, Source],
    runners: dict[Ran, Runner],
    seed: int,
) -> Iterator[tuple[str, dict[str, Any], dict[Ran, Outcome]]]:
    """Run both sides on every set of inputs that the original node accepts.

    Yields:
        the value profile, the inputs, and the outcomes by side and executor.
    """
    drawer = Drawer(sources[Side.REFERENCE])
    rng = np.random.default_rng(seed)
    names = list(sources[Side.REFERENCE].outputs)
    accepted = False
    level = 0
    for attempts, values in runs(drawer, rng, special_profile(pair), required_shapes(pair)):
        most = max(_MOST, drawer.elements(attempts[0]))
        # What another run needed comes first.
        order = sorted(range(len(attempts)), key=lambda index: (index != level, index))
        for index in (index for index in order for _ in range(_DRAWS if pair.promised else 1)):
            if index and drawer.elements(attempts[index]) > most:
                continue
            feeds = drawer.draw(attempts[index], values, rng, negative=True)
            fit_shapes(pair, feeds, rng)
            fit_regions(pair, feeds, rng)
            if not is_defined(pair, feeds):
                continue
            chosen = _runners_for(feeds, runners)
            outcomes = {
                key: _run(chosen, key, feeds, names) for key in chosen if key[0] is Side.REFERENCE
            }
            if outcomes.get((Side.REFERENCE, "numpy"), UNSUPPORTED).failure:
                continue  # Not legal, even if ONNX Runtime makes something of it.
            if any(_as_promised(outcome, pair) for outcome in outcomes.values()):
                for key in [key for key in chosen if key[0] is Side.CANDIDATE]:
                    outcomes[key] = _run(chosen, key, feeds, names)
                accepted = True
                level = index
                yield values, feeds, outcomes
                break
        if not accepted and not drawer.open_ranks:
            return  # The shapes do not fit each other, whatever the values.


def _runners_for(feeds: dict[str, Any], runners: dict[Ran, Runner]) -> dict[Ran, Runner]:
    """The runners for some inputs: for empty tensors only the NumPy executor's.

    Kernels of ONNX Runtime divide by a size of 0 and end the process (LSTM, CumProd).
    """
    empty = any(isinstance(value, np.ndarray) and not value.size for value in feeds.values())
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
        return run_once(runners[key], feeds, names)
    except CannotRunError:
        return Outcome()
