"""The coverage of a model by its outputs: one that is void in every trial proves nothing.

An output is void if it is zero, constant, NaN or empty. The nearest inner values that are not
void are compared in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxreduce_cli.model.graph.values import is_float
from onnxreduce_cli.verification.compare.values import Tolerance, compare_values
from onnxreduce_cli.verification.inputs.node_use import OF_SHAPES
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.divergence import InnerRunner, shared_values
from onnxreduce_cli.verification.whole.value_graph import ValueGraph

Array = npt.NDArray[Any]

#: Values that recur in other shapes, such as a bias; fewer of them may be zeros and ones.
_DISTINCT = 3

#: In so many trials integers do not recur by chance.
_OFTEN = 3

#: How often values further away are compared, each time twice as far.
_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many nodes the results of a verification cover.

    Attributes:
        void: outputs that prove nothing, and what they were in every trial.
        nodes: how many nodes the first model has.
        by_outputs: how many of them compute the other outputs.
        by_all: how many compute these or inner values that agree.
        differing: an inner value that differs, and the trial; None if none does.
    """

    void: dict[str, str] = field(default_factory=dict)
    nodes: int = 0
    by_outputs: int = 0
    by_all: int = 0
    differing: tuple[str, int] | None = None


def coverage(
    first: tuple[ModelSource, str],
    second: tuple[ModelSource, str],
    results: Mapping[str, Sequence[Any]],
    feeds: Sequence[Mapping[str, Any]],
    tolerance: Tolerance,
    explains: Callable[[int, str, Sequence[Any]], bool],
) -> Coverage:
    """Find the outputs that prove nothing, and compare inner values in their place.

    Args:
        first: the reference and the executor that ran it.
        second: the other model and its executor.
        results: the values that each output had, one for each of `feeds`.
        feeds: the inputs on which both ran.
        tolerance: the allowed difference of values.
        explains: whether something explains that a value differs, by the index of the inputs in
            `feeds`, its name, and its value on both sides.
    """
    graph = ValueGraph(first[0])
    void = {
        name: why
        for name, values in results.items()
        if _depends(graph, first[0], name) and (why := void_of(values))
    }
    if not void:
        return Coverage()
    proven = graph.nodes_behind(name for name in results if name not in void)
    found = Coverage(void, len(graph.nodes), len(proven), len(proven))
    shared = set(graph.producers) & set(ValueGraph(second[0]).producers)
    seen = set(void)
    frontier = list(void)
    for distance in range(_ROUNDS):
        behind = _nearest(graph, frontier, shared, proven, 2**distance)
        names = [name for name in graph.order if name in behind and name not in seen]
        if not names:
            break
        seen.update(names)
        pairs = _inner_pairs(first, second, names, feeds)
        for name in names:
            for number, pair in pairs[name]:
                if not compare_values(*pair, tolerance).agree and not explains(number, name, pair):
                    return replace(found, differing=(name, number))
        informative = {name for name in names if not _void_of_pairs(pairs[name])}
        proven |= graph.nodes_behind(informative)
        frontier = [name for name in names if name not in informative]
    return replace(found, by_all=len(proven))


def _void_of_pairs(pairs: Sequence[tuple[int, tuple[Any, Any]]]) -> bool:
    """Return whether the values of one side prove nothing, or there are none."""
    return not pairs or bool(void_of([pair[0] for _, pair in pairs]))


def void_of(values: Sequence[Any]) -> str:
    """Return what a value was in every trial if that proves nothing; empty if it does."""
    arrays = [array for value in values for array in _arrays(value)]
    full = [array.reshape(-1) for array in arrays if array.size]
    if not full:
        return "empty"
    kept = [
        array[~np.isnan(array.astype(np.float64))] if _has_nan(array) else array for array in full
    ]
    kept = [array for array in kept if array.size]
    if not kept:
        return "NaN"
    one = kept[0][0]
    if all(bool(np.all(array == one)) for array in kept):
        if sum(array.size for array in full) == 1 and is_float(full[0].dtype) and one != 0:
            return ""  # A single number, such as a loss.
        return f"all {one + 0:g}" if is_float(full[0].dtype) else f"all {one}"
    if len(arrays) > 1 and _same(arrays):
        return "the same"
    return ""


def _same(arrays: Sequence[Array]) -> bool:
    """Return whether numbers are the same in all trials: they do not depend on what was drawn."""
    first = arrays[0]
    if not is_float(first.dtype):
        is_integer = first.dtype.kind in "iu"
        return (
            is_integer and len(arrays) >= _OFTEN and all(np.array_equal(first, a) for a in arrays)
        )
    known = np.unique(first)
    for other in arrays[1:]:
        if other.shape == first.shape:
            if other.tobytes() != first.tobytes():
                return False
        elif len(known) < _DISTINCT or not np.array_equal(known, np.unique(other)):
            return False
    return True


def _has_nan(array: Array) -> bool:
    return is_float(array.dtype) and bool(np.isnan(array.astype(np.float64)).any())


def _arrays(value: Any) -> list[Array]:
    """Return the tensors of a value: several of a sequence, none of an empty optional."""
    if isinstance(value, list):
        return [array for item in value for array in _arrays(item)]
    if isinstance(value, dict):
        return [np.asarray(list(value.values()))]
    return [] if value is None else [np.asarray(value)]


def _depends(graph: ValueGraph, source: ModelSource, name: str) -> bool:
    """Return whether nodes compute a value from elements of inputs, not from shapes alone."""
    if name not in graph.producers or graph.producers[name].op_type in OF_SHAPES:
        return False  # An input that is an output too, or a shape, is not void.
    sizes = {name for node in graph.nodes if node.op_type in OF_SHAPES for name in node.output}
    return not graph.sources(name, sizes | set(source.inputs)).isdisjoint(source.inputs)


def _nearest(
    graph: ValueGraph, names: Iterable[str], shared: set[str], proven: set[int], count: int
) -> set[str]:
    """Return the values of both models up to `count` steps before some values."""
    found: set[str] = set()
    frontier = set(names)
    for _ in range(count):
        ends = {end for name in frontier for end in graph.sources(name, shared)}
        ends = {
            end for end in ends - found if graph.positions[id(graph.producers[end])] not in proven
        }
        if not ends:
            break
        found |= ends
        frontier = ends
    return found


def _inner_pairs(
    first: tuple[ModelSource, str],
    second: tuple[ModelSource, str],
    names: Sequence[str],
    feeds: Sequence[Mapping[str, Any]],
) -> dict[str, list[tuple[int, tuple[Any, Any]]]]:
    """Return inner values of both sides, by name and with the number of the trial."""
    found: dict[str, list[tuple[int, tuple[Any, Any]]]] = {name: [] for name in names}
    sides = InnerRunner(first), InnerRunner(second)
    for number, inputs in enumerate(feeds):
        for name, pair in shared_values(sides, names, inputs).items():
            found[name].append((number, pair))
    return found
