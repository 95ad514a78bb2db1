"""Emitting nodes by calls that read like numerics: ``op.Gather(x, i, axis=0)``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, cast, overload

from onnx import AttributeProto, GraphProto, NodeProto, helper

from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph.names import without_absent_last
from onnxreduce_cli.model.graph.values import Dims, ValueType


class TypeLookup(Protocol):
    """A look-up of the types of values by name."""

    def type(self, name: str) -> ValueType | None:
        """Return a value's type as far as it is known."""

    def elem_type(self, name: str) -> int | None:
        """Return a tensor's `TensorProto.DataType`, if known."""

    def rank(self, name: str) -> int | None:
        """Return a tensor's rank, if known."""


class Value(str):
    """The name of a value, with properties that look up its type.

    It is empty, and so false, where an optional input is absent.
    """

    __slots__ = ("_types",)
    _types: TypeLookup

    def __new__(cls, name: str, types: TypeLookup) -> Value:
        """Return the value called `name`, whose type is looked up in `types`."""
        value = super().__new__(cls, name)
        value._types = types
        return value

    @property
    def type(self) -> ValueType | None:
        """Its type, as far as it is known."""
        return self._types.type(self)

    @property
    def elem_type(self) -> int | None:
        """Its `TensorProto.DataType`, if known."""
        return self._types.elem_type(self)

    @property
    def dims(self) -> Dims | None:
        """Its dimensions as far as they are known; None where not even the rank is."""
        found = self.type
        return None if found is None else found.dims

    @property
    def rank(self) -> int | None:
        """Its number of dimensions, if known."""
        return self._types.rank(self)


class NodeEmitter(Protocol):
    """A function that emits nodes of one operator; see `Operators`."""

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

    Inputs that are None or empty are absent. Attributes are keywords: None leaves one out, an
    `AttributeProto` is copied. By default the node has one output with a new name, which is
    returned as a `Value`. With ``outputs=3`` it has three, returned as a tuple; with a list of
    names it has these, and the first is returned. ``like=`` is the type of the first output, where
    shape inference cannot find it.

    Attributes:
        opset: the opset by which the nodes are read.
    """

    opset: int

    def __getattr__(self, op_type: str) -> NodeEmitter:
        """Return the function that emits nodes of an operator.

        Raises:
            AttributeError: the opset has no such operator.
        """
        if not op_type[:1].isupper():
            raise AttributeError(f"{type(self).__name__!r} has no attribute {op_type!r}")
        require_operator(op_type, self.opset)
        return cast(NodeEmitter, partial(self._call, op_type))

    def emit(
        self,
        op_type: str,
        *inputs: str | None,
        outputs: Sequence[str] | None = None,
        like: ValueType | None = None,
        **attributes: Any,
    ) -> Value:
        """Emit a node of an operator that is known by its name only, as its method would.

        The output has the dtype and shape that the operator's definition says.
        """
        emit: NodeEmitter = getattr(self, op_type)
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
        """Return a new name that contains an operator's."""

    @abstractmethod
    def _new(self) -> NodeProto:
        """Return an empty node."""

    @abstractmethod
    def _accept(self, node: NodeProto, like: ValueType | None) -> TypeLookup:
        """Add a node that is complete; return the look-up of the types of its outputs."""


def require_operator(op_type: str, opset: int) -> None:
    """Raise `AttributeError` where an opset lacks an operator or deprecates it."""
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
