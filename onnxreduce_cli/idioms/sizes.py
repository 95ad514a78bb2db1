"""Sizes and numbers that exporters compute by nodes, followed to where they come from."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.model.graph.calls import UNKNOWN
from onnxreduce_cli.model.graph.values import Dims

#: How many nodes are followed, one behind the other.
_DEPTH = 150

#: More dimensions than a tensor has.
_LARGE = 1000

_ELEMENTWISE = frozenset({"Add", "Div", "Greater", "Less", "Mul", "Pow", "Sub"})
_UNARY = frozenset({"Cast", "Erf", "Identity", "Neg", "Relu", "Sigmoid", "Softmax", "Sqrt", "Tanh"})
#: What moves or copies sizes one by one.
_TRANSPARENT = frozenset({"Cast", "Identity", "Squeeze", "Unsqueeze"})


class Sizes:
    """The dimensions of tensors, by what they were made from."""

    def __init__(self, facts: NodeFacts) -> None:
        """Prepare to follow values back from one node of a model."""
        self._facts = facts
        self._found: dict[tuple[str, int], Hashable] = {}

    def of(self, name: str, axis: int, depth: int = _DEPTH) -> Hashable:
        """A dimension of a tensor: its size, or a key that it shares with those that are equal.

        Args:
            name: the tensor.
            axis: which; from 0 on where the rank is not known.
            depth: how many nodes to follow, one behind the other.
        """
        dims = self._dims(name)
        if not dims:
            return (name, axis)
        axis %= len(dims)
        dim = dims[axis]
        if isinstance(dim, int):
            return dim
        key = (name, axis)
        if key not in self._found:
            self._found[key] = dim or key
            node = self._facts.producer(name) if depth else None
            if node is not None:
                followed = self._through(node, axis, len(dims), depth - 1)
                self._found[key] = dim or key if followed is None else followed
        return self._found[key]

    def _dims(self, name: str) -> Dims | None:
        found = self._facts.type(name)
        return None if found is None else found.dims

    def _through(self, node: NodeProto, axis: int, rank: int, depth: int) -> Hashable:
        """A dimension of what a node makes, by what the node reads; None where it may be any."""
        op_type, first = node.op_type, next(iter(node.input), "")
        if op_type == "Transpose":
            order = self._value(node, "perm", range(rank)[::-1])
            return None if order is UNKNOWN else self.of(first, order[axis], depth)
        if op_type == "Reshape" and node.input[1:]:
            return self._element(node.input[1], axis, rank, depth)
        if op_type in _ELEMENTWISE:
            return self._broadcast(node, axis, rank, depth)
        if op_type in _UNARY or (op_type == "ReduceMean" and self._axes_are_known(node)):
            # A dimension that is reduced is 1, and known.
            return self.of(first, axis, depth) if self._facts.rank(first) == rank else None
        if op_type == "Unsqueeze":
            return self._unsqueezed(node, axis, rank, depth)
        if op_type == "Range":
            return self._count(node, depth)
        if op_type == "Concat":
            joined = self._value(node, "axis", UNKNOWN)
            apart = joined is not UNKNOWN and joined % rank != axis
            return self.of(first, axis, depth) if apart else None
        if op_type == "Slice" and len(node.input) > 3:
            cut = self._facts.constant(node.input[3])
            whole = cut is not None and axis not in (cut % rank)
            return self.of(first, axis, depth) if whole else None
        if op_type == "MatMul" and self._facts.rank(node.input[1]) == 2 and axis < rank - 1:
            return self.of(first, axis, depth)
        return None

    def _axes_are_known(self, node: NodeProto) -> bool:
        return len(node.input) < 2 or self._facts.constant(node.input[1]) is not None

    def _broadcast(self, node: NodeProto, axis: int, rank: int, depth: int) -> Hashable:
        """A dimension of what is made of two tensors, element by element."""
        found: set[Hashable] = set()
        for name in node.input:
            dims = self._dims(name)
            if dims is None:
                return None
            own = axis - (rank - len(dims))
            found.add(self.of(name, own, depth) if own >= 0 else 1)
        found = found - {1} or {1}
        return found.pop() if len(found) == 1 else None

    def _unsqueezed(self, node: NodeProto, axis: int, rank: int, depth: int) -> Hashable:
        """A dimension of what an Unsqueeze makes; those that it adds are known to be 1."""
        given = None if len(node.input) < 2 else self._facts.constant(node.input[1])
        axes = self._value(node, "axes", UNKNOWN) if given is None else given.ravel().tolist()
        if axes is UNKNOWN:
            return None
        added = sum(added % rank < axis for added in axes)
        return self.of(node.input[0], axis - added, depth)

    def _value(self, node: NodeProto, name: str, default: Any) -> Any:
        return self._facts.about(node).known_value(name, default)

    def _count(self, node: NodeProto, depth: int) -> Hashable:
        """The length of a Range from 0 on by 1."""
        start, step = (self._facts.constant(node.input[index]) for index in (0, 2))
        if start is None or step is None or start.any() or int(step.reshape(())) != 1:
            return None
        return self._scalar(node.input[1], depth)

    def _element(self, sizes: str, index: int, count: int, depth: int) -> Hashable:
        """An element of a list of sizes, by the tensor of which it is one."""
        known = self._facts.elements(sizes)
        if known is not None and len(known) == count and (known[index] or 0) > 0:
            return known[index]
        node = self._facts.producer(sizes)
        if node is None or node.op_type != "Concat" or len(node.input) != count:
            return None
        return self._scalar(node.input[index], depth)

    def _scalar(self, name: str, depth: int) -> Hashable:
        """A number, by the tensor of which it is a dimension; None where it is of none."""
        node = self._facts.producer(name)
        while node is not None and node.op_type in _TRANSPARENT:
            node = self._facts.producer(node.input[0])
        if node is None or node.op_type != "Gather":
            return None
        shape, which = self._facts.producer(node.input[0]), self._facts.constant(node.input[1])
        if shape is None or shape.op_type != "Shape" or shape.attribute:
            return None
        if which is None or which.size != 1:
            return None
        return self.of(shape.input[0], int(which.item()), depth)


def number(facts: NodeFacts, name: str, depth: int = 16) -> float | None:
    """The number that a tensor of one element holds, computed by nodes or not; None if unknown."""
    constant = facts.constant(name)
    if constant is not None:
        return float(constant.reshape(())) if constant.size == 1 else None
    node = facts.producer(name)
    if node is None or not depth:
        return None
    if node.op_type == "Slice":
        return _last_size(facts, node, depth - 1)
    if node.op_type == "Gather":
        return _size(facts, node, depth - 1)
    if node.op_type in _TRANSPARENT:
        return number(facts, node.input[0], depth - 1)
    if node.op_type == "Sqrt":
        radicand = number(facts, node.input[0], depth - 1)
        return math.sqrt(radicand) if radicand is not None and radicand >= 0 else None
    if node.op_type == "Div":
        # Half as deep, as each of a chain of them may read the one before twice.
        over, under = (number(facts, item, depth // 2) for item in node.input)
        return over / under if over is not None and under else None
    return None


def _size(facts: NodeFacts, node: NodeProto, depth: int) -> float | None:
    """A dimension of a tensor, where a Gather takes it of its Shape."""
    shape, which = facts.producer(node.input[0]), facts.constant(node.input[1])
    if shape is None or shape.op_type != "Shape" or shape.attribute:
        return None
    if which is None or which.size != 1:
        return None
    found = Sizes(facts).of(shape.input[0], int(which.item()), depth)
    return float(found) if isinstance(found, int) else None


def _last_size(facts: NodeFacts, node: NodeProto, depth: int) -> float | None:
    """The last dimension of a tensor, where a Slice takes that of its Shape."""
    shape = facts.producer(node.input[0])
    starts, ends = (facts.constant(name) for name in node.input[1:3])
    if shape is None or shape.op_type != "Shape" or shape.attribute:
        return None
    if starts is None or ends is None or starts.tolist() != [-1] or ends.tolist()[0] < _LARGE:
        return None
    found = Sizes(facts).of(shape.input[0], -1, depth)
    return float(found) if isinstance(found, int) else None
