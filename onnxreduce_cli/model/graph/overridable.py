"""Stated shapes that count for nothing: those that follow from defaults, or from false sizes.

Neither such an initializer nor a shape that follows from its value is constant. Shape inference
takes both for constant, and value_info may hold shapes inferred in this way. So inference gets the
model without these defaults, and a stated shape that may follow from a default is ignored in favour
of what is inferred without it.

The same goes for what follows from sizes that onnx and runtimes count otherwise; see
`model.graph.miscounted_sizes` and `model.graph.scaled_sizes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cached_property

from onnx import GraphProto, ModelProto, NodeProto

from onnxreduce_cli.model.graph.calls import Calls
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.ir_version import INITIALIZERS
from onnxreduce_cli.model.graph.miscounted_sizes import has_miscounted, is_miscounted
from onnxreduce_cli.model.graph.scaled_sizes import has_uneven_scales, scales_in
from onnxreduce_cli.model.graph.scope import Scope, function_scopes
from onnxreduce_cli.model.graph.values import ValueType

#: The inputs whose values decide the shapes of the outputs; None for all of them.
DECIDING: dict[str, tuple[int, ...] | None] = {
    "AffineGrid": (1,),
    "BlackmanWindow": None,
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "Compress": (1,),
    "ConstantOfShape": None,
    "DFT": (1, 2),
    "Expand": (1,),
    "HammingWindow": None,
    "HannWindow": None,
    "If": None,
    "ImageDecoder": None,
    "Loop": None,
    "MaxUnpool": (2,),
    "MelWeightMatrix": None,
    "NonMaxSuppression": None,
    "NonZero": None,
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": None,
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "Scan": None,
    "SequenceAt": (1,),
    "SequenceMap": None,
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "StringSplit": None,
    "Tile": (1, 2),
    "TopK": (1,),
    "Unique": None,
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
DECIDING |= {
    f"Reduce{name}": (1,)
    for name in (
        *("L1", "L2", "LogSum", "LogSumExp", "Max"),
        *("Mean", "Min", "Prod", "Sum", "SumSquare"),
    )
}


def has_miscounted_sizes(scope: Scope) -> bool:
    """Return whether onnx may infer other sizes than runtimes give of a node in a scope."""
    return has_miscounted(scope) or has_uneven_scales(scope)


def overridable(model: ModelProto) -> frozenset[str]:
    """Return the names of the initializers that the caller of a model may override.

    Before IR version 4 initializers are always listed among the inputs, and constant.
    """
    graph = model.graph
    if model.ir_version < INITIALIZERS:
        return frozenset()
    names = {tensor.name for tensor in graph.initializer}
    names.update(tensor.values.name for tensor in graph.sparse_initializer)
    return frozenset(names.intersection([value.name for value in graph.input]))


def drop_defaults(graph: GraphProto, names: frozenset[str]) -> None:
    """Remove initializers from a graph, in place, so that they are inputs only."""
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name in names:
            del graph.initializer[index]
    for index in reversed(range(len(graph.sparse_initializer))):
        if graph.sparse_initializer[index].values.name in names:
            del graph.sparse_initializer[index]


class _Dependence(IntEnum):
    """What follows from a default: nothing, a value, or its shape and so the value too."""

    NOTHING = 0
    VALUE = 1
    SHAPE = 2


class _Dependents:
    """The values that follow from a default.

    Attributes:
        values: the values that follow from a default, by scope and name.
        shapes: the values whose shapes, too, follow from one.
    """

    def __init__(self) -> None:
        self.values: set[tuple[int, str]] = set()
        self.shapes: set[tuple[int, str]] = set()

    def of(self, scope: Scope, name: str) -> _Dependence:
        """Return what of a value that a scope reads follows from a default."""
        owner = scope.resolve(name) if name else None
        key = (id(owner), name)
        if key in self.shapes:
            return _Dependence.SHAPE
        return _Dependence.VALUE if key in self.values else _Dependence.NOTHING

    def any(self, scope: Scope, names: Iterable[str]) -> _Dependence:
        """Return the most that follows from a default of any of these values."""
        return max((self.of(scope, name) for name in names), default=_Dependence.NOTHING)

    def take(self, scope: Scope, names: Iterable[str], kind: _Dependence) -> None:
        """Add values that a scope defines."""
        if kind is not _Dependence.NOTHING:
            marked = self.values if kind is _Dependence.VALUE else self.shapes
            marked.update((id(scope), name) for name in names if name)


class StatedTypes:
    """The types that a model states of its values, as far as they hold for every run.

    Attributes:
        overridable: the names of the initializers that the caller may override.
    """

    def __init__(self, model: ModelProto, graphs: Sequence[Scope], calls: Calls) -> None:
        """Find the overridable initializers; what follows from them is found when needed.

        Args:
            model: the model.
            graphs: the scopes of its graphs, each after the one around it.
            calls: the calls of its functions.
        """
        self.overridable = overridable(model)
        self._graphs = graphs
        self._calls = calls

    def type(self, scope: Scope, name: str) -> ValueType | None:
        """Return the type that a scope states for a value of its own; None if it states none."""
        found = scope.declared.get(name)
        if found is None or found.dims is None or not self.follows(scope, name):
            return found
        if not self.overridable:  # The sizes are in doubt then, not the rank.
            return found._replace(
                dims=tuple(None if isinstance(dim, int) else dim for dim in found.dims)
            )
        return found._replace(dims=None)

    def follows(self, scope: Scope, name: str) -> bool:
        """Return whether the shape of a value that a scope defines may follow from a default.

        For values of functions the answer is always yes where the model has overridable defaults.
        """
        if not self.are_doubtful:
            return False
        return (scope.function is not None and bool(self.overridable)) or (
            id(scope),
            name,
        ) in self._marked.shapes

    @cached_property
    def are_doubtful(self) -> bool:
        """Whether stated shapes may follow from a default, or from a size that onnx miscounts."""
        return (
            bool(self.overridable)
            or any(map(has_miscounted_sizes, self._graphs))
            or self._functions_miscount
        )

    @cached_property
    def _functions_miscount(self) -> bool:
        """Whether a function of the model has sizes that onnx and runtimes count otherwise."""
        return any(
            has_miscounted_sizes(scope)
            for function in self._calls.functions.values()
            for scope in function_scopes(function, "")
        )

    @cached_property
    def _marked(self) -> _Dependents:
        """The values that follow from the defaults of overridable initializers."""
        marks = _Dependents()
        marks.values.update((id(self._graphs[0]), name) for name in self.overridable)
        inner: dict[int, list[Scope]] = {}
        for scope in self._graphs:
            if scope.owner is not None:
                inner.setdefault(id(scope.owner), []).append(scope)
        for scope in self._graphs:
            if scope.owner is not None and scope.parent is not None:
                # Its inputs change from one iteration to the next.
                marks.take(scope, scope.inputs, marks.any(scope.parent, scope.owner.output))
            for node in scope.nodes:
                read = [(scope, name) for name in node.input]
                read += _read_within(node, inner)
                marks.take(scope, node.output, self._kind(marks, scope, node, read))
        return marks

    def _kind(
        self, marks: _Dependents, scope: Scope, node: NodeProto, read: Sequence[tuple[Scope, str]]
    ) -> _Dependence:
        """Return what of a node's outputs follows from defaults: nothing, values, or shapes."""
        if is_miscounted(node, scope.opset or 0) or scales_in(scope, node) is not None:
            return _Dependence.SHAPE
        if self._functions_miscount and self._calls.function_of(node) is not None:
            return _Dependence.SHAPE
        kind = max((marks.of(*item) for item in read), default=_Dependence.NOTHING)
        if kind is not _Dependence.VALUE:
            return kind
        if self._calls.function_of(node) is not None:
            return _Dependence.SHAPE
        if not is_default(node.domain):
            return kind  # Only its exporter knows its shapes.
        if node.op_type in ("Shape", "Size"):
            return _Dependence.NOTHING
        indices = DECIDING.get(node.op_type, ())
        if indices is None:
            return _Dependence.SHAPE
        names = [node.input[index] for index in indices if index < len(node.input)]
        return _Dependence.SHAPE if marks.any(scope, names) is not _Dependence.NOTHING else kind


def _read_within(node: NodeProto, inner: Mapping[int, Sequence[Scope]]) -> list[tuple[Scope, str]]:
    """Return the values that the graphs within a node read, and their outputs."""
    found: list[tuple[Scope, str]] = []
    waiting = list(inner.get(id(node), ()))
    while waiting:
        scope = waiting.pop()
        found += [(scope, name) for item in scope.nodes for name in item.input]
        found += [(scope, name) for name in scope.outputs]
        waiting += [graph for item in scope.nodes for graph in inner.get(id(item), ())]
    return found
