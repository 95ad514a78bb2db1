"""Drawing inputs for a model: shapes, dtypes, ranges, value profiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, NodeProto, TensorProto, TypeProto, numpy_helper

from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.scope import Scope, scopes
from onnxreduce_cli.model.values import Dims, from_proto, numpy_dtype
from onnxreduce_cli.verification.compare import is_float
from onnxreduce_cli.verification.errors import InputError
from onnxreduce_cli.verification.ranges import Bound, bounds
from onnxreduce_cli.verification.source import Source

Array = npt.NDArray[Any]

ORDINARY, SMALL, LARGE, ZEROS, SPECIAL = "ordinary", "small", "large", "zeros", "special"

#: Special values without the largest, which overflow in what is computed in another way, and of
#: those the ones that have a place in an order: without NaN.
UNUSUAL, ORDERED = "unusual", "ordered"

#: Ordinary values, some of them the model's own constants and their neighbours: limits and what
#: is compared with something would else never be met.
NEAR = "near"

#: Value profiles in the order of the trials; with special values, the last is `SPECIAL`.
PROFILES = (ORDINARY, SMALL, LARGE, ZEROS, ORDINARY)

# ml_dtypes has no annotations.
_finfo: Any = ml_dtypes.finfo
_iinfo: Any = ml_dtypes.iinfo

_WORDS = ("", "a", "word", "Word two", "été", "日本", "0")
_ODD = (3, 5, 7)
#: Sizes tried when a model accepts none of the usual ones, such as images of a least size. 1 comes
#: after others: it is broadcast to whatever it meets, and hides what happens along its axis.
_SIZES = (2, 3, 4, 1, 8, 16, 32, 64, 128, 224)
_RANKS = (2, 3, 4, 1, 5, 0)
#: Constants of more elements are no limits.
_FEW = 1024


@dataclass(frozen=True)
class Attempt:
    """One way to choose what the model leaves open.

    Attributes:
        sizes: by the key of a dimension, its size; keys that are absent get `size`.
        size: the size of all other dimensions.
        rank: the rank of tensors whose rank is not known.
        rising: whether the dimensions of such tensors grow from `size` by one each.
        shape: the shape of tensors whose rank is not known, in place of `size` and `rank`.
        integers: None to draw integers that nothing bounds; else the one value that all hold.
    """

    sizes: Mapping[str, int]
    size: int
    rank: int = 2
    rising: bool = False
    shape: tuple[int, ...] | None = None
    integers: int | None = None


def profile(trial: int, trials: int, special: bool) -> str:
    """The value profile of one of several trials; where special values are asked for, some have."""
    if special and trial % len(PROFILES) == min(trials, len(PROFILES)) - 1:
        return SPECIAL
    return PROFILES[trial % len(PROFILES)]


class Drawer:
    """Draws inputs for one model.

    Attributes:
        dims: sizes that are fixed, by the name of a symbolic dimension or by ``input[axis]``.
        symbols: the keys of all dimensions that the model leaves open.
        open_ranks: whether it leaves a rank open.
    """

    def __init__(self, source: Source, dims: Mapping[str, int] | None = None) -> None:
        """Prepare for a model; its graph is looked at when integers are drawn first."""
        self._source = source
        self.dims = dict(dims or {})
        self._types = {name: _dense(proto) for name, proto in source.inputs.items()}
        self.symbols = list(
            dict.fromkeys(
                dim_key(name, axis, dim)
                for name, dims_ in self._types.items()
                for axis, dim in enumerate(dims_ or ())
                if not isinstance(dim, int)
            )
        )
        unknown = sorted(set(self.dims) - set(self.symbols))
        if unknown:
            known = ", ".join(self.symbols) or "none"
            raise InputError(f"no input has a dimension {unknown[0]!r}; there are: {known}")
        self.open_ranks = any(dims_ is None for dims_ in self._types.values())

    @cached_property
    def _bounds(self) -> dict[str, tuple[Bound, ...]]:
        return bounds(self._source.skeleton, self._source.inputs)

    @cached_property
    def hints(self) -> dict[str, int]:
        """Sizes that the weights an input meets first ask of its open dimensions."""
        return _hints(self._source, self._types)

    @cached_property
    def _opposite(self) -> dict[str, int]:
        """For open dimensions the size that another input has there, counted from the back."""
        found: dict[str, int] = {}
        for name, dims in self._types.items():
            for axis, dim in enumerate(dims or ()):
                place = axis - len(dims or ())
                for other in self._types.values():
                    size = other[place] if other and len(other) >= -place else None
                    if not isinstance(dim, int) and isinstance(size, int) and size > 1:
                        found.setdefault(dim_key(name, axis, dim), size)
        return found

    @cached_property
    def _fixed(self) -> list[int]:
        """Sizes that inputs have where the model says so: open dimensions may have to fit them."""
        dims = (dim for dims_ in self._types.values() for dim in dims_ or ())
        return list(dict.fromkeys(d for d in dims if isinstance(d, int) and d > 1))[:4]

    def attempts(self, trial: int, rng: np.random.Generator) -> Iterator[Attempt]:
        """The ways to choose open dimensions for one trial, the most telling first.

        Different names get different sizes of 1, 2 and an odd number, and over three trials each
        name gets all of them. A model that does not accept that gets the same size everywhere,
        then larger ones.
        """
        pool = (2, int(rng.choice(_ODD)), 1)
        open_symbols = [key for key in self.symbols if key not in self.dims]
        mixed = {key: pool[(trial + i) % 3] for i, key in enumerate(open_symbols)}
        first = Attempt({**mixed, **self.dims}, pool[trial % 3])
        yield first
        if self.hints:
            yield replace(first, sizes={**mixed, **self.hints, **self.dims})
        if self._opposite:
            yield replace(first, sizes={**mixed, **self._opposite, **self.dims})
        sizes = (pool[trial % 3], *self._fixed, *_SIZES) if open_symbols else (2,)
        for rank in _RANKS if self.open_ranks else (2,):
            for size in sizes if rank == 2 else sizes[:2]:
                same = Attempt(self.dims, size, rank)
                yield same
                if self.hints:
                    yield replace(same, sizes={**self.hints, **self.dims})
                if size >= 8:
                    # Batches stay small where images must be large.
                    leading = dict.fromkeys(open_symbols[:1], 1)
                    yield replace(same, sizes={**leading, **self.dims})
        for integers in (1, 0):
            yield replace(first, integers=integers)
            yield Attempt(self.dims, 2, integers=integers)

    def elements(self, attempt: Attempt) -> int:
        """How many elements the largest tensor has."""
        shapes = (_shape(name, dims, attempt) for name, dims in self._types.items())
        return max((math.prod(shape) for shape in shapes), default=0)

    def draw(
        self,
        attempt: Attempt,
        values: str,
        rng: np.random.Generator,
        given: Mapping[str, Any] | None = None,
        *,
        negative: bool = False,
    ) -> dict[str, Any]:
        """Inputs for one run.

        Args:
            attempt: what the model leaves open.
            values: the value profile.
            rng: where the numbers come from.
            given: inputs that are not drawn.
            negative: whether integers that nothing bounds may be negative.
        """
        sizes = dict(attempt.sizes)
        feeds: dict[str, Any] = {}
        for name in self._source.inputs:
            if given is not None and name in given:
                feeds[name] = given[name]
                self._bind(name, given[name], sizes)
        for name, proto in self._source.inputs.items():
            if name not in feeds:
                chosen = replace(attempt, sizes=sizes)
                feeds[name] = self._value(name, proto, chosen, values, rng, negative)
        return {name: feeds[name] for name in self._source.inputs}

    def _bind(self, name: str, value: Any, sizes: dict[str, int]) -> None:
        """Let the other inputs' dimensions follow those of a given one."""
        dims = self._types[name]
        if isinstance(value, np.ndarray) and dims is not None and len(dims) == value.ndim:
            for axis, (dim, size) in enumerate(zip(dims, value.shape, strict=True)):
                if not isinstance(dim, int):
                    sizes[dim_key(name, axis, dim)] = size

    def _value(
        self,
        name: str,
        proto: TypeProto,
        attempt: Attempt,
        values: str,
        rng: np.random.Generator,
        negative: bool,
    ) -> Any:
        kind = proto.WhichOneof("value")
        if kind == "optional_type":
            if values == ZEROS:
                return None
            inner = proto.optional_type.elem_type
            return self._value(name, inner, attempt, values, rng, negative)
        if kind == "sequence_type":
            inner = proto.sequence_type.elem_type
            return [self._value(name, inner, attempt, values, rng, negative) for _ in range(2)]
        if kind != "tensor_type" or not proto.tensor_type.elem_type:
            raise InputError(f"inputs of the type of {name!r} cannot be drawn; give it")
        return self._tensor(name, proto, attempt, values, rng, negative)

    def _tensor(
        self,
        name: str,
        proto: TypeProto,
        attempt: Attempt,
        values: str,
        rng: np.random.Generator,
        negative: bool,
    ) -> Array:
        shape = _shape(name, _dense(proto), attempt)
        elem_type = proto.tensor_type.elem_type
        try:
            dtype = numpy_dtype(elem_type)
        except (KeyError, TypeError) as error:
            raise InputError(f"the dtype of input {name!r} is not known") from error
        if elem_type != TensorProto.STRING and dtype.kind != "b":
            limits = self._bounds.get(name)
            if limits:
                return _bounded(shape, dtype, limits, attempt, rng)
        if attempt.integers is not None and dtype.kind in "iu":
            return np.full(shape, attempt.integers, dtype)
        if values != NEAR:
            return draw_array(shape, elem_type, values, rng, negative=negative)
        drawn = draw_array(shape, elem_type, ORDINARY, rng, negative=negative)
        return _near(drawn, self._constants, rng)

    @cached_property
    def _constants(self) -> list[Array]:
        """The model's own constants: small initializers and the attributes of its nodes."""
        graph = self._source.skeleton.graph
        found = [numpy_helper.to_array(t) for t in graph.initializer if math.prod(t.dims) <= _FEW]
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == AttributeProto.FLOAT:
                    found.append(np.array(attribute.f, np.float32))
                elif attribute.type == AttributeProto.INT:
                    found.append(np.array(attribute.i))
        return found


