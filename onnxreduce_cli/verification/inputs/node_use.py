"""A node that uses an input of a model, and what is known of its own inputs."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import AttributeProto, NodeProto

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import Dims, numpy_dtype
from onnxreduce_cli.model.types.facts import Facts

Dim = int | str | None

#: Operators that read nothing but the shape of their input.
OF_SHAPES = frozenset({"Shape", "Size"})


@dataclass(frozen=True, slots=True)
class NodeUse:
    """A node that uses an input of the model, directly or through others.

    Attributes:
        node: the node.
        scope: where it is.
        facts: what is known of the model.
    """

    node: NodeProto
    scope: Scope
    facts: Facts

    def attribute(self, name: str) -> AttributeProto | None:
        """Return an attribute; None where the node has none of that name."""
        return attributes.find(self.node, name)

    def integer(self, name: str, default: int = 0) -> int:
        """Return the integer that is an attribute of the node."""
        attribute = self.attribute(name)
        return int(attribute.i) if attribute is not None else default

    def dims(self, index: int) -> Dims | None:
        """Return the dimensions of an input of the node; None where they are not known."""
        name = self.node.input[index] if index < len(self.node.input) else ""
        found = self.facts.type(self.scope, name)
        return None if found is None else found.dims

    def takes_integers(self, index: int) -> bool:
        """Return whether an input of the node may be of integers."""
        elem_type = self.facts.elem_type(self.scope, self.node.input[index])
        return elem_type is None or numpy_dtype(elem_type).kind in "iu"

    def dim(self, index: int, axis: int) -> Dim:
        """Return one dimension of an input; None where it is not known."""
        dims = self.dims(index)
        if dims is None or not -len(dims) <= axis < len(dims):
            return None
        return dims[axis]

    def constant(self, index: int) -> int | None:
        """Return the constant that is an input of one element; None where it is none."""
        array = self.facts.constant(self.scope, self.node.input[index])
        return None if array is None or array.size != 1 else int(array.reshape(-1)[0])
