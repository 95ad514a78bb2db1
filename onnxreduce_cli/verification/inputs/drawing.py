"""Random inputs for a model: shapes, dtypes, ranges, value profiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, TensorProto, TypeProto, numpy_helper

from onnxreduce_cli.model.graph.values import MOST_DIMS, Dims, from_proto, numpy_dtype
from onnxreduce_cli.verification.errors import InputError
from onnxreduce_cli.verification.inputs.profiles import (
    NEAR_CONSTANTS,
    ORDINARY,
    ZEROS,
    draw_array,
    with_constants,
)
from onnxreduce_cli.verification.inputs.random_arrays import RandomArrays
from onnxreduce_cli.verification.inputs.ranges import IntegerRange, integer_ranges
from onnxreduce_cli.verification.inputs.unfixed_dims import dim_key, required_sizes
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
    """

    def __init__(self, source: ModelSource, dims: Mapping[str, int] | None = None) -> None:
        """Prepare for a model; its graph is analysed when integers are first drawn."""
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
            from difflib import get_close_matches

            near = get_close_matches(unknown[0], self.symbols, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise InputError(f"no input has a dimension {unknown[0]!r}; {hint}there are: {known}")
        self.open_ranks = any(dims_ is None for dims_ in self._types.values())

    @cached_property
    def _ranges(self) -> dict[str, tuple[IntegerRange, ...]]:
        return integer_ranges(self._source.skeleton, self._source.inputs)

    @cached_property
    def hints(self) -> dict[str, int]:
        """The sizes of unfixed dimensions that the first weights on the way require."""
        if not self.symbols and not self.open_ranks:
            return {}
        return required_sizes(self._source, self._types)

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
        if self.hints:
            yield first._replace(sizes={**mixed, **self.hints, **self.dims})
        if self._opposite:
            yield first._replace(sizes={**mixed, **self._opposite, **self.dims})
        if len(open_symbols) > 1:
            # Only the sizes that it was exported with may be accepted.
            for odd in (size for size in _ODD if size != pool[1]):
                other = {key: odd if size == pool[1] else size for key, size in mixed.items()}
                yield first._replace(sizes={**other, **self.dims})
        sizes = (pool[trial % 3], *self._fixed, *_SIZES) if open_symbols else (2,)
        for rank in _RANKS if self.open_ranks else (2,):
            for size in sizes if rank == 2 else sizes[:2]:
                same = ShapeChoice(self.dims, size, rank)
                if size >= 8:
                    # Batches, and channels, stay small where images must be large.
                    for count in (2, 1) if len(open_symbols) > 2 else (1,):
                        leading = dict.fromkeys(open_symbols[:count], 1)
                        yield same._replace(sizes={**leading, **self.hints, **self.dims})
                yield same
                if self.hints:
                    yield same._replace(sizes={**self.hints, **self.dims})
        for integers in (1, 0):
            yield first._replace(integers=integers)
            yield ShapeChoice(self.dims, 2, integers=integers)

    def elements(self, choice: ShapeChoice) -> int:
        """Return the number of elements of the largest tensor that `choice` draws."""
        shapes = (_shape(name, dims, choice) for name, dims in self._types.items())
        return max((math.prod(shape) for shape in shapes), default=0)

    def draw(
        self,
        choice: ShapeChoice,
        values: str,
        rng: RandomArrays,
        given: Mapping[str, Any] | None = None,
        *,
        negative: bool = False,
    ) -> dict[str, Any]:
        """Draw the inputs of one run.

        Args:
            choice: the sizes and ranks that the model does not fix.
            values: the value profile.
            rng: where the numbers come from.
            given: inputs that are not drawn.
            negative: whether integers without a range may be negative.
        """
        sizes = dict(choice.sizes)
        feeds: dict[str, Any] = {}
        for name in self._source.inputs:
            if given is not None and name in given:
                feeds[name] = given[name]
                self._bind(name, given[name], sizes)
        for name, proto in self._source.inputs.items():
            if name not in feeds:
                chosen = choice._replace(sizes=sizes)
                feeds[name] = self._value(name, proto, chosen, values, rng, negative)
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
        values: str,
        rng: RandomArrays,
        negative: bool,
    ) -> Any:
        kind = proto.WhichOneof("value")
        if kind == "optional_type":
            if values == ZEROS:
                return None
            inner = proto.optional_type.elem_type
            return self._value(name, inner, choice, values, rng, negative)
        if kind == "sequence_type":
            inner = proto.sequence_type.elem_type
            # Of sequences in sequences one each: their number would double with each level.
            count = 2 if inner.HasField("tensor_type") else 1
            return [self._value(name, inner, choice, values, rng, negative) for _ in range(count)]
        if kind != "tensor_type" or not proto.tensor_type.elem_type:
            raise InputError(f"inputs of the type of {name!r} cannot be drawn; give it")
        return self._tensor(name, proto, choice, values, rng, negative)

    def _tensor(
        self,
        name: str,
        proto: TypeProto,
        choice: ShapeChoice,
        values: str,
        rng: RandomArrays,
        negative: bool,
    ) -> Array:
        shape = _shape(name, _dense(proto), choice)
        reason = _no_array(shape)
        if reason is not None:
            error = InputError(f"{name!r} has {reason}")
            error.exit_code = 3  # Nobody can give it either: nothing is known.
            raise error
        elem_type = proto.tensor_type.elem_type
        try:
            dtype = numpy_dtype(elem_type)
        except (KeyError, TypeError) as error:
            raise InputError(f"the dtype of input {name!r} is not known") from error
        if elem_type != TensorProto.STRING and dtype.kind != "b":
            limits = self._ranges.get(name)
            if limits:
                return _bounded(shape, dtype, limits, choice, rng)
        if choice.integers is not None and dtype.kind in "iu":
            return np.full(shape, choice.integers, dtype)
        if values != NEAR_CONSTANTS:
            return draw_array(shape, elem_type, values, rng, negative=negative)
        drawn = draw_array(shape, elem_type, ORDINARY, rng, negative=negative)
        return with_constants(drawn, self._constants, rng)

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


