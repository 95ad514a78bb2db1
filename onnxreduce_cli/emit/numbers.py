"""Formulas over numbers and tensors that are known at conversion, or at run time only.

A formula is written once, over Python's ints and over terms: ``(size + 1) // 2 * stride``. Its
result is a constant if all operands are known. Otherwise nodes are emitted when its name is first
read, so that unread results never are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, squeezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context, as_array
from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.emit.node_facts import Array
from onnxreduce_cli.model.graph.values import numpy_dtype

#: Up to how many elements constants are written into a model; larger ones are computed by nodes.
LARGEST_CONSTANT = 1 << 20


def is_small(*sizes: float, most: int = LARGEST_CONSTANT) -> bool:
    """Return whether an array of some sizes may be made at conversion.

    Where one of them is 0, arrays of each of the others are made all the same.
    """
    return math.prod(max(size, 1) for size in sizes) <= most


class LazyTensor:
    """A tensor that is emitted once, when its name is first read.

    Its dtype need not be known, unlike that of a `Term`.
    """

    def __init__(self, write: Callable[[], str]) -> None:
        self._write = write

    @cached_property
    def name(self) -> str:
        """Its name."""
        return self._write()


@dataclass(frozen=True, slots=True)
class Term:
    """A tensor in a formula, known at conversion or computed by nodes.

    Operators broadcast as NumPy's do, and keep the dtype unless they say otherwise.

    Attributes:
        context: the context that nodes are emitted into.
        value: the numbers if they are known, else the tensor that holds them at run time.
        elem_type: its `TensorProto.DataType`.
        is_sizes: whether it is int64 of shape [1] or [n], not a scalar, as Slice, Reshape and Tile
            take sizes. Numbers combined with it get shape [1] then, and adding 0 or multiplying by
            1 emits nothing.
    """

    context: Context
    value: Array | LazyTensor | str
    elem_type: int
    is_sizes: bool = False

    @property
    def known(self) -> Array | None:
        """The numbers, if they are known at conversion."""
        return None if isinstance(self.value, (LazyTensor, str)) else self.value

    @property
    def name(self) -> str:
        """The name of the tensor, which becomes a constant if it is known."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, LazyTensor):
            return self.value.name
        return self.context.array(self.value, "number")

    def __add__(self, other: Term | float) -> Term:
        """Return the sums."""
        return self if self._leaves(other, 0) else self._with("Add", np.add, other)

    def __radd__(self, other: float) -> Term:
        """Return the sums."""
        return self if self._leaves(other, 0) else self._beside(other) + self

    def __sub__(self, other: Term | float) -> Term:
        """Return the differences."""
        return self if self._leaves(other, 0) else self._with("Sub", np.subtract, other)

    def __rsub__(self, other: float) -> Term:
        """Return the differences."""
        return self._beside(other) - self

    def __mul__(self, other: Term | float) -> Term:
        """Return the products."""
        return self if self._leaves(other, 1) else self._with("Mul", np.multiply, other)

    def __rmul__(self, other: float) -> Term:
        """Return the products."""
        return self if self._leaves(other, 1) else self._beside(other) * self

    def __truediv__(self, other: Term | float) -> Term:
        """Return the quotients; of integers, which must not be negative, rounded down."""
        whole = self.elem_type in INTEGERS
        return self._with("Div", np.floor_divide if whole else np.divide, other)

    def __floordiv__(self, other: Term | float) -> Term:
        """Return the quotients of integers, which must not be negative, rounded down."""
        return self if self._leaves(other, 1) else self._with("Div", np.floor_divide, other)

    def __rfloordiv__(self, other: float) -> Term:
        """Return the quotients of integers, which must not be negative, rounded down."""
        return self._beside(other) // self

    def floor(self) -> Term:
        """Return the numbers rounded down."""
        return self._with("Floor", np.floor)

    def ceil(self) -> Term:
        """Return the numbers rounded up."""
        return self._with("Ceil", np.ceil)

    def round(self) -> Term:
        """Return the numbers rounded to the nearest integers, halves to even ones."""
        return self._with("Round", np.rint)

    def abs(self) -> Term:
        """Return the numbers without their signs."""
        return self._with("Abs", np.absolute)

    def relu(self) -> Term:
        """Return the numbers, or 0 where they are negative."""
        return self._with("Relu", lambda numbers: np.maximum(numbers, 0))

    def least(self, other: Term | float) -> Term:
        """Return the lower of two finite numbers."""
        if self._must_repeat(other):
            return self - (self - other).relu()
        return self._with("Min", np.minimum, other)

    def most(self, other: Term | float) -> Term:
        """Return the higher of two finite numbers."""
        if self._must_repeat(other):
            return self + (self * -1 + other).relu()
        return self._with("Max", np.maximum, other)

    def _must_repeat(self, other: Term | float) -> bool:
        """Return whether shapes may differ but must not, as for Max before opset 8."""
        if self.context.reaches(8) or not isinstance(other, Term):
            return False
        return self.known is None and other.known is None

    def less(self, other: Term | float) -> Term:
        """Return booleans: whether each number is less."""
        return self._with("Less", np.less, other, elem_type=TensorProto.BOOL)

    def greater(self, other: Term | float) -> Term:
        """Return booleans: whether each number is greater."""
        return self._with("Greater", np.greater, other, elem_type=TensorProto.BOOL)

    def __or__(self, other: Term) -> Term:
        """Return booleans: whether either is true."""
        return self._with("Or", np.logical_or, other)

    def __and__(self, other: Term) -> Term:
        """Return booleans: whether both are true."""
        return self._with("And", np.logical_and, other)

    def negated(self) -> Term:
        """Return the opposite booleans."""
        return self._with("Not", np.logical_not)

    def within(self, low: Term | float, high: Term | float) -> Term:
        """Return the numbers clipped to a range."""
        return self.least(high).most(low)

    def cast(self, elem_type: int) -> Term:
        """Return the numbers in another dtype."""
        if elem_type == self.elem_type:
            return self
        if self.known is None:
            return self._later(lambda: cast(self.context, self.name, elem_type), elem_type)
        with np.errstate(invalid="ignore"):
            return Term(self.context, self.known.astype(numpy_dtype(elem_type)), elem_type)

    def at(self, index: int, axis: int = 0) -> Term:
        """Return the slice at `index`, with one dimension less."""
        if self.known is None:
            which = self.context.scalar(index, "which")
            return self._later(lambda: self.context.op.Gather(self.name, which, axis=axis))
        return Term(self.context, self.known.take(index, axis), self.elem_type)

    def shaped(self, *dims: int) -> Term:
        """Return the numbers in another shape; as for Reshape, it may have one -1, and zeros."""
        if self.known is None:
            shape = self.context.array(list(dims), "shape")
            return self._later(lambda: self.context.op.Reshape(self.name, shape))
        kept = [self.known.shape[at] if dim == 0 else dim for at, dim in enumerate(dims)]
        return Term(self.context, self.known.reshape(kept), self.elem_type)

    def sum(self, axis: int) -> Term:
        """Return the sums along an axis, which stays with size 1."""
        if self.known is None:
            return self._later(
                lambda: reduced(self.context, "ReduceSum", self.name, [axis], keep=True)
            )
        total = self.known.sum(axis=axis, keepdims=True, dtype=self.known.dtype)
        return Term(self.context, total, self.elem_type)

    def of_rank_0(self) -> Term:
        """Return a size as an int64 scalar."""
        return Term(
            self.context, LazyTensor(lambda: squeezed(self.context, self.name, [0])), self.elem_type
        )

    def _leaves(self, other: Term | float, neutral: int) -> bool:
        """Return whether `other` is a number that leaves sizes as they are."""
        return self.is_sizes and not isinstance(other, Term) and other == neutral

    def _beside(self, number: float) -> Term:
        """Return a number in the same dtype, of shape [1] for sizes, else a scalar."""
        array = as_array([number] if self.is_sizes else number, numpy_dtype(self.elem_type))
        return Term(self.context, array, self.elem_type, self.is_sizes)

    def _later(self, write: Callable[[], str], elem_type: int | None = None) -> Term:
        return Term(self.context, LazyTensor(write), elem_type or self.elem_type, self.is_sizes)

    def _with(
        self,
        op_type: str,
        compute: Callable[..., Any],
        *others: Term | float,
        elem_type: int | None = None,
    ) -> Term:
        terms = [self]
        terms += [other if isinstance(other, Term) else self._beside(other) for other in others]
        given = self.elem_type if elem_type is None else elem_type
        known = [term.known for term in terms if term.known is not None]
        if len(known) == len(terms) and np.broadcast(*known).size <= LARGEST_CONSTANT:
            with np.errstate(all="ignore"):
                return Term(self.context, np.asarray(compute(*known)), given, self.is_sizes)
        return self._later(
            lambda: self.context.op.emit(op_type, *[term.name for term in terms]), given
        )


