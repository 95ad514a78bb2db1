"""The interface with which definitions of idioms are written."""

from __future__ import annotations

from abc import ABC, abstractmethod

from onnxreduce_cli.emit.builder import Operators, Value


class Writer(ABC):
    """Writes an idiom into a model, or as a pattern to search for.

    Attributes:
        op: the operators to write with.
    """

    op: Operators

    @abstractmethod
    def number(self, value: float | str, default: float | None = None) -> Value:
        """Return a constant of rank 0 in the dtype that the idiom computes in.

        Args:
            value: the number, or the name of the composite operator's attribute that holds it.
            default: the value of that attribute where it is absent.
        """

    @abstractmethod
    def reduced(self, op_type: str, data: str, *, keep: bool = True) -> str:
        """Return ``op_type(data)`` over the axes of the composite operator.

        Args:
            op_type: the operator, such as ReduceMean.
            data: the tensor.
            keep: whether the dimensions stay with size 1; False where its keepdims says that.
        """
