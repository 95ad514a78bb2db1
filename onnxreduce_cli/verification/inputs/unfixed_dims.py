"""Unfixed dimensions of inputs: their keys, and the sizes that weights require."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.graph.values import Dims
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.verification.inputs.node_use import NodeUse
from onnxreduce_cli.verification.running.source import ModelSource


def dim_key(name: str, axis: int, dim: int | str | None) -> str:
    """Return the key of a dimension that is not fixed: its name, or ``input[axis]``."""
    return dim if isinstance(dim, str) else f"{name}[{axis}]"


def required_sizes(source: ModelSource, types: Mapping[str, Dims | None]) -> dict[str, int]:
    """Return the sizes of unfixed dimensions that the first weights after an input require.

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
            use = _InputUse(node, found_scopes[0], facts, len(dims or ()), index)
            for axis, size in _required(use):
                key = _open_key(name, axis, dims)
                if key is not None:
                    found.setdefault(key, size)
    return found


def _open_key(name: str, axis: int, dims: Dims | None) -> str | None:
    """Return the key of an input's dimension; None where there is none, or its size is fixed."""
    if dims is None:
        return dim_key(name, axis, None) if axis >= 0 else None
    if not -len(dims) <= axis < len(dims) or isinstance(dims[axis], int):
        return None
    return dim_key(name, axis % len(dims), dims[axis])


@dataclass(frozen=True, slots=True)
class _InputUse(NodeUse):
    """A node whose input at `index` is one of the model, of `rank` (0 where it is not known)."""

    rank: int
    index: int

    def numbers(self, name: str) -> list[int] | None:
        """Return integers from an attribute or the second input; None where neither is known."""
        found = self.attribute(name)
        if found is not None:
            return list(found.ints)
        second = self.node.input[1] if len(self.node.input) > 1 else ""
        given = self.facts.constant(self.scope, second)
        return None if given is None else [int(number) for number in given.reshape(-1).tolist()]


#: An axis of the first input, and the size that it must have.
_Required = tuple[int, int | str | None]


def _required(use: _InputUse) -> Iterator[tuple[int, int]]:
    """Yield the sizes that a node requires of its input, by axis."""
    op_type = use.node.op_type
    if op_type == "Einsum":
        yield from _einsum(use)
        return
    if use.index:
        yield from _OF_OTHERS.get((op_type, use.index), {}).items()
        return
    if op_type in _BY_NUMBERS:
        yield from _BY_NUMBERS[op_type](use)
        return
    weight = use.dims(1) if op_type in _BY_WEIGHT else ()
    if weight:
        axis, size = _BY_WEIGHT[op_type](use, weight)
        if isinstance(size, int):
            yield axis, size


def _split(use: _InputUse) -> Iterator[tuple[int, int]]:
    parts = use.numbers("split")
    if parts is None:
        yield use.integer("axis"), 2 * len(use.node.output)
    elif parts:
        yield use.integer("axis"), sum(parts)


def _squeeze(use: _InputUse) -> Iterator[tuple[int, int]]:
    yield from ((axis, 1) for axis in use.numbers("axes") or ())


def _einsum(use: _InputUse) -> Iterator[tuple[int, int]]:
    """Yield the sizes of letters that other inputs have too."""
    equation = use.attribute("equation")
    terms = equation.s.decode().replace(" ", "").split("->")[0].split(",") if equation else []
    if len(terms) != len(use.node.input) or any("." in term for term in terms):
        return
    known = {
        letter: size
        for index, term in enumerate(terms)
        for letter, size in zip(term, use.dims(index) or (), strict=False)
        if isinstance(size, int)
    }
    for axis, letter in enumerate(terms[use.index]):
        if letter in known:
            yield axis, known[letter]


def _reshape(use: _InputUse) -> Iterator[tuple[int, int]]:
    """Yield sizes with which the elements fit the shape, if that is known."""
    shape, dims = use.numbers("shape"), use.dims(0)
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


def _depth_to_space(use: _InputUse) -> Iterator[tuple[int, int]]:
    yield 1, 2 * use.integer("blocksize") ** 2


def _space_to_depth(use: _InputUse) -> Iterator[tuple[int, int]]:
    yield from ((axis, 2 * use.integer("blocksize")) for axis in (2, 3))


def _boxes(use: _InputUse) -> Iterator[tuple[int, int]]:
    yield 2, 4


def _mat_mul(use: _InputUse, weight: Dims) -> _Required:
    return use.rank - 1, weight[-2] if len(weight) > 1 else weight[0]


def _gemm(use: _InputUse, weight: Dims) -> _Required:
    axis = 0 if use.integer("transA") else use.rank - 1
    return axis, weight[-1] if use.integer("transB") else weight[0]


def _conv(use: _InputUse, weight: Dims) -> _Required:
    channels = weight[1] if len(weight) > 1 else None
    return 1, channels * use.integer("group", 1) if isinstance(channels, int) else None


def _batch_normalization(use: _InputUse, weight: Dims) -> _Required:
    return 1, weight[0]


def _broadcast(use: _InputUse, weight: Dims) -> _Required:
    return use.rank - 1, None if weight[-1] == 1 else weight[-1]


_BY_NUMBERS: dict[str, Callable[[_InputUse], Iterator[tuple[int, int]]]] = {
    "DepthToSpace": _depth_to_space,
    "NonMaxSuppression": _boxes,
    "Reshape": _reshape,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
}
#: The sizes by axis of other inputs than the first, by operator and index.
_OF_OTHERS = {("RoiAlign", 1): {1: 4}}
_BY_WEIGHT: dict[str, Callable[[_InputUse, Dims], _Required]] = {
    "Add": _broadcast,
    "BatchNormalization": _batch_normalization,
    "Conv": _conv,
    "Div": _broadcast,
    "Gemm": _gemm,
    "MatMul": _mat_mul,
    "Mul": _broadcast,
    "Sub": _broadcast,
}