#: A size or another integer: an int if it is known at conversion, else an int64 term of shape [1]
#: or [n].
Number = int | Term


def term(context: Context, value: Any, elem_type: int) -> Term:
    """Return known numbers as a term of their shape and the dtype `elem_type`."""
    return Term(context, as_array(value, numpy_dtype(elem_type)), elem_type)


def sizes(context: Context, value: str | Callable[[], str]) -> Term:
    """Return an int64 tensor of shape [1] or [n], or a function that emits one, as a term."""
    tensor = value if isinstance(value, str) else LazyTensor(value)
    return Term(context, tensor, TensorProto.INT64, is_sizes=True)


def as_name(context: Context, number: Number) -> str:
    """Return the name of an int64 tensor with a number, of shape [1] or the term's own, [n]."""
    if isinstance(number, int):
        return context.array([number], "number")
    return number.name


def as_shape(context: Context, dims: Sequence[Number]) -> Value:
    """Return dimensions concatenated to a shape, int64 of shape [rank]."""
    known = [dim for dim in dims if isinstance(dim, int)]
    if len(known) == len(dims):
        return context.array(known, "shape")
    return context.op.Concat(*[as_name(context, dim) for dim in dims], axis=0)


def at_least_zero(context: Context, number: Number) -> Number:
    """Return a number, or 0 where it is negative."""
    if isinstance(number, int):
        return max(0, number)

    def write() -> Value:
        op = context.op
        zero, name = context.array([0], "zero"), as_name(context, number)
        return op.Where(op.Less(name, zero), zero, name)

    return sizes(context, write)


def scalar(context: Context, number: Number) -> Term:
    """Return a number as an int64 scalar term."""
    if isinstance(number, int):
        return term(context, number, TensorProto.INT64)
    return number.of_rank_0()
