"""Sites where one operator replaces nodes whose inner values overflow or underflow.

The operator must agree with the nodes wherever no inner value overflows or underflows. In all
other elements it must be no further from a run in double than the nodes were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, numpy_helper

from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.model.graph.values import finfo, is_float
from onnxreduce_cli.verification.compare.outcomes import UNSUPPORTED, RunKey, RunOutcome, Side
from onnxreduce_cli.verification.errors import CannotRunError, RunFailedError
from onnxreduce_cli.verification.running.runtime import EXECUTORS, NumpyRunner
from onnxreduce_cli.verification.running.single_node import single_node_model
from onnxreduce_cli.verification.sites.in_double import array_in_double, model_in_double

Array = npt.NDArray[Any]


class _ExactOutput(NamedTuple):
    """An output in double, and where the output in float may differ from it.

    Attributes:
        exact: the output in double.
        overflowing: the elements computed from an inner value that overflows or underflows.
    """

    exact: Array
    overflowing: Array


def excuse_overflows(
    pair: Pair, feeds: Mapping[str, Any], outcomes: dict[RunKey, RunOutcome]
) -> dict[RunKey, RunOutcome]:
    """Put the reference's elements in a candidate's outputs where it may differ and is no worse.

    Args:
        pair: a site whose candidate is stabler.
        feeds: the inputs of both sides.
        outcomes: the outcomes of both sides; all other elements stay.
    """
    exact = _exact_outputs(pair, feeds)
    found = dict(outcomes)
    for executor in EXECUTORS:
        before, after = (outcomes.get((side, executor), UNSUPPORTED).values for side in Side)
        if before is None or after is None:
            continue
        values = {
            name: _excused(exact[name], before[name], value) if name in exact else value
            for name, value in after.items()
        }
        found[Side.CANDIDATE, executor] = RunOutcome(values)
    return found


def _excused(truth: _ExactOutput, before: Array, after: Array) -> Array:
    shapes = {truth.exact.shape, np.shape(before), np.shape(after)}
    if len(shapes) > 1 or before.dtype != after.dtype:
        return after
    no_worse = _distance(after, truth.exact) <= _distance(before, truth.exact)
    return np.where(truth.overflowing & no_worse, before, after)


def _distance(values: Array, exact: Array) -> Array:
    """Return how far elements are off; infinitely where they differ and are not both finite."""
    wide = values.astype(np.float64)
    same = (wide == exact) | (np.isnan(wide) & np.isnan(exact))
    with np.errstate(all="ignore"):
        apart = np.abs(wide - exact)
    return np.where(same, 0.0, np.where(np.isfinite(apart), apart, np.inf))


def _exact_outputs(pair: Pair, feeds: Mapping[str, Any]) -> dict[str, _ExactOutput]:
    """Return each output in double; nothing where the NumPy executor cannot run the models.

    Its elements are those of the reference, and of the candidate where an inner value overflows
    or underflows in double too.
    """
    names = [output.name for output in pair.reference.graph.output]
    wide = {name: array_in_double(value) for name, value in feeds.items()}
    try:
        overflowing = _overflowing(pair.reference, feeds)
        nodes = NumpyRunner(model_in_double(pair.reference)).run(wide, names)
        overflowing_in_double = _overflowing(model_in_double(pair.reference), wide)
        operator = NumpyRunner(model_in_double(pair.candidate)).run(wide, names)
    except (CannotRunError, RunFailedError):
        return {}
    return {
        name: _ExactOutput(
            np.where(overflowing_in_double[name], operator[name], nodes[name]), overflowing[name]
        )
        for name in names
    }


def _overflowing(model: ModelProto, feeds: Mapping[str, Any]) -> dict[str, Array]:
    """Return by output which elements are computed from an inner value out of range.

    Each such value becomes NaN, which spreads to all that is computed from it. A NaN among the
    inputs is replaced first.
    """
    values = {name: _without_nan(value) for name, value in feeds.items()}
    for tensor in model.graph.initializer:
        values[tensor.name] = numpy_helper.to_array(tensor)
    *inner, last = model.graph.node
    plain, spoilt = dict(values), dict(values)
    for node in inner:
        for given in (plain, spoilt):
            given.update(_alone(model, node, given))
        for name in node.output if is_float(plain[node.output[0]].dtype) else ():
            spoilt[name] = np.where(_out_of_range(plain[name]), np.nan, spoilt[name]).astype(
                plain[name].dtype
            )
    for given in (plain, spoilt):
        given.update(_alone(model, last, given))
    return {
        output.name: np.isnan(spoilt[output.name].astype(np.float64))
        for output in model.graph.output
    }


def _without_nan(array: Array) -> Array:
    if not is_float(array.dtype):
        return array
    return np.where(np.isnan(array), np.ones_like(array), array)


def _out_of_range(array: Array) -> Array:
    """Return which elements are infinite, or so small that digits are lost; zeros too."""
    if not is_float(array.dtype):
        return np.zeros(array.shape, bool)
    size = np.abs(array.astype(np.float64))
    return ~((size <= float(finfo(array.dtype).max)) & (size >= float(finfo(array.dtype).tiny)))


def _alone(model: ModelProto, node: NodeProto, values: Mapping[str, Any]) -> dict[str, Any]:
    """Run one node of a model."""
    single = single_node_model(node, values, model)
    feeds = {name: values[name] for name in node.input if name}
    return NumpyRunner(single).run(feeds, [name for name in node.output if name])