def _near(array: Array, constants: list[Array], rng: np.random.Generator) -> Array:
    """Put constants of the same kind, and their neighbours, among the elements of a tensor."""
    integers = array.dtype.kind in "iu"
    if not array.size or not (integers or is_float(array.dtype)):
        return array
    limits = _iinfo(array.dtype) if integers else _finfo(array.dtype)
    near = array.astype(object if integers else np.float64)
    for constant in constants:
        if (constant.dtype.kind in "iu") != integers or not constant.size:
            continue
        values = constant.astype(near.dtype)
        try:
            # Of the same shape, each beside the element that it meets.
            values = np.broadcast_to(values, near.shape)
        except ValueError:
            values = rng.choice(values.reshape(-1), near.shape)
        values = values + rng.integers(-1, 2, near.shape)
        fits = (values >= float(limits.min)) & (values <= float(limits.max))
        near = np.where(np.asarray(fits, bool) & (rng.random(near.shape) < 0.3), values, near)
    return near.astype(array.dtype)


def dim_key(name: str, axis: int, dim: int | str | None) -> str:
    """What a dimension that is not fixed goes by: its name, or its place."""
    return dim if isinstance(dim, str) else f"{name}[{axis}]"


def _dense(proto: TypeProto) -> Dims | None:
    """The dimensions of a tensor; of what else there is, none."""
    if proto.WhichOneof("value") != "tensor_type":
        return ()
    found = from_proto(proto)
    return None if found is None else found.dims


