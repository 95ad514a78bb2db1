"""Finding where two runs differ first, by looking at values in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from onnx import NodeProto

from onnxreduce_cli.verification.compare import Errors, Tolerance, compare
from onnxreduce_cli.verification.errors import CannotRunError, RunFailedError
from onnxreduce_cli.verification.isolated import open_isolated
from onnxreduce_cli.verification.reads import reads
from onnxreduce_cli.verification.results import Divergence
from onnxreduce_cli.verification.source import Source

#: Up to this many values are looked at all at once; of more, so many at a time.
_ALL = 48
_AT_ONCE = 8
#: No more nodes are named than these.
_NAMED = 12

Probe = Callable[[Sequence[str]], dict[str, Errors]]


def first_divergence(
    first: tuple[Source, str],
    second: tuple[Source, str],
    output: str,
    feeds: Mapping[str, Any],
    tolerance: Tolerance,
) -> Divergence | None:
    """Find the first value at which two runs differ that differ at an output.

    Values that both models share by name are compared in topological order. Of many, only some
    are looked at: what agrees clears what it was made from, what differs clears what it was not
    made from. The value found differs, and the shared values it is made from directly agree.

    Args:
        first: a model and the executor that runs it.
        second: those on the other side; the same model in another executor, or another model.
        output: the output that differs.
        feeds: the inputs on which it differs.
        tolerance: the allowed difference of values.

    Returns:
        the first value found to differ; None where the values could not be looked at.
    """
    graphs = _Graph(first[0]), _Graph(second[0])
    shared = [name for name in graphs[0].order if name in graphs[1].producers and name != output]
    probe = _probe(first, second, feeds, tolerance)
    search = _Search(graphs[0], [*shared, output], probe)
    if not search.look([output]) or output not in search.errors:
        return None
    value = search.from_output(output)
    known = set(shared) | {output}
    labels = [(side[0].label, side[1]) for side in (first, second)]
    made = [graph.made(value, known - {value}) for graph in graphs]
    return Divergence(value, labels[0], labels[1], search.errors[value], made[0], made[1])


class _Graph:
    """A model's main graph as a network of values."""

    def __init__(self, source: Source) -> None:
        self.producers: dict[str, NodeProto] = {}
        for node in source.skeleton.graph.node:
            for name in node.output:
                if name:
                    self.producers[name] = node
        self.order = list(self.producers)

    def ancestors(self, name: str) -> set[str]:
        """Every value that `name` is made from, itself left out."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            node = self.producers.get(waiting.pop())
            for read in reads([node]) if node is not None else ():
                if read not in found:
                    found.add(read)
                    waiting.append(read)
        return found

    def sources(self, name: str, known: set[str]) -> set[str]:
        """Return the values among `known` that `name` is computed from with none between."""
        return self._walk(name, known)[0]

    def made(self, name: str, known: set[str]) -> tuple[str, ...]:
        """The nodes that make `name` from values among `known`, in order."""
        nodes = {id(node) for node in self._walk(name, known)[1]}
        ordered: dict[int, NodeProto] = {}
        for value in self.order:
            node = self.producers[value]
            if id(node) in nodes:
                ordered[id(node)] = node
        names = [f"{_called(node)} ({node.op_type})" for node in ordered.values()]
        return tuple(names[-_NAMED:])

    def _walk(self, name: str, known: set[str]) -> tuple[set[str], list[NodeProto]]:
        ends: set[str] = set()
        nodes: list[NodeProto] = []
        waiting, seen = [name], {name}
        while waiting:
            node = self.producers.get(waiting.pop())
            if node is None:
                continue
            nodes.append(node)
            for read in reads([node]):
                if read in known:
                    ends.add(read)
                elif read not in seen:
                    seen.add(read)
                    waiting.append(read)
        return ends, nodes


def _called(node: NodeProto) -> str:
    return node.name or next((name for name in node.output if name), "without a name")


class _Search:
    """Looks at values until the first that differs is known."""

    def __init__(self, graph: _Graph, shared: list[str], probe: Probe) -> None:
        self._graph = graph
        self._order = {name: index for index, name in enumerate(shared)}
        self._probe = probe
        self._dead: set[str] = set()
        self.errors: dict[str, Errors] = {}
        self.agreed: set[str] = set()

    def look(self, names: Iterable[str]) -> bool:
        """Look at some values; whether any of them could be looked at."""
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
        """The first value that differs, on the way to one that does."""
        value = output
        suspects = self._suspects(value)
        if len(suspects) <= _ALL:
            self.look(suspects)
            return min((n for n in self.errors), key=self._order.__getitem__)
        while True:
            while suspects:
                step = max(1, len(suspects) // (_AT_ONCE + 1))
                self.look(suspects[step - 1 :: step][:_AT_ONCE] if step > 1 else suspects)
                value = self._earliest(value)
                # What agrees clears what it was made from.
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
            self.look(unseen)

    def _earliest(self, value: str) -> str:
        ancestors = self._graph.ancestors(value)
        candidates = [name for name in self.errors if name in ancestors]
        return min((*candidates, value), key=self._order.__getitem__)

    def _suspects(self, value: str) -> list[str]:
        """The shared values that `value` is made from and that were not looked at, in order."""
        ancestors = self._graph.ancestors(value)
        seen = self.agreed | set(self.errors) | self._dead
        found = [name for name in self._order if name in ancestors and name not in seen]
        return sorted(found, key=self._order.__getitem__)


def _probe(
    first: tuple[Source, str],
    second: tuple[Source, str],
    feeds: Mapping[str, Any],
    tolerance: Tolerance,
) -> Probe:
    def values(side: tuple[Source, str], names: Sequence[str]) -> dict[str, Any]:
        source, executor = side
        try:
            return open_isolated(source, executor, extra=names).run(feeds, names)
        except (CannotRunError, RunFailedError):
            if len(names) == 1:
                return {}
        # Some value that cannot be an output stands in the way of the others.
        found: dict[str, Any] = {}
        for half in (names[: len(names) // 2], names[len(names) // 2 :]):
            found.update(values(side, half))
        return found

    def probe(names: Sequence[str]) -> dict[str, Errors]:
        if not names:
            return {}
        left = values(first, names)
        present = [name for name in names if name in left]
        right = values(second, present) if present else {}
        return {name: compare(left[name], right[name], tolerance) for name in right}

    return probe
