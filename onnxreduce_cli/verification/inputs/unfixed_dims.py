"""Dimensions that a model leaves open: their keys, and the sizes that its weights require."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from onnx import AttributeProto, NodeProto

from onnxreduce_cli.model.scope import Scope, scopes
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.values import Dims
from onnxreduce_cli.verification.running.source import Source


def dim_key(name: str, axis: int, dim: int | str | None) -> str:
    """Return the key of a dimension that is not fixed: its name, or ``input[axis]``."""
    return dim if isinstance(dim, str) else f"{name}[{axis}]"


def required_sizes(source: Source, types: Mapping[str, Dims | None]) -> dict[str, int]:
    """The sizes of open dimensions that the weights which an input meets first require.

    Args:
        source: the model.
        types: the dimensions of each input by name; None where the rank is not known.

    Returns:
        sizes by the key of a dimension.
    """
    found_scopes = scopes(source.skeleton)
    facts = Facts(source.skeleton, found_scopes)
    same = {name: name for name in types}
    found: dict[str, int] = {}
    for node in source.skeleton.graph.node:
        if node.input and node.input[0] in same and node.op_type in ("Identity", "Cast"):
            same[node.output[0]] = same[node.input[0]]
        for index, given in enumerate(node.input):
            if given not in same:
                continue
            name = same[given]
            dims = types[name]
            reader = _Reader(node, facts, found_scopes[0], len(dims or ()), index)
            for axis, size in _required(reader):
                key = _open_key(name, axis, dims)
                if key is not None:
                    found.setdefault(key, size)
    return found


def _open_key(name: str, axis: int, dims: Dims | None) -> str | None:
    """The key of an input's dimension; None where there is none, or its size is fixed."""
    if dims is None:
        return dim_key(name, axis, None) if axis >= 0 else None
    if not -len(dims) <= axis < len(dims) or isinstance(dims[axis], int):
        return None
    return dim_key(name, axis % len(dims), dims[axis])


class _Reader(NamedTuple):
    """A node whose input at `place` is one of the model, of `rank` (0 where it is not known)."""

    node: NodeProto
    facts: Facts
    scope: Scope
    rank: int
    place: int

    def attribute(self, name: str) -> AttributeProto | None:
        return next((item for item in self.node.attribute if item.name == name), None)

    def integer(self, name: str, default: int = 0) -> int:
        found = self.attribute(name)
        return default if found is None else int(found.i)

    def numbers(self, name: str) -> list[int] | None:
        """Integers from an attribute or the second input; None where neither is known."""
        found = self.attribute(name)
        if found is not None:
            return list(found.ints)
        given = self.facts.constant(self.scope, self.second)
        return None if given is None else [int(number) for number in given.reshape(-1).tolist()]

    @property
    def second(self) -> str:
        return self.node.input[1] if len(self.node.input) > 1 else ""

    @property
    def weight(self) -> Dims:
        """The dimensions of the second input; empty where they are not known."""
        return self.dims(1) if self.second else ()

    def dims(self, index: int) -> Dims:
        """The dimensions of an input; empty where they are not known."""
        known = self.facts.type(self.scope, self.node.input[index])
        return () if known is None or known.dims is None else known.dims


#: An axis of the first input, and the size that it must have.
_Required = tuple[int, int | str | None]


def _required(reader: _Reader) -> Iterator[tuple[int, int]]:
    """The sizes that a node requires of its input, by axis."""
    op_type = reader.node.op_type
    if op_type == "Einsum":
        yield from _einsum(reader)
        return
    if reader.place:
        yield from _OF_OTHERS.get((op_type, reader.place), {}).items()
        return
    if op_type in _BY_NUMBERS:
        yield from _BY_NUMBERS[op_type](reader)
        return
    weight = reader.weight if op_type in _BY_WEIGHT else ()
    if weight:
        axis, size = _BY_WEIGHT[op_type](reader, weight)
        if isinstance(size, int):
            yield axis, size