def _shape(name: str, dims: Dims | None, attempt: Attempt) -> tuple[int, ...]:
    """The shape of a tensor that is, or is in, the input `name`."""
    if dims is None and attempt.shape is not None:
        return attempt.shape
    if dims is None:
        return tuple(
            attempt.sizes.get(dim_key(name, axis, None), attempt.size + axis * attempt.rising)
            for axis in range(attempt.rank)
        )
    return tuple(
        dim if isinstance(dim, int) else attempt.sizes.get(dim_key(name, axis, dim), attempt.size)
        for axis, dim in enumerate(dims)
    )


def _bounded(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    limits: tuple[Bound, ...],
    attempt: Attempt,
    rng: np.random.Generator,
) -> Array:
    """Integers that keep to all the limits, of any numeric dtype."""
    low = max(bound.low for bound in limits)
    high = min(bound.high for bound in limits)
    for bound in limits:
        for dim in bound.dims:
            size = dim if isinstance(dim, int) else attempt.sizes.get(dim or "", 1)
            high = min(high, size if bound.inclusive else size - 1)
    high = max(low, high)
    count = math.prod(shape)
    if any(bound.unique for bound in limits) and count <= high - low + 1:
        drawn = low + rng.permutation(high - low + 1)[:count]
    else:
        drawn = rng.integers(low, high + 1, count)
    rest = [bound.rest for bound in limits if bound.rest is not None]
    if rest:
        drawn[1:] = rest[0]
    return drawn.reshape(shape).astype(dtype)