def _shape(name: str, dims: Dims | None, choice: ShapeChoice) -> tuple[int, ...]:
    """Return the shape of a tensor that is, or is in, the input `name`."""
    if dims is None and choice.shape is not None:
        return choice.shape
    if dims is None:
        return tuple(
            choice.sizes.get(dim_key(name, axis, None), choice.size + axis * choice.rising)
            for axis in range(choice.rank)
        )
    return tuple(
        dim if isinstance(dim, int) else choice.sizes.get(dim_key(name, axis, dim), choice.size)
        for axis, dim in enumerate(dims)
    )


def _no_array(shape: tuple[int, ...]) -> str | None:
    """Return why NumPy has no array of a shape, even of no elements; None if it has."""
    if len(shape) > MOST_DIMS:
        return f"{len(shape)} dimensions, and an array of NumPy has {MOST_DIMS} at most"
    if 0 in shape and math.prod(filter(None, shape)) > _MOST_ELEMENTS:
        return "no elements, and other dimensions too large for an array of NumPy"
    return None


def _bounded(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    limits: tuple[IntegerRange, ...],
    choice: ShapeChoice,
    rng: RandomArrays,
) -> Array:
    """Draw integers within all the limits, in any numeric dtype."""
    low = max(bound.low for bound in limits)
    high = min(bound.high for bound in limits)
    for bound in limits:
        for dim in bound.dims:
            size = dim if isinstance(dim, int) else choice.sizes.get(dim or "", 1)
            high = min(high, size if bound.inclusive else size - 1)
    high = max(low, high)
    count = math.prod(shape)
    if any(bound.unique for bound in limits) and count <= high - low + 1:
        drawn = low + rng.permutation(high - low + 1)[:count]
    else:
        drawn = rng.integers(low, high + 1, (count,))
    rest = [bound.rest for bound in limits if bound.rest is not None]
    if rest:
        drawn[1:] = rest[0]
    return drawn.reshape(shape).astype(dtype)
