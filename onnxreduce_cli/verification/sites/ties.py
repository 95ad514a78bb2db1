"""Quantized outputs at ties: elements that lie halfway between two steps.

A product of quantized tensors is a whole number times a factor. Computed from floats it is off by
what these were rounded by, and where it lies halfway between two steps it may come out one step, a
quantum, apart. Such elements agree; where the product in double precision is further from half a
step they must be equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto

from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.text import count
from onnxreduce_cli.verification.compare.in_double import (
    NotInDoubleError,
    in_double,
    input_in_double,
)
from onnxreduce_cli.verification.compare.outcomes import UNSUPPORTED, RunKey, RunOutcome, Side
from onnxreduce_cli.verification.errors import CannotRunError, RunFailedError
from onnxreduce_cli.verification.running.runtime import EXECUTORS, NumpyRunner
from onnxreduce_cli.verification.running.source import ModelSource

Array = npt.NDArray[Any]

#: How far from half a step a tie may be, in steps, or relative to the largest number of steps.
MARGIN = 1e-6


def rounds_products(pair: Pair) -> bool:
    """Return whether the original computes on quantized tensors and rounds the result."""
    return any(
        node.op_type.startswith("QLinear") or node.op_type == "QGemm"
        for node in pair.reference.graph.node
    )


def excuse_ties(
    pair: Pair, feeds: Mapping[str, Any], outcomes: dict[RunKey, RunOutcome]
) -> tuple[dict[RunKey, RunOutcome], int]:
    """Put the reference's elements in a candidate's outputs where they are a quantum apart at ties.

    Args:
        pair: a site whose original rounds products.
        feeds: the inputs of both sides.
        outcomes: the outcomes of both sides; all other elements stay.

    Returns:
        the outcomes, and of how many elements that is so, in the executor with the most.
    """
    excused = dict(outcomes)
    most = 0
    ties: dict[str, Array] | None = None
    for executor in EXECUTORS:
        before, after = (outcomes.get((side, executor), UNSUPPORTED).values for side in Side)
        if before is None or after is None:
            continue
        values, moved = dict(after), 0
        for name in values:
            apart = _one_apart(before[name], after[name])
            if apart is None or not apart.any():
                continue
            ties = _ties(pair, feeds) if ties is None else ties
            if name in ties and ties[name].shape == apart.shape:
                apart &= ties[name]
                values[name] = np.where(apart, before[name], after[name])
                moved += int(np.count_nonzero(apart))
        excused[Side.CANDIDATE, executor] = RunOutcome(values)
        most = max(most, moved)
    return excused, most


def _one_apart(first: Any, second: Any) -> Array | None:
    """Return which integers are one apart; None where they cannot be compared."""
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
        return None
    if first.dtype != second.dtype or first.shape != second.shape or first.dtype.kind not in "iu":
        return None
    found: Array = np.abs(first.astype(np.int64) - second.astype(np.int64)) == 1
    return found


def _ties(pair: Pair, feeds: Mapping[str, Any]) -> dict[str, Array]:
    """Return by output which elements lie halfway between two steps in double precision.

    It is empty where the NumPy executor cannot run the replacement.
    """
    try:
        model = in_double(ModelSource(pair.candidate, "after", generated=True)).whole()
    except NotInDoubleError:
        return {}
    rounding = {output.name: _rounding_node(model, output.name) for output in model.graph.output}
    names = {
        name: list(node.input[: 2 if node.op_type == "QuantizeLinear" else 1])
        for name, node in rounding.items()
        if node is not None
    }
    wanted = list(dict.fromkeys(item for inputs in names.values() for item in inputs))
    wide = {name: input_in_double(value) for name, value in feeds.items()}
    try:
        values = NumpyRunner(model).run(wide, wanted)
    except (CannotRunError, RunFailedError):
        return {}
    found = {}
    for name, inputs in names.items():
        steps = values[inputs[0]].astype(np.float64)
        if len(inputs) > 1:
            steps = steps / values[inputs[1]].astype(np.float64)
        found[name] = _near_half(steps)
    return found


def _near_half(steps: Array) -> Array:
    """Return which numbers of steps are as near to a half as rounding in float may move them.

    As in any sum, rounding errors grow with the operands: with the largest number of steps, up to
    what 8 bits hold.
    """
    finite = np.abs(steps[np.isfinite(steps)])
    largest = min(max(float(finite.max(initial=0.0)), 1.0), 255.0)
    with np.errstate(invalid="ignore"):
        found: Array = np.abs(steps - np.floor(steps) - 0.5) <= MARGIN * largest
    return found


def _rounding_node(model: ModelProto, output: str) -> NodeProto | None:
    """Return the node that rounds an output to whole steps; below opset 11 that is a Floor."""
    made = {name: node for node in model.graph.node for name in node.output}
    waiting, seen = [output], set[str]()
    while waiting:
        name = waiting.pop(0)
        node = made.get(name)
        if node is None or name in seen:
            continue
        if node.op_type in ("QuantizeLinear", "Round", "Floor"):
            return node
        seen.add(name)
        waiting += node.input
    return None


def remark(number: int) -> str:
    """Return the remark on elements a quantum apart, the most of one result."""
    return (
        f"of the inputs drawn, up to {count(number, 'element')} of a result "
        f"{'is' if number == 1 else 'are'} one quantum apart, where the product lies halfway "
        f"between two steps: in double precision within {MARGIN:.0e} of half a step"
    )