def draw_array(
    shape: tuple[int, ...],
    elem_type: int,
    values: str,
    rng: np.random.Generator,
    *,
    negative: bool = False,
) -> Array:
    """One tensor.

    Args:
        shape: its shape.
        elem_type: its `TensorProto.DataType`.
        values: the value profile: floats of ordinary size (about 1), small (1e-3), large (1e3;
            100 for those of 16 bits and 10 below), zeros, or ordinary ones with NaN, infinities,
            both zeros, denormals and the largest among them (`UNUSUAL`: all but the largest;
            `ORDERED`: all but those and NaN).
            Integers go up to 9, 1, 100 and 0, booleans are drawn in all but zeros.
        rng: where the numbers come from.
        negative: whether integers may be negative.
    """
    if elem_type == TensorProto.STRING:
        words = np.array(_WORDS, object)
        chosen: Array = words[rng.integers(0, len(words), shape)]
        return np.asarray(chosen, object).reshape(shape)
    dtype = numpy_dtype(elem_type)
    if dtype.kind == "b":
        drawn = np.asarray(rng.integers(0, 2, shape), bool)
        return np.zeros(shape, bool) if values == ZEROS else drawn
    if dtype.kind == "c":
        parts = [rng.standard_normal(shape) for _ in range(2)]
        complexes: Array = (parts[0] + 1j * parts[1]).astype(dtype)
        return np.zeros(shape, dtype) if values == ZEROS else complexes
    if is_float(dtype):
        return _floats(shape, dtype, values, rng)
    info = _iinfo(dtype)
    high = min({SMALL: 1, LARGE: 100, ZEROS: 0}.get(values, 9), int(info.max))
    low = max(-high, int(info.min)) if negative else 0
    integers = rng.integers(low, high + 1, shape)
    if values == SPECIAL and negative and integers.size:
        where = rng.random(shape) < 0.2
        integers = np.where(where, rng.choice([int(info.min), 0]), integers)
    return np.asarray(integers).astype(dtype)


