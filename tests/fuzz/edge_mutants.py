"""Each kind of node with an attribute, or an input's type, at an edge of what is allowed."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from onnx import AttributeProto, ModelProto, TypeProto

from tests.fuzz.mutants import Mutant, seeds

#: Larger seeds have no other kinds of nodes.
_MOST_NODES = 40
_OPSETS = (8, 12, 15, 20)

#: Where an attribute of a kind has its value.
_FIELDS = {
    AttributeProto.INT: "i",
    AttributeProto.FLOAT: "f",
    AttributeProto.STRING: "s",
    AttributeProto.INTS: "ints",
    AttributeProto.FLOATS: "floats",
}

_INTS = (0, 1, -1, 2, 7, -9, 1 << 31)
_FLOATS = (0.0, -1.0, math.nan, math.inf, 1e-30)
_STRINGS = (b"", b"zzz")


class _Edge(NamedTuple):
    """An attribute or an input of a seed, and what it becomes.

    Attributes:
        seed: the seed, serialised.
        node: the number of the node; None for an input of the graph.
        place: which attribute of the node, or which input.
        value: the attribute's value, or the input's type.
        checked: whether its nodes are run: before and after may do what neither is defined for.
    """

    seed: bytes
    node: int | None
    place: int
    value: Any
    checked: bool = False

    def content(self) -> bytes:
        """The model that it makes."""
        model = ModelProto.FromString(self.seed)
        if self.node is None:
            model.graph.input[self.place].type.CopyFrom(self.value)
        else:
            _set(model.graph.node[self.node].attribute[self.place], self.value)
        content: bytes = model.SerializeToString()
        return content


def edge_mutant(number: int) -> Mutant:
    """The mutant of a number, of `count` ones."""
    edge, opset = divmod(number, len(_OPSETS))
    found = _edges()[edge]
    arguments = ["--opset", str(_OPSETS[opset]), "--emulate"]
    if not found.checked:
        arguments.append("--no-check")
    return Mutant(found.content(), "convert", tuple(arguments))


def count() -> int:
    """How many there are."""
    return len(_edges()) * len(_OPSETS)


@functools.cache
def _edges() -> list[_Edge]:
    found: list[_Edge] = []
    done = set[Any]()
    for seed in (seed for kind in seeds() for seed in kind):
        model = ModelProto.FromString(seed)
        if len(model.graph.node) > _MOST_NODES:
            continue
        imports = sorted((entry.domain, entry.version) for entry in model.opset_import)
        for number, node in enumerate(model.graph.node):
            names = [item.name for item in node.attribute]
            for place, attribute in enumerate(node.attribute):
                key = (node.op_type, attribute.name, *imports, len(node.input), *sorted(names))
                if key not in done:
                    done.add(key)
                    found += [_Edge(seed, number, place, value) for value in _values(attribute)]
        found += [
            _Edge(seed, None, place, value)
            for place, item in enumerate(model.graph.input)
            for value in _types(item.type)
        ]
        operators = tuple(node.op_type for node in model.graph.node)
        for place, item in enumerate(model.graph.input):
            key = (operators, *imports, place, len(item.type.tensor_type.shape.dim))
            if key not in done:
                done.add(key)
                found += [
                    _Edge(seed, None, place, value, checked=True)
                    for value in _other_shapes(item.type)
                ]
    return found


def _values(attribute: AttributeProto) -> Iterator[Any]:
    """The values that it may get."""
    if attribute.type == AttributeProto.INT:
        yield from _INTS
    elif attribute.type == AttributeProto.FLOAT:
        yield from _FLOATS
    elif attribute.type == AttributeProto.STRING:
        yield from _STRINGS
    elif attribute.type == AttributeProto.INTS:
        own, size = list(attribute.ints), len(attribute.ints)
        yield from ([], [0], [-1], [1], [0, 0], [*own, 1], own[:-1])
        yield from ([value] * size for value in (0, -3, 9, 1 << 40))
    elif attribute.type == AttributeProto.FLOATS:
        size = len(attribute.floats)
        yield from ([], [0.0], [-1.0] * size, [math.nan] * size)


def _set(attribute: AttributeProto, value: Any) -> None:
    field = _FIELDS[attribute.type]
    if isinstance(value, list):
        attribute.ClearField(field)  # type: ignore[arg-type]
        getattr(attribute, field).extend(value)
    else:
        setattr(attribute, field, value)


def _types(known: TypeProto) -> Iterator[TypeProto]:
    """Types that say less: nothing, no dtype, no shape."""
    yield TypeProto()
    kind = known.WhichOneof("value")
    if kind == "tensor_type":
        for field in ("elem_type", "shape"):
            less = TypeProto()
            less.CopyFrom(known)
            less.tensor_type.ClearField(field)  # type: ignore[arg-type]
            yield less
    elif kind in ("sequence_type", "optional_type"):
        for inner in _types(getattr(known, kind).elem_type):
            less = TypeProto()
            getattr(less, kind).elem_type.CopyFrom(inner)
            yield less


def _other_shapes(known: TypeProto) -> Iterator[TypeProto]:
    """The same with other shapes, most of as many elements; none where not all sizes are known."""
    dims = known.tensor_type.shape.dim
    if not known.tensor_type.HasField("shape") or not all(dim.dim_value for dim in dims):
        return
    own = tuple(dim.dim_value for dim in dims)
    for shape in dict.fromkeys(_reshaped(own)):
        if shape != own:
            other = TypeProto()
            other.CopyFrom(known)
            other.tensor_type.ClearField("shape")
            other.tensor_type.shape.SetInParent()
            for size in shape:
                other.tensor_type.shape.dim.add(dim_value=size)
            yield other


def _reshaped(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Sizes in another order, of one dimension more or less, and halves that go to a neighbour."""
    yield shape[::-1]
    yield (1, *shape)
    yield (2 * shape[0], *shape[1:]) if shape else (2,)
    if shape[:1] == (1,):
        yield shape[1:]
    if len(shape) > 1:
        yield (shape[1], shape[0], *shape[2:])
        yield (*shape[:-2], shape[-1], shape[-2])
        yield (shape[0] * shape[1], *shape[2:])
    for at, size in enumerate(shape):
        for beside in (at - 1, at + 1):
            if size % 2 == 0 and 0 <= beside < len(shape):
                sizes = list(shape)
                sizes[at], sizes[beside] = size // 2, 2 * sizes[beside]
                yield tuple(sizes)
