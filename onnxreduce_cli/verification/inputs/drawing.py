"""Random inputs for a model: shapes, dtypes, ranges, value profiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, TensorProto, TypeProto, numpy_helper

from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.graph.values import MOST_DIMS, Dims, from_proto, is_float, numpy_dtype
from onnxreduce_cli.text import did_you_mean, listed, quoted
from onnxreduce_cli.verification.errors import InputError
from onnxreduce_cli.verification.inputs.decisions import DecisionFinder, Decisions, words
from onnxreduce_cli.verification.inputs.profiles import (
    BY_THE_MODEL,
    DECIDING,
    ENDS,
    EXTREME,
    HALVES,
    LEVEL,
    NEAR_CONSTANTS,
    ORDINARY,
    PROFILES,
    SCALED,
    ZEROS,
    beyond,
    draw_array,
    extreme_integers,
    halves,
    next_to,
    one_next_to,
    outliers,
    scaled_rows,
    signed_integers,
    with_constants,
)
from onnxreduce_cli.verification.inputs.random_arrays import RandomArrays
from onnxreduce_cli.verification.inputs.ranges import IntegerRange, integer_ranges
from onnxreduce_cli.verification.inputs.unfixed_dims import allowed_ranks, dim_key, required_sizes
from onnxreduce_cli.verification.running.source import ModelSource

Array = npt.NDArray[Any]

_ODD = (3, 5, 7)
#: Sizes tried when a model accepts none of the usual ones, such as images of a least size. 1 comes
#: after others: it is broadcast to whatever it meets, and hides what happens along its axis.
_SIZES = (2, 3, 4, 1, 8, 16, 32, 64, 128, 224, 512)
_RANKS = (2, 3, 4, 1, 5, 0)
LARGEST = max(_SIZES)
#: NumPy counts bytes up to 2^63, of a dimension 0 as of a 1; elements have 16 at most.
_MOST_ELEMENTS = 1 << 59
#: Constants of more elements are not used as limits.
_FEW = 1024
#: Rows of inputs that have many, the most first, and the elements that they may come to.
_ROWS, _MANY_ELEMENTS = (64, 16, 8, 4), 1 << 14
#: Sizes of dimensions that indices are drawn for, so that each index may come up.
_INDEX_SIZES = (8, 16, 32, 64)
#: Elements of weights, or of one input, above which a model is large: each run takes long.
_LARGE_WEIGHTS, _LARGE_INPUT = 1 << 18, 1 << 14
#: The share of indices that count from the end, in the trials with such.
_FROM_END = 0.3
#: The most trials for what reductions of an input, or sizes, are compared with.
_MOST_LEVELS, _MOST_SIZES = 4, 4


class Manner(NamedTuple):
    """A manner of drawing values.

    Attributes:
        values: the value profile.
        rng: where the numbers come from.
        negative: whether integers without a range may be negative.
        level: of `LEVEL`, twice the place of the value; one more to be above it. Of `ENDS` 0 for
            the least integers, 1 for the largest, 2 for both.
    """

    values: str
    rng: RandomArrays
    negative: bool = False
    level: int = 0


class ShapeChoice(NamedTuple):
    """A choice of sizes and ranks that the model does not fix.

    Attributes:
        sizes: by the key of a dimension, its size; all others get `size`.
        size: the size of all other dimensions.
        rank: the rank of tensors whose rank is not known.
        rising: whether the dimensions of such tensors grow from `size` by one each.
        shape: the shape of tensors whose rank is not known, in place of `size` and `rank`.
        integers: None to draw integers without a range; else the value of all of them.
    """

    sizes: Mapping[str, int]
    size: int
    rank: int = 2
    rising: bool = False
    shape: tuple[int, ...] | None = None
    integers: int | None = None


class Drawer:
    """Draws inputs for one model.

    Attributes:
        dims: sizes that are fixed, by the name of a symbolic dimension or by ``input[axis]``.
        symbols: the keys of all unfixed dimensions.
        open_ranks: whether some rank is not known.
        stated: the ranges that the user states, by the names of inputs.
    """

    def __init__(
        self,
        source: ModelSource,
        dims: Mapping[str, int] | None = None,
        others: Sequence[ModelSource] = (),
        stated: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        """Prepare for a model; its graph is analysed when integers are first drawn.

        Args:
            source: the model.
            dims: sizes that are fixed.
            others: models that are compared with it: what they decide by is drawn too.
            stated: the ranges of integers that the user states, by the names of inputs.
        """
        self._source = source
        self._sources = (source, *others)
        self.dims = dict(dims or {})
        self.stated = {n: ends for n, ends in (stated or {}).items() if n in source.inputs}
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
            hint = did_you_mean(unknown[0], self.symbols) or ";"
            raise InputError(
                f"no input has a dimension {quoted(unknown[0])}{hint} there are: "
                f"{listed(self.symbols) or 'none'}"
            )
        self._stated_sizes = {
            key: ends
            for key, ends in (stated or {}).items()
            if key in self.symbols and key not in self.stated and key not in self.dims
        }
        self._ranks = allowed_ranks(source, self._types)
        self.open_ranks = bool(self._ranks)
        self._hints: dict[int, dict[str, int]] = {}
        self._nearest: dict[int, dict[str, int]] = {}

    @cached_property
    def _ranges(self) -> dict[str, tuple[IntegerRange, ...]]:
        return integer_ranges(self._source.skeleton, self._source.inputs)

    @cached_property
    def _finders(self) -> list[DecisionFinder]:
        return [DecisionFinder(source.skeleton) for source in self._sources]

    @cached_property
    def _decisions(self) -> dict[str, Decisions]:
        found = {name: Decisions() for name in self._source.inputs}
        for name, decisions in found.items():
            for finder in self._finders:
                decisions.merge(finder.of_input(name))
        return found

    @cached_property
    def is_large(self) -> bool:
        """Whether a run takes long, by the number of weights and the least size of inputs."""
        found = scopes(self._source.skeleton)
        tensors = [t for s in found for t in getattr(s.container, "initializer", ())]
        tensors += [a.t for s in found for n in s.nodes for a in n.attribute if a.HasField("t")]
        weights = sum(math.prod(tensor.dims) for tensor in tensors)
        return weights > _LARGE_WEIGHTS or self.elements(ShapeChoice({}, 1)) > _LARGE_INPUT

    @cached_property
    def _words(self) -> list[str]:
        found = dict.fromkeys(text for one in self._sources for text in words(one.skeleton))
        cases = (str, str.lower, str.upper, str.title)
        return list(dict.fromkeys(case(text) for case in cases for text in found))

    @property
    def levels(self) -> int:
        """How many trials are wanted for what reductions of inputs are compared with."""
        counts = (len(found.levels) for found in self._decisions.values())
        return 2 * min(_MOST_LEVELS, max(counts, default=0))

    def stated_sizes(self) -> list[ShapeChoice]:
        """Return choices at the least sizes that the user states, and at the largest."""
        if not self._stated_sizes:
            return []
        ends = [{key: item[end] for key, item in self._stated_sizes.items()} for end in (0, 1)]
        return [ShapeChoice({**sizes, **self.dims}, 2) for sizes in ends]

    def sizes(self) -> list[ShapeChoice]:
        """Return choices on both sides of the sizes that the model compares its inputs' with."""
        if not any(key not in self.dims for key in self.symbols):
            return []
        found = {size for finder in self._finders for size in finder.sizes()}
        # Smaller ones are drawn anyway.
        sizes = sorted({size for one in found for size in (one, one + 1) if size > max(_ODD)})
        return [ShapeChoice(self.dims, size) for size in sizes[:_MOST_SIZES]]

    def many_rows(self, first: ShapeChoice) -> list[ShapeChoice]:
        """Return choices with many rows in inputs whose first open dimension may be large.

        Args:
            first: the choice of all other sizes.
        """
        if self.is_large:
            return []
        leading: dict[str, None] = {}
        for name, dims in self._types.items():
            keys = [
                dim_key(name, axis, dim)
                for axis, dim in enumerate(dims or ())
                if not isinstance(dim, int)
            ]
            leading.update((key, None) for key in keys[:1] if key not in self.dims)
        if not leading:
            return []
        rows = (first._replace(sizes={**first.sizes, **dict.fromkeys(leading, n)}) for n in _ROWS)
        fitting = next((item for item in rows if self.elements(item) <= _MANY_ELEMENTS), None)
        found = [] if fitting is None else [fitting]
        for size in _INDEX_SIZES if found and any(self._ranges.values()) else ():
            same = ShapeChoice(self.dims, size)
            if self.elements(same) <= _MANY_ELEMENTS and self._all_indices(same):
                return [same, *found]
        return found

    def _all_indices(self, choice: ShapeChoice) -> bool:
        """Return whether inputs that are indices have elements for each index."""
        for name, limits in self._ranges.items():
            dims = self._types[name]
            if dims is not None and all(isinstance(dim, int) for dim in dims):
                continue
            low, high = _ends(limits, choice)
            if high - low + 1 > math.prod(self._shape(name, dims, choice)) and high - low < 1 << 12:
                return False
        return True

    def hints(self, rank: int = 2) -> dict[str, int]:
        """Return the sizes of unfixed dimensions that the first weights on the way require.

        Args:
            rank: the rank of tensors whose rank is not known.
        """
        if rank not in self._hints:
            types = {
                name: (None,) * self._rank(name, rank) if dims is None else dims
                for name, dims in self._types.items()
            }
            wanted = self.symbols or self.open_ranks
            self._hints[rank] = required_sizes(self._source, types) if wanted else {}
        return self._hints[rank]

    def _rank(self, name: str, rank: int) -> int:
        """Return the rank of an input of unknown rank: `rank`, or the nearest that is allowed."""
        if rank not in self._nearest:
            # There are none where all tensors of unknown rank are in sequences.
            self._nearest[rank] = min(
                self._ranks,
                key=lambda ranks: sum(abs(one - rank) for one in ranks.values()),
                default={},
            )
        return self._nearest[rank].get(name, rank)

    @cached_property
    def _opposite(self) -> dict[str, int]:
        """The sizes of unfixed dimensions that another input has on that axis from the back."""
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
        """The fixed sizes of inputs, which unfixed dimensions may have to fit."""
        dims = (dim for dims_ in self._types.values() for dim in dims_ or ())
        return list(dict.fromkeys(d for d in dims if isinstance(d, int) and d > 1))[:4]

    def choices(self, trial: int, rng: RandomArrays) -> Iterator[ShapeChoice]:
        """Yield the choices of unfixed dimensions for one trial, the best tests first.

        Different names get different sizes of 1, 2 and an odd number, and over three trials each
        name gets all of them. A model that does not accept that gets the same size everywhere,
        then larger ones.
        """
        pool = (2, int(rng.choice(_ODD)), 1)
        open_symbols = [key for key in self.symbols if key not in self.dims]
        mixed = {key: pool[(trial + i) % 3] for i, key in enumerate(open_symbols)}
        first = ShapeChoice({**mixed, **self.dims}, pool[trial % 3])
        yield first
        hints = self.hints()
        if hints:
            yield first._replace(sizes={**mixed, **hints, **self.dims})
        if self._opposite:
            yield first._replace(sizes={**mixed, **self._opposite, **self.dims})
        if len(open_symbols) > 1:
            # Only the sizes that it was exported with may be accepted.
            for odd in (size for size in _ODD if size != pool[1]):
                other = {key: odd if size == pool[1] else size for key, size in mixed.items()}
                yield first._replace(sizes={**other, **self.dims})
        sizes = (pool[trial % 3], *self._fixed, *_SIZES) if open_symbols else (2,)
        for rank in _RANKS if self.open_ranks else (2,):
            hints = self.hints(rank)
            for size in sizes if rank == 2 else sizes[:2]:
                same = ShapeChoice(self.dims, size, rank)
                if size >= 8:
                    # Batches, and channels, stay small where images must be large.
                    for count in (2, 1) if len(open_symbols) > 2 else (1,):
                        leading = dict.fromkeys(open_symbols[:count], 1)
                        yield same._replace(sizes={**leading, **hints, **self.dims})
                yield same
                if hints:
                    yield same._replace(sizes={**hints, **self.dims})
        for integers in (1, 0):
            yield first._replace(integers=integers)
            yield ShapeChoice(self.dims, 2, integers=integers)

    def elements(self, choice: ShapeChoice) -> int:
        """Return the number of elements of the largest tensor that `choice` draws."""
        shapes = (self._shape(name, dims, choice) for name, dims in self._types.items())
        return max((math.prod(shape) for shape in shapes), default=0)

    def draw(
        self,
        choice: ShapeChoice,
        values: str,
        rng: RandomArrays,
        given: Mapping[str, Any] | None = None,
        *,
        negative: bool = False,
        level: int = 0,
    ) -> dict[str, Any]:
        """Draw the inputs of one run.

        Args:
            choice: the sizes and ranks that the model does not fix.
            values: the value profile.
            rng: where the numbers come from.
            given: inputs that are not drawn.
            negative: whether integers without a range may be negative.
            level: of the profile `LEVEL`, twice the place of the value; one more to be above it.
        """
        manner = Manner(values, rng, negative, level)
        sizes = dict(choice.sizes)
        feeds: dict[str, Any] = {}
        for name in self._source.inputs:
            if given is not None and name in given:
                feeds[name] = given[name]
                self._bind(name, given[name], sizes)
        for name, proto in self._source.inputs.items():
            if name not in feeds:
                chosen = choice._replace(sizes=sizes)
                feeds[name] = self._value(name, proto, chosen, manner)
        return {name: feeds[name] for name in self._source.inputs}

    def _bind(self, name: str, value: Any, sizes: dict[str, int]) -> None:
        """Take the sizes of unfixed dimensions from a given input."""
        dims = self._types[name]
        if isinstance(value, np.ndarray) and dims is not None and len(dims) == value.ndim:
            for axis, (dim, size) in enumerate(zip(dims, value.shape, strict=True)):
                if not isinstance(dim, int):
                    sizes[dim_key(name, axis, dim)] = size

    def _value(
        self,
        name: str,
        proto: TypeProto,
        choice: ShapeChoice,
        manner: Manner,
    ) -> Any:
        kind = proto.WhichOneof("value")
        if kind == "optional_type":
            if manner.values == ZEROS:
                return None
            inner = proto.optional_type.elem_type
            return self._value(name, inner, choice, manner)
        if kind == "sequence_type":
            inner = proto.sequence_type.elem_type
            # Of sequences in sequences one each: their number would double with each level.
            tensors = 3 if manner.values in BY_THE_MODEL else 2
            count = tensors if inner.HasField("tensor_type") else 1
            return [self._value(name, inner, choice, manner) for _ in range(count)]
        if kind != "tensor_type" or not proto.tensor_type.elem_type:
            raise InputError(f"inputs of the type of {name!r} cannot be drawn; give it")
        if name in self.stated:
            return self._in_stated_range(name, proto, choice, manner)
        return self._tensor(name, proto, choice, manner)

    def _in_stated_range(
        self, name: str, proto: TypeProto, choice: ShapeChoice, manner: Manner
    ) -> Array:
        """Draw integers within the range that the user states, as far as the model takes them."""
        low, high = self.stated[name]
        limits = self._ranges.get(name)
        if limits:
            least, most = _ends(limits, choice)
            if all(bound.from_end for bound in limits):
                least -= most + 1
            low, high = max(low, least), min(high, most)
        if low > high or manner.values != ENDS:
            any_drawn = self._tensor(name, proto, choice, manner)
            return any_drawn if low > high else any_drawn.clip(low, high)
        shape = self._shape(name, _dense(proto), choice)
        dtype = numpy_dtype(proto.tensor_type.elem_type)
        ends = [(low, low), (high, high), (low, high)][manner.level % 3]
        which = np.asarray(manner.rng.integers(0, 2, shape))
        drawn: Array = np.array(ends, dtype)[which]
        return drawn

    def _tensor(
        self,
        name: str,
        proto: TypeProto,
        choice: ShapeChoice,
        manner: Manner,
    ) -> Array:
        shape = self._shape(name, _dense(proto), choice)
        reason = _no_array(shape)
        if reason is not None:
            error = InputError(f"{name!r} has {reason}")
            error.exit_code = 3  # Nobody can give it either: nothing is known.
            raise error
        elem_type = proto.tensor_type.elem_type
        values, rng, negative, _ = manner
        try:
            dtype = numpy_dtype(elem_type)
        except (KeyError, TypeError) as error:
            raise InputError(f"the dtype of input {name!r} is not known") from error
        if elem_type != TensorProto.STRING and dtype.kind != "b":
            limits = self._ranges.get(name)
            if limits:
                drawn, high = _bounded(shape, dtype, limits, choice, rng), _ends(limits, choice)[1]
                if values in (DECIDING, EXTREME) and all(bound.from_end for bound in limits):
                    from_end = rng.random(shape) < _FROM_END
                    drawn = np.where(from_end, drawn - (high + 1), drawn).astype(dtype)
                if values == DECIDING:
                    # Indices beyond what is indexed, which the model brings within it.
                    known = self._decisions.get(name, Decisions()).values
                    drawn = next_to(drawn, [v for v in known if np.max(v) >= high], rng)
                return drawn
        if choice.integers is not None and dtype.kind in "iu":
            return np.full(shape, choice.integers, dtype)
        if values in BY_THE_MODEL:
            return self._by_the_model(name, shape, elem_type, manner)
        if values != NEAR_CONSTANTS:
            return draw_array(shape, elem_type, values, rng, negative=negative)
        drawn = draw_array(shape, elem_type, ORDINARY, rng, negative=negative)
        return with_constants(drawn, self._constants, rng)

    def _shape(self, name: str, dims: Dims | None, choice: ShapeChoice) -> tuple[int, ...]:
        """Return the shape of a tensor that is, or is in, the input `name`."""
        shape = choice.shape
        if dims is None and shape is not None and self._rank(name, len(shape)) == len(shape):
            return shape
        if dims is None:
            return tuple(
                choice.sizes.get(dim_key(name, axis, None), choice.size + axis * choice.rising)
                for axis in range(self._rank(name, choice.rank))
            )
        return tuple(
            dim if isinstance(dim, int) else choice.sizes.get(dim_key(name, axis, dim), choice.size)
            for axis, dim in enumerate(dims)
        )

    def _by_the_model(
        self, name: str, shape: tuple[int, ...], elem_type: int, manner: Manner
    ) -> Array:
        """Draw a tensor whose values depend on what the model does with it."""
        values, rng = manner.values, manner.rng
        ordinary = draw_array(shape, elem_type, ORDINARY, rng)
        if elem_type == TensorProto.STRING:
            if self._words and ordinary.size == 1 and values in PROFILES:
                chosen = self._words[PROFILES.index(values) % len(self._words)]
                ordinary = np.full(shape, chosen, object)
            elif self._words:
                known = np.array(self._words, object)[rng.integers(0, len(self._words), shape)]
                ordinary = np.where(rng.random(shape) < 0.6, known, ordinary)
            return np.asarray(ordinary, object).reshape(shape)
        dtype, found = ordinary.dtype, self._decisions.get(name, Decisions())
        if dtype.kind in "bc":
            return np.ones_like(ordinary) if values == EXTREME else ordinary
        if values == LEVEL and found.levels:
            place, above = divmod(manner.level, 2)
            level = found.levels[place % len(found.levels)]
            return beyond(shape, dtype, level, bool(above), rng)
        if ordinary.size == 1 and found.values and values in PROFILES:
            # As there is one element, each trial has one of the values, or is next to it.
            return one_next_to(ordinary, found.values, PROFILES.index(values))
        if dtype.kind in "iu":
            return self._integers(ordinary, found, values, rng)
        if values == DECIDING:
            return next_to(ordinary, found.values, rng)
        if values == SCALED and name != self._widest:
            return np.asarray(rng.integers(0, 2, shape)).astype(dtype)  # As masks are.
        draw = {HALVES: halves, EXTREME: outliers, SCALED: scaled_rows}.get(values)
        return ordinary if draw is None else draw(shape, dtype, rng)

    @staticmethod
    def _integers(ordinary: Array, found: Decisions, values: str, rng: RandomArrays) -> Array:
        """Draw integers that the model bounds by no range."""
        drawn, known = ordinary, found.values
        if found.any_integer and values == EXTREME:
            return extreme_integers(ordinary.shape, ordinary.dtype, rng)
        if found.signed:
            drawn = signed_integers(ordinary.shape, ordinary.dtype, rng)
        else:
            known = [value for value in known if np.min(value) >= 1]
        return next_to(drawn, known, rng) if values == DECIDING else drawn

    @cached_property
    def _widest(self) -> str:
        """The first input of floats with the most dimensions."""
        floats = [
            name
            for name, proto in self._source.inputs.items()
            if proto.HasField("tensor_type")
            and proto.tensor_type.elem_type not in (0, TensorProto.STRING)
            and is_float(numpy_dtype(proto.tensor_type.elem_type))
        ]
        return max(floats, key=lambda name: len(self._types[name] or ()), default="")

    @cached_property
    def _constants(self) -> list[Array]:
        """The model's own constants: small initializers and the attributes of its nodes."""
        graph = self._source.skeleton.graph
        few = [t for t in graph.initializer if math.prod(t.dims) <= _FEW]
        found = [numpy_helper.to_array(t) for t in few if len(t.dims) <= MOST_DIMS]
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == AttributeProto.FLOAT:
                    found.append(np.array(attribute.f, np.float32))
                elif attribute.type == AttributeProto.INT:
                    found.append(np.array(attribute.i))
        return found


