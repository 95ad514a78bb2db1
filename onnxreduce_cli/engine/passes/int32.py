"""Proof that int32 holds the int64 values of a model that are to become int32.

What an operator takes or makes in int64 alone stays, as `kept_dtypes` says. So do nodes that
compute only what such inputs read, such as sizes on their way to a Reshape: in int32 they would be
cast back, and nobody would infer the shape any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.passes.kept_dtypes import KeptDtype, Reader
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import Blocker, UsageError
from onnxreduce_cli.model.file.byte_ranges import FileRange, RecodedRange
from onnxreduce_cli.model.file.document import Document
from onnxreduce_cli.model.file.weights import data_of, stored_files
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.dtype_change import keep_option
from onnxreduce_cli.model.graph.scope import Scope, subgraphs
from onnxreduce_cli.model.types.intervals import (
    INT32,
    Interval,
    Intervals,
    hull,
    interval_of,
    is_followed,
)
from onnxreduce_cli.text import did_you_mean, quoted

_INT64 = "tensor(int64)"

#: A value: the identity of the scope that defines it, and its name.
_Value = tuple[int, str]

#: Operators that hand on the elements of their inputs, at these places.
_MOVING = {
    "Concat": range(1 << 30),
    "Identity": range(1),
    "Reshape": range(1),
    "Squeeze": range(1),
    "Unsqueeze": range(1),
}

#: The inputs of Slice: where it starts and ends, and all that are of one dtype with these.
_LIMITS, _INDICES = frozenset({1, 2}), frozenset({1, 2, 3, 4})

#: Why nodes stay that compute what int64 inputs read.
_FOR_SHAPES = "for shapes"


class Int32Proof:
    """The proof for one model, before any change."""

    def __init__(
        self,
        document: Document,
        model_input: ConversionInput,
        keeping: KeptDtype,
        ranges: Mapping[str, tuple[int, int]],
        outer: Collection[str],
        untouched: Collection[str],
    ) -> None:
        """Begin with what is known of constants and inputs, and with what is stated.

        Args:
            document: the model.
            model_input: the same, before any change.
            keeping: the nodes that keep int64, to which `keep_shapes` adds more.
            ranges: the ranges that the user states, by the names of values.
            outer: inputs and outputs of the model that stay int64.
            untouched: those among them that only Casts read or make.

        Raises:
            UsageError: a range is of no value of int64 that is computed or given.
        """
        self._scopes, self._facts = keeping.scopes, model_input.facts
        self._keeping, self._outer, self._untouched = keeping, outer, untouched
        self._main = self._scopes[0]
        self._readers = keeping.readers
        held = dict(self._held(document))
        self._constants = frozenset(held)
        given = self._given(held)
        types = [self._facts.type(self._main, item) for item in self._main.inputs]
        self._open = {
            dim for item in types if item for dim in item.dims or () if isinstance(dim, str)
        }
        values = {n: ends for n, ends in ranges.items() if self._owners(n) or n not in self._open}
        sizes = {n: Interval(*ends) for n, ends in ranges.items() if n not in values}
        stated = dict(self._stated(values))
        self._intervals = Intervals(self._facts, {**held, **given, **stated}, sizes)
        self._limits: dict[_Value, bool] = {}

    # What is known beside the facts

    def _held(self, document: Document) -> Iterator[tuple[_Value, Interval]]:
        """Yield the intervals of initializers and Constants, whatever their size."""
        stored = stored_files(document)
        for scope in self._scopes:
            found = [(tensor, name) for name, tensor in scope.initializers.items()]
            for node in scope.nodes:
                if node.op_type == "Constant" and is_default(node.domain):
                    found += [(a.t, node.output[0]) for a in node.attribute if a.HasField("t")]
            for tensor, name in found:
                if tensor.data_type == TensorProto.INT64:
                    yield (id(scope), name), _of_tensor(document, tensor, stored)

    def _given(self, held: Mapping[_Value, Interval]) -> dict[_Value, Interval]:
        """Return the intervals of the model's inputs that become int32, which they are of then."""
        found = {}
        for name in self._main.inputs:
            value = id(self._main), name
            if self._kind(self._main, name) == _INT64 and name not in self._outer:
                # An input may have a default.
                found[value] = hull([INT32, held.get(value, INT32)]) or INT32
        return found

    def _stated(self, ranges: Mapping[str, tuple[int, int]]) -> Iterator[tuple[_Value, Interval]]:
        for name, ends in ranges.items():
            owners = self._owners(name)
            said = f"--assume-range {name}={ends[0]}:{ends[1]}"
            if not owners:
                known = [n for scope in self._scopes for n in (*scope.inputs, *scope.producers)]
                raise UsageError(
                    f"{said}: no input, no node's output and no dimension of an input is called "
                    f"{quoted(name)}{did_you_mean(name, [*known, *self._open])}"
                )
            for scope in owners:
                value = id(scope), name
                kind = self._kind(scope, name)
                integers = kind in (_INT64, "tensor(int32)")  # It may be changed already.
                if not integers or self._facts.constant(scope, name) is not None:
                    what = "is a constant" if integers else f"is {kind}, not {_INT64}"
                    raise UsageError(f"{said}: it {what}; leave it out")
                yield value, Interval(*ends)

    def _owners(self, name: str) -> list[Scope]:
        """Return the scopes outside of functions that have an input or node's output of a name."""
        own = [scope for scope in self._scopes if scope.function is None]
        return [scope for scope in own if name in scope.inputs or name in scope.producers]

    def _kind(self, scope: Scope, name: str) -> str | None:
        found, node = self._facts.kind(scope, name), scope.producer(name)
        if found is None and node is not None and node.op_type == "Cast":
            # Before opset 6 a Cast states the dtype as text, which onnx does not read.
            to = attributes.find(node, "to")
            return None if to is None or to.s == b"INT64" else to.s.decode("utf-8", "replace")
        return found

    # Where values become int32

    def _is_read(self, scope: Scope, name: str) -> bool:
        """Return whether a value is read as int32."""
        if scope is self._main and name in self._untouched:
            return False
        return self._keeping.is_read(scope, name)

    def _is_made(self, scope: Scope, name: str) -> bool:
        """Return whether a value is given or computed as int32."""
        if scope is self._main and name in self._untouched:
            return False
        node = scope.producer(name)
        if node is None:
            return name in scope.inputs and not (scope is self._main and name in self._outer)
        if node.op_type == "Constant" and is_default(node.domain):
            return False
        kept = self._keeping.nodes.get(id(node))
        return kept is None or list(node.output).index(name) not in kept.outputs

    def _fits(self, scope: Scope, name: str) -> bool:
        """Return whether it is proven that an int32 does what a value does."""
        interval = self._intervals.of(scope, name)
        return (interval is not None and interval.within(INT32)) or self._is_limit(scope, name)

    def _is_limit(self, scope: Scope, name: str) -> bool:
        """Return whether a constant is but where Slices start or end, or an operator moves such.

        A limit beyond int32 is beyond each axis that has no more elements than an int32 counts, as
        the nearest int32 is.
        """
        value = id(scope), name
        if value not in self._limits:
            node = scope.producer(name)
            moved = node is not None and is_default(node.domain) and node.op_type in _MOVING
            constant = value in self._constants and name not in scope.inputs
            constant |= node is not None and node.op_type == "Constant"
            self._limits[value] = (moved or constant) and self._only_limits(scope, name)
        return self._limits[value]

    def _only_limits(self, scope: Scope, name: str) -> bool:
        waiting, seen = [(scope, name)], {(id(scope), name)}
        while waiting:
            owner, wanted = waiting.pop()
            if wanted in owner.outputs:
                return False
            for reader in self._readers.get((id(owner), wanted), ()):
                node = reader.node
                if not is_default(node.domain):
                    return False
                if reader.place in _MOVING.get(node.op_type, ()):
                    value = id(reader.scope), node.output[0]
                    if value not in seen:
                        seen.add(value)
                        waiting.append((reader.scope, node.output[0]))
                elif not self._is_slice_limit(reader):
                    return False
        return True

    def _is_slice_limit(self, reader: Reader) -> bool:
        """Return whether a Slice starts or ends there, on axes not known to be too long."""
        if reader.node.op_type != "Slice" or reader.place not in _LIMITS:
            return False
        found = self._facts.type(reader.scope, reader.node.input[0])
        dims = () if found is None or found.dims is None else found.dims
        return all(not isinstance(dim, int) or dim <= INT32.high for dim in dims)

    def clamped_slices(self) -> int:
        """Return how many Slices read limits beyond int32, which the nearest int32 stands for."""
        found = set()
        for scope in self._scopes:
            for node in scope.nodes:
                if node.op_type != "Slice" or not is_default(node.domain):
                    continue
                for place in _LIMITS:
                    name = node.input[place] if place < len(node.input) else ""
                    owner = scope.resolve(name) if name else None
                    if owner is None or not self._keeping.reads_new(Reader(scope, node, place)):
                        continue
                    interval = self._intervals.of(owner, name)
                    if interval is None or not interval.within(INT32):
                        found.add(id(node))
        return len(found)

    # What stays

    def keep_shapes(self) -> None:
        """Let nodes stay that compute with sizes what is read as int64 alone, or by Slices."""
        sizes = self._sizes()
        for scope in reversed(self._scopes):
            for node in reversed(scope.nodes):
                if id(node) in self._keeping.nodes or not self._may_stay(node):
                    continue
                made = [n for n in node.output if n and self._kind(scope, n) == _INT64]
                if made and not any(self._is_read(scope, name) for name in made):
                    if {(id(scope), name) for name in made} <= sizes:
                        self._keeping.keep(scope, node, _FOR_SHAPES)
                elif node.op_type == "Slice":
                    indices = set(self._integers(scope, node.input[1:]))
                    fit = (self._fits(*index) for index in indices)
                    if {(id(owner), name) for owner, name in indices} <= sizes and not all(fit):
                        self._keeping.keep(scope, node, _FOR_SHAPES, _INDICES)

    def _sizes(self) -> set[_Value]:
        """Return the integers that follow from constants and from shapes."""
        found = set(self._constants)
        for scope in self._scopes:
            for node in scope.nodes:
                # What was changed before may lead to them, by a Cast.
                integers = self._integers(scope, node.input, _INT64, "tensor(int32)")
                read = [(id(owner), name) for owner, name in integers]
                given = node.op_type in ("Constant", "Shape", "Size") and is_default(node.domain)
                if given or (read and found.issuperset(read) and self._may_stay(node)):
                    found.update((id(scope), name) for name in node.output)
        return found

    def _integers(
        self, scope: Scope, names: Iterable[str], *kinds: str
    ) -> Iterator[tuple[Scope, str]]:
        """Yield the values of int64, or other kinds, among some that a scope reads.

        Each comes with its own scope.
        """
        for name in names:
            owner = scope.resolve(name) if name else None
            if owner is not None and self._kind(owner, name) in (kinds or (_INT64,)):
                yield owner, name

    def _may_stay(self, node: NodeProto) -> bool:
        called = self._facts.calls.function_of(node) is not None
        computes = is_default(node.domain) and node.op_type != "Constant"
        return computes and not called and not any(subgraphs(node))

    # What is not proven

    def blockers(self) -> Iterator[Blocker]:
        """Yield a blocker for each value that is not proven, without those that follow from it."""
        found: dict[_Value, Scope] = {}
        for scope in self._scopes:
            yield from self._unfollowed(scope)
            for name in (*scope.inputs, *scope.initializers, *scope.producers):
                if (
                    name == _counter(scope)
                    or self._kind(scope, name) != _INT64
                    or (id(scope), name) in found
                ):
                    continue
                becomes = self._is_made(scope, name) or self._is_read(scope, name)
                if becomes and not self._fits(scope, name):
                    found[id(scope), name] = scope
        for (_, name), scope in found.items():
            node = scope.producer(name)
            read = () if node is None else node.input
            if not any((id(scope.resolve(item)), item) in found for item in read if item):
                yield self._unproven(scope, name)

    def _unfollowed(self, scope: Scope) -> Iterator[Blocker]:
        """Yield a blocker for each value whose integers are not followed at all."""
        for item in getattr(scope.container, "sparse_initializer", ()):
            name = item.values.name
            if item.values.data_type == TensorProto.INT64:
                yield self._blocker(scope, name, f"{name!r} is sparse, which is not followed")
        for name in (*scope.inputs, *scope.producers):
            kind = self._kind(scope, name)
            if kind is None:
                reason, advice = f"the type of {name!r} is not known", "state it in its value_info"
                yield self._blocker(scope, name, reason, advice)
            elif _INT64 in kind and kind != _INT64:
                reason = f"{name!r} is {kind}, whose integers are not followed"
                yield self._blocker(scope, name, reason)
        if _counter(scope):
            reason = "its body counts in int64, which is not followed"
            yield self._blocker(scope, _counter(scope), reason)

    def _unproven(self, scope: Scope, name: str) -> Blocker:
        interval = self._intervals.of(scope, name)
        reason = f"how large the integers of {name!r} are is not proven"
        if (id(scope), name) in self._constants and name not in scope.inputs:
            return self._beyond(scope, name, interval)
        if interval is not None:
            reason = f"{name!r} may be from {interval.low} to {interval.high}, beyond int32"
        if scope.function is not None:
            return self._blocker(scope, name, reason, "put functions in place: --inline-functions")
        node = scope.producer(name)
        if node is not None and node.op_type in ("Shape", "Size"):
            reason = f"{name!r} holds sizes that are not known"
        owner, root = self._widest(scope, name)
        advice = f"state the range of {root!r}: --assume-range '{root}=MIN:MAX'"
        size = self._open_size(owner, root)
        if size:
            advice = (
                f"fix the size: --dim '{size}=SIZE', or state its range: --assume-range "
                f"'{size}=MIN:MAX'"
            )
        return self._blocker(scope, name, reason, advice)

    def _beyond(self, scope: Scope, name: str, interval: Interval | None) -> Blocker:
        """Return the blocker of a constant that no int32 holds."""
        readers = [item for item in self._readers[id(scope), name] if self._keeping.reads_new(item)]
        ends = "" if interval is None else f" of {interval.low}:{interval.high}"
        option = keep_option((item.node.name, item.node.op_type) for item in readers)
        reason = f"its constant {name!r} has elements{ends}, beyond int32"
        return self._blocker(scope, name, reason, f"keep int64 there: {option}")

    def _widest(self, scope: Scope, name: str) -> tuple[Scope, str]:
        """Return the value, on the way to another, of which the least is known."""
        while (node := scope.producer(name)) is not None:
            read = [
                item
                for item in self._integers(scope, node.input)
                if self._facts.constant(*item) is None
            ]
            unknown = [item for item in read if self._intervals.of(*item) is None]
            if unknown and is_followed(node):
                scope, name = unknown[0]
            elif not self._intervals.is_bounded_by_inputs(scope, name):
                break
            elif read and node.op_type in _SUMS:
                scope, name = max(read, key=lambda item: self._width(*item))
            else:
                break
        return scope, name

    def _width(self, scope: Scope, name: str) -> int:
        interval = self._intervals.of(scope, name)
        return 0 if interval is None else interval.high - interval.low

    def _open_size(self, scope: Scope, name: str) -> str:
        """Return an input's dimension that a Shape or a Size depends on, as --dim names it."""
        node = scope.producer(name)
        if node is None or node.op_type not in ("Shape", "Size"):
            return ""
        own = self._facts.type(scope, node.input[0])
        dims = () if own is None else own.dims or ()
        return next((dim for dim in dims if isinstance(dim, str) and dim in self._open), "")

    def _blocker(self, scope: Scope, name: str, reason: str, advice: str = "") -> Blocker:
        """Return a blocker at the node that makes a value, else at the first that reads it."""
        node = scope.producer(name)
        # No scope has sparse initializers among its values.
        readers = self._readers.get((id(scope), name), []) or self._readers.get(
            (id(None), name), []
        )
        if name == _counter(scope):
            node, scope = scope.owner, scope.parent or scope
        elif node is None or node.op_type == "Constant":
            first = next(iter(readers), None)
            node, scope = (first.node, first.scope) if first else (node or NodeProto(), scope)
        blocked = Blocked(reason, advice or "leave out --dtype int64=int32")
        return Site(scope, node or NodeProto(), blocked=blocked).blocker


#: Operators whose results are beyond int32 where their inputs are too large.
_SUMS = frozenset({"Abs", "Add", "CumSum", "Mul", "Neg", "Pow", "ReduceSum", "Sub"})


def _counter(scope: Scope) -> str:
    """Return the name of the number of the iteration in the body of a Loop; empty elsewhere."""
    owner, container = scope.owner, scope.container
    if owner is None or owner.op_type != "Loop" or not is_default(owner.domain):
        return ""
    return container.input[0].name if isinstance(container, GraphProto) else ""


def _of_tensor(document: Document, tensor: TensorProto, stored: Mapping[str, object]) -> Interval:
    """Return the interval of a tensor's integers, read in parts."""
    found: list[Interval | None] = []
    for part in data_of(document, tensor, stored):  # type: ignore[arg-type]
        chunks = part.chunks() if isinstance(part, FileRange | RecodedRange) else [bytes(part)]
        for chunk in chunks:
            found.append(interval_of(np.frombuffer(chunk, np.int64)))
    return hull(found) or Interval(0, 0)
