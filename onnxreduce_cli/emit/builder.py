"""Writing nodes as one writes numerics: ``op.Gather(x, i, axis=0)``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, cast, overload

from onnx import AttributeProto, GraphProto, NodeProto, helper

from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph.names import without_absent_last
from onnxreduce_cli.model.graph.values import Dims, ValueType


class Known(Protocol):
    """Where the types of values are looked up by name."""

    def type(self, name: str) -> ValueType | None:
        """The value's type as far as it is known."""

    def elem_type(self, name: str) -> int | None:
        """A tensor's `TensorProto.DataType`, if known."""


class Value(str):
    """A value's name, which goes wherever a name does, and what is known of it when asked.

    Empty, and so false, where an optional input is absent.
    """

    __slots__ = ("_known",)
    _known: Known

    def __new__(cls, name: str, known: Known) -> Value:
        """The value called `name`, whose type `known` looks up."""
        value = super().__new__(cls, name)
        value._known = known
        return value

    @property
    def type(self) -> ValueType | None:
        """Its type, as far as it is known."""
        return self._known.type(self)

    @property
    def elem_type(self) -> int | None:
        """Its `TensorProto.DataType`, if known."""
        return self._known.elem_type(self)

    @property
    def dims(self) -> Dims | None:
        """Its dimensions as far as they are known; None where not even the rank is."""
        found = self.type
        return None if found is None else found.dims

    @property
    def rank(self) -> int | None:
        """Its number of dimensions, if known."""
        found = self.type
        return None if found is None else found.rank


class Emit(Protocol):
    """Emits nodes of one operator; see `Operators`."""

    @overload
    def __call__(
        self, *inputs: str | None, outputs: int, like: ValueType | None = None, **attributes: Any
    ) -> tuple[Value, ...]: ...

    @overload
    def __call__(
        self,
        *inputs: str | None,
        outputs: Sequence[str] | None = None,
        like: ValueType | None = None,
        **attributes: Any,
    ) -> Value: ...


class Operators(ABC):
    """The operators of one opset, each a method: ``op.Gather(x, i, axis=0)`` emits a Gather.

    Inputs that are None or empty are absent. Attributes are given by name: None leaves one out, an
    `AttributeProto` is taken over. The node gives one output, with a name of its own, as a `Value`;
    ``outputs=3`` gives a tuple of three, and a list of names gives what they say, and the first as
    a `Value`. ``like=`` is the type of the first output, where shape inference cannot tell it.

    Attributes:
        opset: the opset by which the nodes are read.
    """

    opset: int

    def __getattr__(self, op_type: str) -> Emit:
        """Return the function that emits nodes of an operator.

        Raises:
            AttributeError: the opset has no such operator.
        """
        if not op_type[:1].isupper():
            raise AttributeError(f"{type(self).__name__!r} has no attribute {op_type!r}")
        check(op_type, self.opset)
        return cast(Emit, partial(self._call, op_type))

    def emit(
        self,
        op_type: str,
        *inputs: str | None,
        outputs: Sequence[str] | None = None,
        like: ValueType | None = None,
        **attributes: Any,
    ) -> Value:
        """Emit a node of an operator whose name is not written here, as its method would.

        Dtype and shape of what it gives are those that the operator's definition says.
        """
        emit: Emit = getattr(self, op_type)
        return emit(*inputs, outputs=outputs, like=like, **attributes)

    def _call(
        self,
        op_type: str,
        *inputs: str | None,
        outputs: int | Sequence[str] | None = None,
        like: ValueType | None = None,
        **attributes: Any,
    ) -> Value | tuple[Value, ...]:
        name = self._fresh(op_type)
        names = [name]
        if isinstance(outputs, int):
            names += [self._fresh(op_type) for _ in range(1, outputs)]
        elif outputs is not None:
            names = list(outputs)
        node = self._new()
        node.op_type, node.name = op_type, name
        fill(node, [given or "" for given in inputs], attributes)
        node.output.extend(names)
        known = self._accept(node, like)
        if isinstance(outputs, int):
            return tuple([Value(given, known) for given in names])
        return Value(names[0], known)

    @abstractmethod
    def _fresh(self, op_type: str) -> str:
        """A new name that derives from an operator's."""

    @abstractmethod
    def _new(self) -> NodeProto:
        """An empty message for a node."""

    @abstractmethod
    def _accept(self, node: NodeProto, like: ValueType | None) -> Known:
        """Take a node that is written; where the types of its outputs are looked up."""


def check(op_type: str, opset: int) -> None:
    """Raise `AttributeError` where an opset has no such operator, or one that is deprecated."""
    if not schemas.defines(op_type, opset):
        since = schemas.versions(op_type)
        raise AttributeError(
            f"no step can emit {op_type} at opset {opset}: "
            + (f"it is of opset {since[0]}" if since else "there is no such operator")
            + "; bind the context to an opset that has it, by context.at"
        )


def fill(node: NodeProto, inputs: Sequence[str], values: dict[str, Any]) -> None:
    """Add inputs (without trailing empty names) and attributes to a node."""
    node.input.extend(without_absent_last(inputs))
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, AttributeProto):
            copy = node.attribute.add()
            copy.CopyFrom(value)
            copy.name = name
        elif isinstance(value, GraphProto):
            node.attribute.add(name=name, type=AttributeProto.GRAPH).g.CopyFrom(value)
        else:
            kind = AttributeProto.INTS if isinstance(value, (list, tuple)) and not value else None
            node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
