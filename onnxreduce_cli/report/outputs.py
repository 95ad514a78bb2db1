"""The outputs of a model that was run, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxreduce_cli.text import count, joined, shortened
from onnxreduce_cli.verification.whole.naming import executor_name

#: Up to how many elements the values of an output are shown.
_FEW = 64


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """One output of a model that was run.

    Attributes:
        name: its name.
        kind: ``tensor``, ``sequence``, ``map`` or ``empty optional``.
        dtype: a tensor's dtype, as NumPy calls it; empty for other kinds.
        shape: a tensor's shape; null for other kinds.
        min: the least of its numbers, NaN left out; null where there is none.
        mean: their mean; null where there is none.
        max: the largest; null where there is none.
        nans: how many of its elements are NaN.
        values: its elements, nested by dimension; null where there are many.
    """

    name: str
    kind: str
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    min: float | None = None
    mean: float | None = None
    max: float | None = None
    nans: int = 0
    values: object = None


@dataclass(frozen=True, slots=True)
class RunOutputs:
    """The results of `run`.

    Attributes:
        model: the model's path.
        executor: what ran it.
        outputs: in the model's order.
    """

    model: str
    executor: str
    outputs: tuple[ModelOutput, ...]


def run_outputs(model: str, executor: str, outputs: Mapping[str, Any]) -> RunOutputs:
    """Return the results of a run.

    Args:
        model: the model's path.
        executor: what ran it.
        outputs: by name, arrays, lists for sequences, None for an empty optional.
    """
    return RunOutputs(model, executor, tuple(_output(*item) for item in outputs.items()))


def _output(name: str, value: Any) -> ModelOutput:
    if not isinstance(value, np.ndarray | np.generic):
        kind = {"list": "sequence", "dict": "map", "NoneType": "empty optional"}
        return ModelOutput(name, kind.get(type(value).__name__, type(value).__name__))
    array = np.asarray(value)
    dtype, shape = array.dtype.name if array.dtype != object else "string", array.shape
    values = _values(array) if array.size <= _FEW else None
    if array.dtype == object or array.dtype.kind in "UScb" or not array.size:
        return ModelOutput(name, "tensor", dtype, shape, values=values)
    if array.dtype.kind in "iu":
        mean = float(array.mean(dtype=np.float64))
        return ModelOutput(
            name, "tensor", dtype, shape, int(array.min()), mean, int(array.max()), values=values
        )
    numbers = array.astype(np.float64).reshape(-1)
    nans = int(np.count_nonzero(np.isnan(numbers)))
    numbers = numbers[~np.isnan(numbers)]
    if not numbers.size:
        return ModelOutput(name, "tensor", dtype, shape, nans=nans, values=values)
    with np.errstate(all="ignore"):
        least, mean, most = (float(found) for found in _summary(numbers))
    return ModelOutput(name, "tensor", dtype, shape, least, mean, most, nans, values)


def _summary(numbers: Any) -> tuple[Any, Any, Any]:
    return numbers.min(), numbers.mean(), numbers.max()


def _values(array: Any) -> Any:
    """Return the elements as Python's own types, nested by dimension.

    Floats get no more digits than tell values of their dtype apart; complex numbers become texts.
    """
    kind = array.dtype.kind
    if kind in "biu":
        return array.tolist()
    # Floats of ml_dtypes are of kind V.
    own = str if kind in "OUSc" else lambda value: float(str(value))
    found = np.empty(array.size, object)
    # Not np.vectorize, which gives Python's numbers: a float32 as if it were a double.
    found[:] = [own(value) for value in array.reshape(-1)]
    return found.reshape(array.shape).tolist()


def outputs_text(found: RunOutputs) -> str:
    """Describe outputs: a line for each, with its elements below where there are few."""
    lines = [f"run by {executor_name(found.executor)}:"]
    return joined([*lines, *(line for output in found.outputs for line in _lines(output))])


def kept_text(found: RunOutputs, path: str) -> str:
    """Say where outputs are kept, and what computed them."""
    by = executor_name(found.executor)
    return joined([f"{path}: {count(len(found.outputs), 'output')}, run by {by}"])


def _number(value: float | None) -> str:
    """Return a number in a few characters; integers in full."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _lines(output: ModelOutput) -> Iterator[str]:
    if output.shape is None:
        yield f"{output.name}: {output.kind}"
        return
    parts = [f"{output.dtype}{list(output.shape)}"]
    if output.mean is not None:
        numbers = {"min": output.min, "mean": output.mean, "max": output.max}
        parts.append(", ".join(f"{what} {_number(value)}" for what, value in numbers.items()))
    if output.nans:
        parts.append(f"{output.nans:,} NaN")
    if output.values is None:
        parts.append(count(int(np.prod(output.shape)), "element"))
    yield f"{output.name}: {', '.join(parts)}"
    if output.values is not None:
        yield f"  {shortened(repr(output.values), 1000)}"
