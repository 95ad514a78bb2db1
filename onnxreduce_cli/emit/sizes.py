"""Formulas over numbers that are known at conversion, or else only when the model runs.

Written once, a formula gives a constant where all that it is made of is known, and nodes otherwise:
when something reads its name, so that what nobody reads is never emitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit import numbers as births
from onnxreduce_cli.emit.casts import INTEGERS, cast
from onnxreduce_cli.emit.context import Array, Context
from onnxreduce_cli.emit.numbers import MOST_WRITTEN, Later, Number
from onnxreduce_cli.model.values import numpy_dtype


@dataclass(frozen=True)
class Term:
    """A tensor in a formula.

    Attributes:
        context: where nodes are emitted.
        value: the numbers, or the tensor that holds them when the model runs.
        elem_type: its `TensorProto.DataType`.
    """

    context: Context
    value: Array | Later | str
    elem_type: int

    @property
    def known(self) -> Array | None:
        """The numbers, if they are known."""
        return None if isinstance(self.value, (Later, str)) else self.value

    @property
    def name(self) -> str:
        """The name of the tensor, which becomes a constant if it is known."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, Later):
            return self.value.name
        return self.context.array(self.value, "number")

    def __add__(self, other: Term | float) -> Term:
        """The sums."""
        return self._with("Add", np.add, other)

    def __sub__(self, other: Term | float) -> Term:
        """The differences."""
        return self._with("Sub", np.subtract, other)

    def __mul__(self, other: Term | float) -> Term:
        """The products."""
        return self._with("Mul", np.multiply, other)

    def __truediv__(self, other: Term | float) -> Term:
        """The quotient; of integers, which must not be negative, what is whole of it."""
        whole = self.elem_type in INTEGERS
        return self._with("Div", np.floor_divide if whole else np.divide, other)

    def floor(self) -> Term:
        """The highest whole numbers that are not above."""
        return self._with("Floor", np.floor)

    def ceil(self) -> Term:
        """The lowest whole numbers that are not below."""
        return self._with("Ceil", np.ceil)

    def round(self) -> Term:
        """The nearest whole numbers, the even one of two."""
        return self._with("Round", np.rint)

    def abs(self) -> Term:
        """The numbers without their signs."""
        return self._with("Abs", np.absolute)

    def relu(self) -> Term:
        """The numbers, or 0 where they are negative."""
        return self._with("Relu", lambda numbers: np.maximum(numbers, 0))

    def least(self, other: Term | float) -> Term:
        """The lower of two finite numbers."""
        if self._must_repeat(other):
            return self - (self - other).relu()
        return self._with("Min", np.minimum, other)

    def most(self, other: Term | float) -> Term:
        """The higher of two finite numbers."""
        if self._must_repeat(other):
            return self + (self * -1 + other).relu()
        return self._with("Max", np.maximum, other)

    def _must_repeat(self, other: Term | float) -> bool:
        """Whether the shapes must be the same, as for Max before opset 8, and may differ."""
        if self.context.target_opset >= 8 or not isinstance(other, Term):
            return False
        return self.known is None and other.known is None

    def less(self, other: Term | float) -> Term:
        """Whether they are less: booleans."""
        return self._with("Less", np.less, other, elem_type=TensorProto.BOOL)

    def greater(self, other: Term | float) -> Term:
        """Whether they are greater: booleans."""
        return self._with("Greater", np.greater, other, elem_type=TensorProto.BOOL)

    def __or__(self, other: Term) -> Term:
        """Whether either holds."""
        return self._with("Or", np.logical_or, other)

    def __and__(self, other: Term) -> Term:
        """Whether both hold."""
        return self._with("And", np.logical_and, other)

    def negated(self) -> Term:
        """The opposite booleans."""
        return self._with("Not", np.logical_not)

    def within(self, low: Term | float, high: Term | float) -> Term:
        """The numbers, or the end that they are beyond."""
        return self.least(high).most(low)

    def cast(self, elem_type: int) -> Term:
        """The numbers in another dtype."""
        if elem_type == self.elem_type:
            return self
        if self.known is None:
            return self._later(lambda: cast(self.context, self.name, elem_type), elem_type)
        with np.errstate(invalid="ignore"):
            return Term(self.context, self.known.astype(numpy_dtype(elem_type)), elem_type)

    def at(self, index: int, axis: int = 0) -> Term:
        """The slice at `index`, with one dimension less."""
        if self.known is None:
            which = self.context.scalar(index, "which")
            return self._later(lambda: self.context.op.Gather(self.name, which, axis=axis))
        return Term(self.context, self.known.take(index, axis), self.elem_type)

    def shaped(self, *dims: int) -> Term:
        """The same numbers in another shape; one dimension may be -1, 0 leaves one as it is."""
        if self.known is None:
            shape = self.context.array(list(dims), "shape")
            return self._later(lambda: self.context.op.Reshape(self.name, shape))
        kept = [self.known.shape[at] if dim == 0 else dim for at, dim in enumerate(dims)]
        return Term(self.context, self.known.reshape(kept), self.elem_type)

    def sum(self, axis: int) -> Term:
        """The sums along an axis, which is kept."""
        if self.known is None:
            return self._later(
                lambda: births.reduced(self.context, "ReduceSum", self.name, [axis], keep=True)
            )
        total = self.known.sum(axis=axis, keepdims=True, dtype=self.known.dtype)
        return Term(self.context, total, self.elem_type)

    def _later(self, write: Callable[[], str], elem_type: int | None = None) -> Term:
        return Term(self.context, Later(write), elem_type or self.elem_type)

    def _with(
        self,
        op_type: str,
        compute: Callable[..., Any],
        *others: Term | float,
        elem_type: int | None = None,
    ) -> Term:
        dtype = numpy_dtype(self.elem_type)
        terms = [self]
        for other in others:
            if not isinstance(other, Term):
                other = Term(self.context, np.array(other, dtype), self.elem_type)
            terms.append(other)
        given = self.elem_type if elem_type is None else elem_type
        known = [term.known for term in terms if term.known is not None]
        if len(known) == len(terms) and np.broadcast(*known).size <= MOST_WRITTEN:
            with np.errstate(all="ignore"):
                return Term(self.context, np.asarray(compute(*known)), given)
        return self._later(
            lambda: self.context.op.emit(op_type, *[term.name for term in terms]), given
        )


def term(context: Context, value: Any, elem_type: int) -> Term:
    """Known numbers as a term."""
    return Term(context, np.array(value).astype(numpy_dtype(elem_type)), elem_type)


def scalar(context: Context, number: Number) -> Term:
    """A number as an int64 of rank 0."""
    if isinstance(number, int):
        return term(context, number, TensorProto.INT64)
    size = Later(lambda: births.squeezed(context, births.as_name(context, number), [0]))
    return Term(context, size, TensorProto.INT64)


def length_of(context: Context, name: str, axis: int, elem_type: int) -> Term:
    """The length of one of a tensor's axes, of rank 0."""
    return scalar(context, births.size_of(context, name, axis)).cast(elem_type)


def counted(count: Term, elem_type: int) -> Term:
    """The numbers from 0 up to `count`, an int64 of rank 0."""
    context, known = count.context, count.known
    if known is not None and known <= MOST_WRITTEN:
        return term(context, np.arange(int(known)), elem_type)

    def write() -> str:
        number = int(known) if known is not None else births.unsqueezed(context, count.name, [0])
        return births.arange(context, number)

    return Term(context, Later(write), TensorProto.INT64).cast(elem_type)