def _dense(proto: TypeProto) -> Dims | None:
    """Return the dimensions of a tensor, None if unknown; () for other types."""
    if proto.WhichOneof("value") != "tensor_type":
        return ()
    found = from_proto(proto)
    return None if found is None else found.dims


def _no_array(shape: tuple[int, ...]) -> str | None:
    """Return why NumPy has no array of a shape, even of no elements; None if it has."""
    if len(shape) > MOST_DIMS:
        return f"{len(shape)} dimensions, and an array of NumPy has {MOST_DIMS} at most"
    if 0 in shape and math.prod(filter(None, shape)) > _MOST_ELEMENTS:
        return "no elements, and other dimensions too large for an array of NumPy"
    return None


def _ends(limits: tuple[IntegerRange, ...], choice: ShapeChoice) -> tuple[int, int]:
    """Return the least and the largest integer within all the limits."""
    low = max(bound.low for bound in limits)
    high = min(bound.high for bound in limits)
    for bound in limits:
        for dim in bound.dims:
            size = dim if isinstance(dim, int) else choice.sizes.get(dim or "", 1)
            high = min(high, size if bound.inclusive else size - 1)
    return low, max(low, high)


def _bounded(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    limits: tuple[IntegerRange, ...],
    choice: ShapeChoice,
    rng: RandomArrays,
) -> Array:
    """Draw integers within all the limits, in any numeric dtype."""
    low, high = _ends(limits, choice)
    count = math.prod(shape)
    if any(bound.unique for bound in limits) and count <= high - low + 1:
        drawn = low + rng.permutation(high - low + 1)[:count]
    elif low == 0 and count > high:
        # Each index at least once; counts have no 0.
        more = rng.integers(low, high + 1, (count - (high - low + 1),))
        drawn = np.concatenate([np.arange(low, high + 1), more])[rng.permutation(count)]
    else:
        drawn = rng.integers(low, high + 1, (count,))
    rest = [bound.rest for bound in limits if bound.rest is not None]
    if rest:
        drawn[1:] = rest[0]
    return drawn.reshape(shape).astype(dtype)