def _split(reader: _Reader) -> Iterator[tuple[int, int]]:
    parts = reader.numbers("split")
    if parts is None:
        yield reader.integer("axis"), 2 * len(reader.node.output)
    elif parts:
        yield reader.integer("axis"), sum(parts)


def _squeeze(reader: _Reader) -> Iterator[tuple[int, int]]:
    yield from ((axis, 1) for axis in reader.numbers("axes") or ())


def _einsum(reader: _Reader) -> Iterator[tuple[int, int]]:
    """The sizes of letters that other inputs have as well."""
    equation = reader.attribute("equation")
    terms = equation.s.decode().replace(" ", "").split("->")[0].split(",") if equation else []
    if len(terms) != len(reader.node.input) or any("." in term for term in terms):
        return
    known = {
        letter: size
        for index, term in enumerate(terms)
        for letter, size in zip(term, reader.dims(index), strict=False)
        if isinstance(size, int)
    }
    for axis, letter in enumerate(terms[reader.place]):
        if letter in known:
            yield axis, known[letter]


def _reshape(reader: _Reader) -> Iterator[tuple[int, int]]:
    """Sizes with which the elements fit the shape, if that is known."""
    shape, dims = reader.numbers("shape"), reader.dims(0)
    if not shape or not dims or 0 in dims:
        return
    if len(shape) == len(dims):
        yield from ((axis, size) for axis, size in enumerate(shape) if size > 0)
        return
    wanted = math.prod(size for size in shape if size > 0)
    known = math.prod(dim for dim in dims if isinstance(dim, int))
    yield len(dims) - 1 - _first_open(dims[::-1]), wanted // math.gcd(wanted, known)


def _first_open(dims: Dims) -> int:
    return next((axis for axis, dim in enumerate(dims) if not isinstance(dim, int)), 0)


def _depth_to_space(reader: _Reader) -> Iterator[tuple[int, int]]:
    yield 1, 2 * reader.integer("blocksize") ** 2


def _space_to_depth(reader: _Reader) -> Iterator[tuple[int, int]]:
    yield from ((axis, 2 * reader.integer("blocksize")) for axis in (2, 3))


def _boxes(reader: _Reader) -> Iterator[tuple[int, int]]:
    yield 2, 4


def _mat_mul(reader: _Reader, weight: Dims) -> _Required:
    return reader.rank - 1, weight[-2] if len(weight) > 1 else weight[0]


def _gemm(reader: _Reader, weight: Dims) -> _Required:
    axis = 0 if reader.integer("transA") else reader.rank - 1
    return axis, weight[-1] if reader.integer("transB") else weight[0]


def _conv(reader: _Reader, weight: Dims) -> _Required:
    channels = weight[1] if len(weight) > 1 else None
    return 1, channels * reader.integer("group", 1) if isinstance(channels, int) else None


def _batch_normalization(reader: _Reader, weight: Dims) -> _Required:
    return 1, weight[0]


def _broadcast(reader: _Reader, weight: Dims) -> _Required:
    return reader.rank - 1, None if weight[-1] == 1 else weight[-1]


_BY_NUMBERS: dict[str, Callable[[_Reader], Iterator[tuple[int, int]]]] = {
    "DepthToSpace": _depth_to_space,
    "NonMaxSuppression": _boxes,
    "Reshape": _reshape,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
}
#: Of inputs that are not the first, by operator and index: the sizes by axis.
_OF_OTHERS = {("RoiAlign", 1): {1: 4}}
_BY_WEIGHT: dict[str, Callable[[_Reader, Dims], _Required]] = {
    "Add": _broadcast,
    "BatchNormalization": _batch_normalization,
    "Conv": _conv,
    "Div": _broadcast,
    "Gemm": _gemm,
    "MatMul": _mat_mul,
    "Mul": _broadcast,
    "Sub": _broadcast,
}
