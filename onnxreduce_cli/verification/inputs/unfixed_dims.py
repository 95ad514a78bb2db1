"""Unfixed dimensions of inputs: their keys, and the sizes that weights require."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.graph.values import Dims
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.verification.inputs.node_use import NodeUse
from onnxreduce_cli.verification.running.source import ModelSource

#: The ranks of tensors whose rank is not known.
RANKS = tuple(range(6))
#: The most combinations of ranks that are looked at.
_MOST_TOGETHER = 6**3


def dim_key(name: str, axis: int, dim: int | str | None) -> str:
    """Return the key of a dimension that is not fixed: its name, or ``input[axis]``."""
    return dim if isinstance(dim, str) else f"{name}[{axis}]"


def allowed_ranks(source: ModelSource, types: Mapping[str, Dims | None]) -> list[dict[str, int]]:
    """Return the ranks that inputs of unknown rank may have together, by the nodes that read them.

    Args:
        source: the model.
        types: the dimensions of each input by name; None where the rank is not known.

    Returns:
        ranks by the names of these inputs; all the same ones where nodes allow none. Empty where
        there are no such inputs.
    """
    names = [name for name, dims in types.items() if dims is None]
    if not names:
        return []
    found_scopes = scopes(source.skeleton)
    facts = Facts(source.skeleton, found_scopes)
    readers = [node for node in source.skeleton.graph.node if {*names}.intersection(node.input)]

    def are_allowed(ranks: Mapping[str, int]) -> bool:
        return all(facts.accepts_ranks(found_scopes[0], node, ranks) for node in readers)

    single = [[rank for rank in RANKS if are_allowed({name: rank})] or RANKS for name in names]
    if math.prod(map(len, single)) > _MOST_TOGETHER:
        together = [
            tuple(min(ranks, key=lambda item, rank=rank: abs(item - rank)) for ranks in single)
            for rank in RANKS
        ]
    else:
        together = [*product(*single)]
    found = [dict(zip(names, ranks, strict=True)) for ranks in together]
    return [ranks for ranks in found if are_allowed(ranks)] or [
        dict.fromkeys(names, rank) for rank in RANKS
    ]


def required_sizes(source: ModelSource, types: Mapping[str, Dims]) -> dict[str, int]:
    """Return the sizes of unfixed dimensions that the first weights after an input require.

    Args:
        source: the model.
        types: the dimensions of each input by name.

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
            use = _InputUse(node, found_scopes[0], facts, index)
            for axis, size in _required(use):
                key = _open_key(name, axis, dims)
                if key is not None:
                    found.setdefault(key, size)
    return found


def _open_key(name: str, axis: int, dims: Dims) -> str | None:
    """Return the key of an input's dimension; None where there is none, or its size is fixed."""
    if not -len(dims) <= axis < len(dims) or isinstance(dims[axis], int):
        return None
    return dim_key(name, axis % len(dims), dims[axis])


@dataclass(frozen=True, slots=True)
class _InputUse(NodeUse):
    """A node whose input at `index` is one of the model."""

    index: int

    def numbers(self, name: str) -> list[int] | None:
        """Return integers from an attribute or the second input; None where neither is known."""
        found = self.attribute(name)
        if found is not None:
            return list(found.ints)
        second = self.node.input[1] if len(self.node.input) > 1 else ""
        given = self.facts.constant(self.scope, second)
        return None if given is None else [int(number) for number in given.reshape(-1).tolist()]


#: Axes of an input, each with the size that it must have, as far as it is known.
_Sizes = Iterator[tuple[int, int | str | None]]


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
    place, sizes = _BY_WEIGHT.get(op_type, (0, _broadcast))
    weight = use.dims(place) if place else None
    for axis, size in sizes(use, weight) if weight else ():
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


def _mat_mul(_: _InputUse, weight: Dims) -> _Sizes:
    yield -1, weight[-2] if len(weight) > 1 else weight[0]


def _gemm(use: _InputUse, weight: Dims) -> _Sizes:
    yield 0 if use.integer("transA") else -1, weight[-1] if use.integer("transB") else weight[0]


def _conv(use: _InputUse, weight: Dims) -> _Sizes:
    channels = weight[1] if len(weight) > 1 else None
    yield 1, channels * use.integer("group", 1) if isinstance(channels, int) else None


def _of_channels(_: _InputUse, weight: Dims) -> _Sizes:
    yield 1, weight[0]


def _group_normalization(use: _InputUse, weight: Dims) -> _Sizes:
    # Before opset 21 there is one scale for each group.
    groups = use.integer("num_groups", 1)
    yield 1, 2 * groups if weight[0] == groups else weight[0]


def _recurrent(_: _InputUse, weight: Dims) -> _Sizes:
    yield -1, weight[-1]


def _broadcast(_: _InputUse, weight: Dims) -> _Sizes:
    yield from ((axis, size) for axis, size in enumerate(weight, -len(weight)) if size != 1)


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
#: By operator the index of its weight, and the sizes that this requires of the first input.
_BY_WEIGHT: dict[str, tuple[int, Callable[[_InputUse, Dims], _Sizes]]] = {
    **dict.fromkeys(("Add", "Div", "Mul", "Sub"), (1, _broadcast)),
    **dict.fromkeys(("LayerNormalization", "PRelu", "RMSNormalization"), (1, _broadcast)),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), (1, _of_channels)),
    "ConvTranspose": (1, _of_channels),
    **dict.fromkeys(("Conv", "ConvInteger"), (1, _conv)),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), (1, _recurrent)),
    **dict.fromkeys(("MatMul", "MatMulInteger"), (1, _mat_mul)),
    "Gemm": (1, _gemm),
    "GroupNormalization": (1, _group_normalization),
    "QLinearConv": (3, _conv),
    "QLinearMatMul": (3, _mat_mul),
}
