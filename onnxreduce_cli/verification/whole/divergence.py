"""The first value at which two runs differ, found by comparing inner values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxreduce_cli.model.graph.values import finfo, is_float
from onnxreduce_cli.verification.compare.values import Errors, Tolerance, compare_values
from onnxreduce_cli.verification.errors import CannotRunError, RunFailedError
from onnxreduce_cli.verification.running.isolated import IsolatedRunner, open_isolated
from onnxreduce_cli.verification.running.source import ModelSource, cast_values
from onnxreduce_cli.verification.whole.results import Divergence
from onnxreduce_cli.verification.whole.value_graph import ValueGraph

#: Up to this many values are compared all at once; of more, `_AT_ONCE` at a time.
_ALL = 48
_AT_ONCE = 8

Probe = Callable[[Sequence[str]], dict[str, Errors]]


def first_divergence(
    first: tuple[ModelSource, str],
    second: tuple[ModelSource, str],
    output: str,
    feeds: Mapping[str, Any],
    tolerance: Tolerance,
) -> Divergence | None:
    """Find the first value at which two runs differ that differ at an output.

    Values that both models share by name are compared in topological order. Of many, only some are
    compared: a value that agrees clears all that it is computed from, one that differs clears all
    that it is not computed from. The value found differs, and the shared values that it is computed
    from directly agree.

    Args:
        first: a model and the executor that runs it.
        second: the same model and another executor, or another model and its executor.
        output: the output that differs.
        feeds: the inputs on which it differs.
        tolerance: the allowed difference of values.

    Returns:
        the first value found to differ; None where inner values could not be computed.
    """
    graphs = ValueGraph(first[0]), ValueGraph(second[0])
    shared = [name for name in graphs[0].order if name in graphs[1].producers and name != output]
    probe = _probe(first, second, feeds, tolerance)
    search = _Search(graphs[0], [*shared, output], probe)
    if not search.compare([output]) or output not in search.errors:
        return None
    value = search.from_output(output)
    known = set(shared) | {output}
    labels = [(side[0].label, side[1]) for side in (first, second)]
    made = [graph.made(value, known - {value}) for graph in graphs]
    return Divergence(value, labels[0], labels[1], search.errors[value], made[0], made[1])


class _Search:
    """Compares values until the first that differs is found."""

    def __init__(self, graph: ValueGraph, shared: list[str], probe: Probe) -> None:
        self._graph = graph
        self._order = {name: index for index, name in enumerate(shared)}
        self._probe = probe
        self._dead: set[str] = set()
        self.errors: dict[str, Errors] = {}
        self.agreed: set[str] = set()

    def compare(self, names: Iterable[str]) -> bool:
        """Compare some values; return whether any of them could be computed."""
        wanted = [n for n in names if n not in self.errors and n not in self.agreed]
        found = self._probe(wanted)
        for name in wanted:
            errors = found.get(name)
            if errors is None:
                self._dead.add(name)
            elif errors.agree:
                self.agreed.add(name)
            else:
                self.errors[name] = errors
        return bool(found)

    def from_output(self, output: str) -> str:
        """Return the first value that differs among those that an output is computed from."""
        value = output
        suspects = self._suspects(value)
        if len(suspects) <= _ALL:
            self.compare(suspects)
            return min((n for n in self.errors), key=self._order.__getitem__)
        while True:
            while suspects:
                step = max(1, len(suspects) // (_AT_ONCE + 1))
                self.compare(suspects[step - 1 :: step][:_AT_ONCE] if step > 1 else suspects)
                value = self._earliest(value)
                # A value that agrees clears all that it is computed from.
                cleared = set(self.agreed)
                for name in self.agreed & self._graph.ancestors(value):
                    cleared |= self._graph.ancestors(name)
                suspects = [name for name in self._suspects(value) if name not in cleared]
            # A difference may have been hidden on one way and not on another.
            sources = self._graph.sources(value, set(self._order) - {value} - self._dead)
            unseen = [n for n in sources if n not in self.agreed and n not in self.errors]
            if not unseen:
                wrong = [n for n in sources if n in self.errors]
                if not wrong:
                    return value
                value = wrong[0]
                suspects = self._suspects(value)
                continue
            self.compare(unseen)

    def _earliest(self, value: str) -> str:
        ancestors = self._graph.ancestors(value)
        candidates = [name for name in self.errors if name in ancestors]
        return min((*candidates, value), key=self._order.__getitem__)

    def _suspects(self, value: str) -> list[str]:
        """Return the shared values that `value` is computed from, not compared yet, in order."""
        ancestors = self._graph.ancestors(value)
        seen = self.agreed | set(self.errors) | self._dead
        found = [name for name in self._order if name in ancestors and name not in seen]
        return sorted(found, key=self._order.__getitem__)


class InnerRunner:
    """A model in an executor that is run for values of its main graph.

    It stays open for the values that it was last run for, as opening a model of gigabytes takes
    long.

    Args:
        side: the model and the executor.
    """

    def __init__(self, side: tuple[ModelSource, str]) -> None:
        self._source, self._executor = side
        self._open: tuple[Sequence[str], IsolatedRunner] | None = None
        self._never: set[str] = set()

    def values(self, names: Sequence[str], feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Run the model once, and return the values by name, without any that it cannot give.

        Args:
            names: the values.
            feeds: the inputs, which are cast where the model takes other dtypes.
        """
        names = [name for name in names if name not in self._never]
        if not names:
            return {}
        try:
            return self._runner(names).run(cast_values(feeds, self._source.inputs), names)
        except CannotRunError:
            if len(names) == 1:
                self._never.add(names[0])
                return {}
        except RunFailedError:
            if len(names) == 1:
                return {}
        # Some value that cannot be an output stands in the way of the others.
        halves = names[: len(names) // 2], names[len(names) // 2 :]
        return {name: value for half in halves for name, value in self.values(half, feeds).items()}

    def _runner(self, names: Sequence[str]) -> IsolatedRunner:
        if self._open is None or self._open[0] != names:
            self._open = None  # One of them in memory at a time.
            self._open = names, open_isolated(self._source, self._executor, extra=names)
        return self._open[1]


def inner_values(
    side: tuple[ModelSource, str], names: Sequence[str], feeds: Mapping[str, Any]
) -> dict[str, Any]:
    """Return inner values of a model, which does not stay open."""
    return InnerRunner(side).values(names, feeds)


def shared_values(
    sides: tuple[InnerRunner, InnerRunner], names: Sequence[str], feeds: Mapping[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Return the inner values of two models that both can give, by name.

    Those that a conversion gave another floating-point dtype are compared in the coarser one.

    Args:
        sides: the models.
        names: of the values.
        feeds: the inputs.
    """
    left = sides[0].values(names, feeds)
    right = sides[1].values([name for name in names if name in left], feeds)
    return {name: in_one_dtype(left[name], value) for name, value in right.items()}


def in_one_dtype(first: Any, second: Any) -> tuple[Any, Any]:
    """Return two values, in the coarser of their dtypes if both are tensors of floats."""
    pair = (first, second)
    if not all(isinstance(item, np.ndarray) and is_float(item.dtype) for item in pair):
        return pair
    coarse = max((item.dtype for item in pair), key=lambda dtype: float(finfo(dtype).eps))
    with np.errstate(all="ignore"):
        return first.astype(coarse), second.astype(coarse)


def _probe(
    first: tuple[ModelSource, str],
    second: tuple[ModelSource, str],
    feeds: Mapping[str, Any],
    tolerance: Tolerance,
) -> Probe:
    def probe(names: Sequence[str]) -> dict[str, Errors]:
        if not names:
            return {}
        values = shared_values((InnerRunner(first), InnerRunner(second)), names, feeds)
        return {name: compare_values(*pair, tolerance) for name, pair in values.items()}

    return probe
