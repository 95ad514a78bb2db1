"""The factors of sizes, by which one size is known to be 0 where another is.

A size is 0 where one of its factors is. So where it has all factors of another, as ``4 * batch``
has those of ``batch``, it is 0 wherever that is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.sizes import dims_of
from onnxreduce_cli.model.graph.calls import UNKNOWN
from onnxreduce_cli.model.graph.domains import is_default

#: What can be 0: a dimension's name, a dimension without one (a value and an axis), or 0 itself.
Factor = str | tuple[str, int] | int
#: The factors of a size, those left out that are never 0; each is one way to write it.
Ways = tuple[frozenset[Factor], ...]

#: How many nodes are looked through, one behind the other.
_DEPTH = 16
#: How many ways to write one size are kept.
_MOST_WAYS = 4


def is_never_zero(size: Ways) -> bool:
    """Return whether a size is known to be above 0."""
    return frozenset() in size


def is_zero_with(size: Ways, other: Ways) -> bool:
    """Return whether `other` is known to be 0 wherever `size` is."""
    return any(one <= two for one in size for two in other)


def of_number(number: int) -> Ways:
    """Return the factors of a known size."""
    if number < 0:
        return ()
    return (frozenset({0}),) if number == 0 else (frozenset(),)


class Factors:
    """The factors of the sizes that a node reads, each value looked at once."""

    def __init__(self, context: Context) -> None:
        """Look at what a node reads."""
        self._context = context
        self._depth = 0
        self._dims: dict[str, list[Ways] | None] = {}
        self._elements: dict[str, list[Ways] | None] = {}

    def of_dims(self, name: str) -> list[Ways] | None:
        """Return the factors of a tensor's dimensions; None where its rank is not known."""
        return self._once(self._dims, name, self._find_dims)

    def of_elements(self, name: str) -> list[Ways] | None:
        """Return the factors of each element of sizes: int64 of shape [n], or one of rank 0.

        An element of which nothing is known has no ways.

        Returns:
            None where not even their number is known.
        """
        return self._once(self._elements, name, self._find_elements)

    def _once(
        self,
        known: dict[str, list[Ways] | None],
        name: str,
        find: Callable[[str], list[Ways] | None],
    ) -> list[Ways] | None:
        if name not in known:
            known[name] = None
            if self._depth < _DEPTH:
                self._depth += 1
                known[name] = find(name)
                self._depth -= 1
        return known[name]

    def _find_dims(self, name: str) -> list[Ways] | None:
        dims = dims_of(self._context, name)
        if dims is None:
            return None
        found: list[Ways] = []
        for axis, dim in enumerate(dims):
            named = dim if isinstance(dim, str) else (name, axis)
            found.append(of_number(dim) if isinstance(dim, int) else (frozenset({named}),))
        if all(isinstance(dim, int) for dim in dims):
            return found
        traced = self._traced_dims(name)
        if len(traced) != len(found):
            return found
        return [own + more for own, more in zip(found, traced, strict=True)]

    def _traced_dims(self, name: str) -> list[Ways]:
        """Return the factors of the dimensions that a Reshape or a Transpose gives; else none."""
        node = self._producer(name)
        if node is None:
            return []
        if node.op_type == "Transpose":
            data = self.of_dims(node.input[0]) or []
            axes = self._value(node, "perm", tuple(range(len(data)))[::-1])
            if axes is UNKNOWN:
                return []
            return [data[axis] for axis in axes] if sorted(axes) == sorted(range(len(data))) else []
        # Without allowzero a 0 is not the size.
        if node.op_type == "Reshape" and self._value(node, "allowzero", 0) not in (0, UNKNOWN):
            return self.of_elements(node.input[1]) or []
        return []

    def _find_elements(self, name: str) -> list[Ways] | None:
        numbers = self._context.elements(name)
        scalar = None if numbers is not None else self._context.constant(name)
        if scalar is not None and scalar.ndim == 0:
            numbers = (int(scalar),)
        if numbers is not None and None not in numbers:
            return [of_number(number) for number in numbers if number is not None]
        traced = self._traced_elements(name)
        if numbers is None:
            return traced
        if traced is None or len(traced) != len(numbers):
            traced = [()] * len(numbers)
        pairs = zip(numbers, traced, strict=True)
        return [ways if number is None else of_number(number) for number, ways in pairs]

    def _traced_elements(self, name: str) -> list[Ways] | None:
        """Return the factors of the elements that a node computes; None where it is not known."""
        node = self._producer(name)
        if node is None:
            return None
        if node.op_type == "Shape":
            return self._of_shape(node)
        given = [self.of_elements(item) for item in node.input]
        if node.op_type == "Concat":
            known = [part for part in given if part is not None]
            return [ways for part in known for ways in part] if len(known) == len(given) else None
        if not given or given[0] is None:
            return None
        if node.op_type == "Mul":
            return _products(given[0], given[1] or [])
        if node.op_type == "Gather":
            return self._gathered(given[0], node)
        return given[0] if self._leaves(node, len(given[0])) else None

    def _of_shape(self, node: NodeProto) -> list[Ways] | None:
        dims = self.of_dims(node.input[0])
        start, end = self._value(node, "start"), self._value(node, "end")
        return None if dims is None or UNKNOWN in (start, end) else dims[start:end]

    def _gathered(self, data: list[Ways], node: NodeProto) -> list[Ways] | None:
        which = self._context.constant(node.input[1])
        if which is None or which.ndim > 1:
            return None
        indices = [int(index) for index in which.reshape(-1)]
        fit = all(-len(data) <= index < len(data) for index in indices)
        return [data[index] for index in indices] if fit else None

    def _leaves(self, node: NodeProto, count: int) -> bool:
        """Return whether a node gives a list of `count` numbers, or the one number, as it is."""
        if node.op_type == "Cast":
            return bool(self._value(node, "to") == TensorProto.INT64)
        if node.op_type == "Identity":
            return True
        return count == 1 and node.op_type in ("Reshape", "Squeeze", "Unsqueeze")

    def _value(self, node: NodeProto, name: str, default: Any = None) -> Any:
        return self._context.about(node).known_value(name, default)

    def _producer(self, name: str) -> NodeProto | None:
        node = self._context.maker(name)
        return node if node is not None and node.input and is_default(node.domain) else None


def _products(first: list[Ways], second: list[Ways]) -> list[Ways] | None:
    """Return the factors of products, of lists as long as each other, or by one number."""
    if len(first) != len(second):
        if len(first) == 1:
            first = first * len(second)
        elif len(second) == 1:
            second = second * len(first)
        else:
            return None
    pairs = zip(first, second, strict=True)
    return [tuple([a | b for a in one for b in two][:_MOST_WAYS]) for one, two in pairs]
