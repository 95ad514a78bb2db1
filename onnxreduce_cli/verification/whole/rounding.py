"""Differences that rounding explains, judged by runs in double precision.

A deep or ill-conditioned model amplifies rounding errors beyond any fixed tolerance. To measure
that, each value of the model in double gets an error of a unit in the last place of a float:
rounding may move an output some times as far as these errors do. Two models are the same function
if they agree in double. Where dtypes were changed, the errors are those of the coarser dtype, and
those of weights and inputs in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxreduce_cli.model.graph.values import is_float
from onnxreduce_cli.verification.compare.in_double import (
    ChangedDtypes,
    NotInDoubleError,
    in_double,
    input_in_double,
)
from onnxreduce_cli.verification.compare.outcomes import Side
from onnxreduce_cli.verification.compare.values import Tolerance, compare_values
from onnxreduce_cli.verification.errors import CannotRunError, RunFailedError
from onnxreduce_cli.verification.running.isolated import open_isolated
from onnxreduce_cli.verification.running.runtime import Runner
from onnxreduce_cli.verification.running.source import ModelSource

Array = npt.NDArray[Any]

#: How many times as far as the added errors rounding may move an output: sums of many values are
#: taken in other orders.
_FACTOR = 10.0


class Rounding:
    """Judges differences by runs of the models in double, whose values are kept.

    Attributes:
        sources: the models.
        feeds: the inputs of each trial.
        changed: the dtypes that the second model has in place of others.
    """

    def __init__(
        self,
        sources: Mapping[Side, ModelSource],
        feeds: Sequence[Mapping[str, Any]],
        changed: ChangedDtypes | None = None,
    ) -> None:
        self._sources = sources
        self._changed = changed or {}
        self._feeds = feeds
        self._runners: dict[tuple[Side, bool], Runner | None] = {}
        self._found: dict[tuple[Side, bool, int, str], Array | None] = {}

    def explains(
        self, number: int, name: str, values: Sequence[Any], sides: set[Side], tolerance: Tolerance
    ) -> bool:
        """Return whether rounding explains that two runs differ.

        Args:
            number: of the trial.
            name: the value of the main graph that differs.
            values: its values in the two runs.
            sides: the models that ran.
            tolerance: the allowed difference of values. Beyond a caller's, nothing is explained.
        """
        if tolerance.exact or (tolerance.rtol, tolerance.atol, tolerance.ulp) != (None, None, None):
            return False
        if not all(isinstance(value, np.ndarray) and is_float(value.dtype) for value in values):
            return False
        exact = self._value(Side.REFERENCE, False, number, name)
        moved = self._value(Side.REFERENCE, True, number, name)
        if exact is None or moved is None or exact.shape != moved.shape:
            return False
        spread = _distance(moved, exact)
        for side in sides - {Side.REFERENCE}:
            other = self._value(side, False, number, name)
            if other is None or not _near(other, exact, tolerance, 0.0, values[0].dtype):
                return False
        dtype = values[0].dtype
        return all(
            value.dtype == dtype and _near(value, exact, tolerance, _FACTOR * spread, dtype)
            for value in values
        )

    def distance(self, number: int, name: str, value: Any) -> float:
        """Return how far a value is from the one in double."""
        exact = self._value(Side.REFERENCE, False, number, name)
        assert exact is not None
        return _distance(value, exact)

    def _value(self, side: Side, noise: bool, number: int, name: str) -> Array | None:
        """Return a value of a model in double; None where it has none, or cannot be run."""
        key = (side, noise, number, name)
        if key not in self._found:
            self._found[key] = self._run(side, noise, number, name)
        return self._found[key]

    def _run(self, side: Side, noise: bool, number: int, name: str) -> Array | None:
        source = self._sources[side]
        feeds = self._feeds[number]
        if not set(feeds) <= set(source.inputs):
            return None  # In double, inputs with defaults are gone.
        wide = {
            name: input_in_double(value, self._changed, rounded=noise)
            for name, value in feeds.items()
        }
        runner = self._runner(side, noise)
        try:
            found = None if runner is None else runner.run(wide, [name]).get(name)
        except (CannotRunError, RunFailedError):
            return None
        finally:
            if noise and runner is not None:  # Opened again when needed: two take much memory.
                del runner, self._runners[side, noise]
        return found if isinstance(found, np.ndarray) else None

    def _runner(self, side: Side, noise: bool) -> Runner | None:
        if (side, noise) not in self._runners:
            try:
                model = in_double(self._sources[side], noise=noise, changed=self._changed)
                self._runners[side, noise] = open_isolated(model, "numpy")
            except (NotInDoubleError, CannotRunError):
                self._runners[side, noise] = None
        return self._runners[side, noise]


def _distance(first: Array, second: Array) -> float:
    """Return the largest distance of two finite elements; 0 where there are none."""
    with np.errstate(all="ignore"):
        apart = np.abs(first.astype(np.float64) - second.astype(np.float64))
    return float(np.max(apart, where=np.isfinite(apart), initial=0.0))


def _near(
    value: Array, exact: Array, tolerance: Tolerance, spread: float, dtype: np.dtype[Any]
) -> bool:
    """Return whether a value is within the tolerance and `spread` of the one in double."""
    with np.errstate(all="ignore"):
        first, second = value.astype(dtype), exact.astype(dtype)
    finite = np.abs(second.astype(np.float64))
    scale = float(np.max(finite, where=np.isfinite(finite), initial=0.0))
    rtol, atol = tolerance.limits(dtype, scale)
    limits = replace(tolerance, rtol=rtol, atol=atol + spread)
    return compare_values(first, second, limits).agree
