"""Clip and HardSigmoid: values between two limits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.idiom import Idiom
from onnxreduce_cli.idioms.matching import IdiomMatch, NoMatchError
from onnxreduce_cli.idioms.parameters import not_of_double, require_dims
from onnxreduce_cli.idioms.writer import Writer


class Limit(Protocol):
    """Writes data limited to a range, in one of several forms."""

    def __call__(self, to: Writer, data: str, low: str, high: str) -> Value:
        """Return the limited data."""


def _at_once(to: Writer, data: str, low: str, high: str) -> Value:
    return to.op.Clip(data, low, high)


def _low_first(to: Writer, data: str, low: str, high: str) -> Value:
    return to.op.Min(to.op.Max(data, low), high)


def _high_first(to: Writer, data: str, low: str, high: str) -> Value:
    return to.op.Max(to.op.Min(data, high), low)


def hard_sigmoid(to: Writer, data: str, limit: Limit) -> Value:
    """``Clip(x * alpha + beta, 0, 1)``."""
    line = to.op.Add(to.op.Mul(data, to.number("alpha")), to.number("beta"))
    return limit(to, line, to.number(0), to.number(1))


def _sixth(to: Writer, data: str, *, divide: bool) -> Value:
    """``Clip(x + 3, 0, 6) / 6``, as ``relu6(x + 3) / 6`` is exported."""
    op = to.op
    gate = op.Clip(op.Add(data, to.number(3)), to.number(0), to.number(6))
    return op.Div(gate, to.number(6)) if divide else op.Mul(gate, to.number(1 / 6))


def _of_a_sixth(facts: NodeFacts, found: IdiomMatch) -> Mapping[str, Any]:
    return {"alpha": 1 / 6, "beta": 0.5, **not_of_double(facts, found)}


def _in_order(facts: NodeFacts, found: IdiomMatch) -> Mapping[str, Any]:
    """Return the attributes of a Clip: none, as the limits are inputs.

    Raises:
        NoMatchError: a limit is not one number.
    """
    rank = len(require_dims(facts, found["data"]))
    if facts.constant(found["data"]) is not None:
        raise NoMatchError("it limits a constant")
    for name in ("low", "high"):
        dims = require_dims(facts, found[name])
        if dims != () and (facts.constant(found[name]) is None or set(dims) != {1}):
            raise NoMatchError(f"its limit {found[name]!r} may not be one number")
        if len(dims) > rank:
            raise NoMatchError(f"its limit {found[name]!r} adds dimensions")
    return {}


def _proven(facts: NodeFacts, found: IdiomMatch) -> Mapping[str, Any]:
    """Return the attributes of a Clip for a Max after a Min.

    Where the limits cross, that gives the lower limit, and Clip the higher one.

    Raises:
        NoMatchError: a limit is not one number, or the limits may cross.
    """
    low, high = (facts.constant(found[name]) for name in ("low", "high"))
    if low is None or high is None or not np.all(low <= high):
        raise NoMatchError(
            "its Min comes before its Max, and its limits may be the wrong way round"
        )
    return _in_order(facts, found)


def _limits(context: Context, found: IdiomMatch) -> list[str]:
    """Return the data, and the limits as scalars."""
    given = [found["data"]]
    for name in (found["low"], found["high"]):
        array = context.constant(name)
        given.append(name if array is None else context.array(array.reshape(()), "limit"))
    return given


IDIOMS = (
    Idiom(
        "HardSigmoid",
        tuple(partial(hard_sigmoid, limit=limit) for limit in (_at_once, _low_first, _high_first)),
    ),
    Idiom("HardSigmoid", tuple(partial(_sixth, divide=way) for way in (True, False)), _of_a_sixth),
    Idiom("Clip", (_low_first,), _in_order, make_inputs=_limits),
    Idiom("Clip", (_high_first,), _proven, make_inputs=_limits),
)