def _floats(
    shape: tuple[int, ...], dtype: np.dtype[Any], values: str, rng: np.random.Generator
) -> Array:
    if values == ZEROS:
        return np.zeros(shape, dtype)
    large = {4: 1e3, 8: 1e3, 2: 1e2}.get(dtype.itemsize, 10.0)
    scale = {SMALL: 1e-3, LARGE: large}.get(values, 1.0)
    # Narrower dtypes are rounded from float32, which is cheaper to draw.
    wide: Any = np.float64 if dtype.itemsize == 8 else np.float32
    drawn = np.asarray(rng.standard_normal(shape, wide) * wide(scale))
    if dtype.itemsize == 1:
        drawn = np.clip(drawn, -large, large)
    array: Array = drawn.astype(dtype)
    if values not in (SPECIAL, UNUSUAL, ORDERED) or not array.size:
        return array
    # Not everywhere: what a NaN meets becomes NaN, and hides all the rest.
    flat = array.reshape(-1).copy()
    count = max(1, flat.size // 4)
    places = rng.permutation(flat.size)[:count]
    pool = special_values(dtype, largest=values == SPECIAL)
    if values == ORDERED:
        pool = pool[~np.isnan(pool)]
    flat[places] = pool[(rng.integers(0, len(pool)) + np.arange(count)) % len(pool)]
    return flat.reshape(shape)


def special_values(dtype: np.dtype[Any], *, largest: bool = True) -> Array:
    """NaN, infinities, both zeros, denormals and the largest, as far as a dtype has them."""
    info = _finfo(dtype)
    top, denormal = float(info.max), float(info.smallest_subnormal)
    wanted = [0.0, denormal, -0.0, -denormal]
    if dtype.itemsize > 1:
        wanted = [np.nan, 0.0, np.inf, denormal, -np.inf, -0.0, -denormal]
    if largest:
        wanted += [top, -top]
    with np.errstate(all="ignore"):
        return np.array(wanted, np.float64).astype(dtype)


def _hints(source: Source, types: Mapping[str, Dims | None]) -> dict[str, int]:
    graph = source.skeleton.graph
    found_scopes = scopes(source.skeleton)
    facts = Facts(source.skeleton, found_scopes)
    same = {name: name for name in types}
    hints: dict[str, int] = {}
    for node in graph.node:
        if not node.input or node.input[0] not in same:
            continue
        name = same[node.input[0]]
        if node.op_type in ("Identity", "Cast"):
            same[node.output[0]] = name
        dims = types[name]
        for axis, size in _asked(node, facts, found_scopes[0], len(dims or ())):
            if dims is None and axis >= 0:
                hints.setdefault(dim_key(name, axis, None), size)
            if (
                dims is not None
                and -len(dims) <= axis < len(dims)
                and not isinstance(dims[axis], int)
            ):
                hints.setdefault(dim_key(name, axis % len(dims), dims[axis]), size)
    return hints


def _asked(node: NodeProto, facts: Facts, scope: Scope, rank: int) -> Iterator[tuple[int, int]]:
    """What a node asks of its first input's dimensions: axes with sizes."""
    values = {attribute.name: attribute for attribute in node.attribute}
    axis = int(values["axis"].i) if "axis" in values else 0
    second = node.input[1] if len(node.input) > 1 else ""
    if node.op_type in ("Split", "Squeeze"):
        name = "split" if node.op_type == "Split" else "axes"
        given = facts.constant(scope, second)
        numbers = values[name].ints if name in values else () if given is None else given.tolist()
        if node.op_type == "Squeeze":
            yield from ((int(number), 1) for number in numbers)
        elif numbers:
            yield axis, int(sum(numbers))
        elif given is None:
            yield axis, 2 * len(node.output)
        return
    weight = facts.type(scope, second)
    dims = () if weight is None or weight.dims is None else weight.dims
    if not dims:
        return
    size: int | str | None = None
    axis = rank - 1
    if node.op_type == "MatMul":
        size = dims[-2] if len(dims) > 1 else dims[0]
    elif node.op_type == "Gemm":
        axis = 0 if "transA" in values and values["transA"].i else axis
        size = dims[-1] if "transB" in values and values["transB"].i else dims[0]
    elif node.op_type == "Conv" and len(dims) > 1 and isinstance(dims[1], int):
        axis, size = 1, dims[1] * (values["group"].i if "group" in values else 1)
    elif node.op_type == "BatchNormalization":
        axis, size = 1, dims[0]
    elif node.op_type in ("Add", "Sub", "Mul", "Div") and dims[-1] != 1:
        size = dims[-1]
    if isinstance(size, int):
        yield axis, size
