"""Types and constants of the values in one conversion: generated ones, and the model's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import onnx
from onnx import GraphProto, NodeProto, TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph import attributes, folding
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.folding import Folded
from onnxreduce_cli.model.graph.scope import Scope, subgraphs
from onnxreduce_cli.model.graph.values import (
    Dims,
    ValueType,
    common_type,
    elem_type_of,
    from_proto,
    tensor_type,
)
from onnxreduce_cli.model.types.constants import Array, KnownConstants, Work
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.node_inference import infer_outputs

#: A value of the outermost scope's tree, within which generated names are unique.
_Value = tuple[int, str]


class _Generated(NamedTuple):
    """The origin of a generated value.

    Attributes:
        node: the node; its outputs may have other names by now, see `simplification.simplified`.
        opset: the opset of the node.
        scope: its scope.
        place: the index of the value among its outputs.
    """

    node: NodeProto
    opset: int
    scope: Scope
    place: int


class UnknownValue(NamedTuple):
    """A value whose type, or rank, is unknown although those of its node's inputs are known.

    Attributes:
        scope: its scope.
        node: the node that makes it.
        name: its name.
    """

    scope: Scope
    node: NodeProto
    name: str


class ConversionFacts(KnownConstants):
    """Types and constants of the values that a conversion generates, and of the model's own.

    Generated values are registered by `declare`, `declare_type` and `define`. They belong to one
    conversion, while the facts of the model are shared by all.

    Attributes:
        model: the facts of the model as it is given.
    """

    def __init__(self, model: Facts) -> None:
        """Begin a conversion of a model with given facts."""
        super().__init__(model.calls, model.base_dir)
        self.model = model
        self._generated: dict[_Value, _Generated] = {}
        self._types: dict[_Value, ValueType | None] = {}
        self._kinds: dict[_Value, str] = {}
        self._arrays: dict[_Value, Array] = {}
        #: Scopes of generated graphs, kept as values are identified by them.
        self._added: dict[int, Scope] = {}

    # What steps generate

    def declare(self, scope: Scope, node: NodeProto, opset: int, names: Iterable[str]) -> None:
        """Declare that a generated node, read at `opset`, computes the named values."""
        places = {name: place for place, name in enumerate(node.output)}
        for name in filter(None, map(str, names)):
            self._generated[id(scope.root), name] = _Generated(node, opset, scope, places[name])

    def declare_type(self, scope: Scope, name: str, value_type: ValueType | None) -> None:
        """Register the type of a generated value."""
        self._types[id(scope.root), str(name)] = value_type

    def define(self, scope: Scope, name: str, array: Array, elem_type: int) -> None:
        """Register a generated constant."""
        self._arrays[id(scope.root), str(name)] = array
        self.declare_type(scope, name, tensor_type(elem_type, array.shape))

    def generated(self, scope: Scope, name: str) -> tuple[Scope, NodeProto] | None:
        """Return the generated node that makes a value, with its scope; None for other values."""
        found = self._generated.get((id(scope.root), name))
        return None if found is None else (found.scope, found.node)

    # Types

    def type(self, scope: Scope, name: str) -> ValueType | None:
        """Return the type of the value that `scope` reads by a name; None if it is not known."""
        key = (id(scope.root), str(name))
        if key in self._types:
            return self._types[key]
        if key in self._generated:
            self._types[key] = self._infer(key)
            return self._types[key]
        owner = scope.resolve(name) if name else None
        if owner is None:
            return None
        if self.model.owns(owner):
            return self.model.type(owner, name)
        return owner.declared.get(name)

    def elem_type(self, scope: Scope, name: str) -> int | None:
        """Return a dense tensor's `TensorProto.DataType`; None if it is not known."""
        kind = self.kind(scope, name)
        return None if kind is None else elem_type_of(kind)

    def kind(self, scope: Scope, name: str) -> str | None:
        """Return a value's type as schemas spell it; cheaper than `type`, without shapes."""
        key = (id(scope.root), str(name))
        if key not in self._types:
            if key in self._generated:
                kind = self._kind_of_inputs(key)
                if kind is not None:
                    return kind
            else:
                owner = scope.resolve(name) if name else None
                if owner is None:
                    return None
                if self.model.owns(owner):
                    return self.model.kind(owner, name)
        found = self.type(scope, name)
        return None if found is None else found.kind

    def _infer(self, key: _Value) -> ValueType | None:
        node, opset, scope, place = self._generated[key]
        if not is_default(node.domain):
            return None
        if node.op_type == "If":
            # Its branches read outer values, which the inference of a single node does not see.
            graphs = [item.g for item in node.attribute if item.HasField("g")]
            return common_type([self._type_within(scope, opset, graph, place) for graph in graphs])
        return self._infer_node(key) or self._type_of_inputs(key)

    def _type_within(
        self, scope: Scope, opset: int, graph: GraphProto, place: int
    ) -> ValueType | None:
        """Return the type of an output of a generated node's graph."""
        name = graph.output[place].name
        own = next((inner for inner in self.model.tree(scope) if name in inner.producers), None)
        if own is not None:
            return self.type(own, name)
        inner = Scope(graph, scope, opset, "", subgraph=True)
        if (id(scope.root), name) not in self._generated:
            for node in inner.nodes:
                self.declare(inner, node, opset, node.output)
        return self.type(inner, name)

    def _type_of_inputs(self, key: _Value) -> ValueType | None:
        """Return the type that an output of a node shares with an input, or that a Cast names."""
        node, opset, scope, _ = self._generated[key]
        to = attributes.find(node, "to") if node.op_type == "Cast" else None
        if to is not None:
            # There is no inference of Cast below 6, nor of one from a dtype that came later.
            known = self.type(scope, node.input[0])
            number = to.i if opset >= 6 else TensorProto.DataType.Value(to.s.decode())
            return tensor_type(number, None if known is None else known.dims)
        kind = self._kind_of_inputs(key)
        return None if kind is None else ValueType(kind, elem_type_of(kind) or 0, None)

    def _kind_of_inputs(self, key: _Value) -> str | None:
        """Return the type of an output that must be that of an input by the node's schema."""
        if key in self._kinds:
            return self._kinds[key]
        node, opset, scope, place = self._generated[key]
        if not is_default(node.domain):
            return None
        outputs = schemas.inputs_of_same_type(node.op_type, opset)
        inputs = outputs[min(place, len(outputs) - 1)]
        for index, name in enumerate(node.input[:]):
            same_type = bool(name) and inputs[min(index, len(inputs) - 1)]
            kind = self.kind(scope, name) if same_type else None
            if kind is not None:
                self._kinds[key] = kind
                return kind
        return None

    def _infer_node(self, key: _Value) -> ValueType | None:
        """Return the type that onnx's inference of a single node gives for one of its outputs."""
        node, opset, scope, place = self._generated[key]
        if node.op_type == "Scan" and opset < 9:
            return None  # onnx 1.19 crashes there, as it infers the body.
        try:
            outputs = infer_outputs(self, scope, node, opset, self.model.model.ir_version)
        except (
            onnx.shape_inference.InferenceError,
            onnx.defs.SchemaError,
            onnx.checker.ValidationError,
            ValueError,
        ):
            # It is invalid with these types, or its graphs nest deeper than onnx reads; reported
            # where the type is needed.
            return None
        proto = outputs.get(node.output[place])
        return None if proto is None else from_proto(proto)

    def allowed_kinds(self, scope: Scope, name: str) -> frozenset[str] | None:
        """Return the types that a value of unknown type may have by the schemas of its nodes."""
        return self.model.allowed_kinds(scope, name)

    def first_unknown(self, scope: Scope, name: str, *, dtype: bool) -> UnknownValue | None:
        """Return the value that is the reason why the dtype or rank of another is unknown.

        Args:
            scope: where the value is read.
            name: its name.
            dtype: whether its dtype is unknown; otherwise its rank is.

        Returns:
            the first unknown value that it depends on, made by a node of the model; None where
            there is none.
        """
        seen: set[tuple[int, str]] = set()
        while True:
            made = self.generated(scope, name) or self._made(scope, name)
            if made is None or (id(made[0]), name) in seen:
                return None
            place, node = made
            seen.add((id(place), name))
            following = self._unknown_input(place, node, dtype=dtype)
            if following is None:
                own = self.generated(scope, name) is None and self.calls.function_of(node) is None
                return UnknownValue(place, node, name) if own else None
            scope, name = following

    def _made(self, scope: Scope, name: str) -> tuple[Scope, NodeProto] | None:
        owner = scope.resolve(name)
        node = None if owner is None else owner.producers.get(name)
        return None if owner is None or node is None else (owner, node)

    def _unknown_input(
        self, scope: Scope, node: NodeProto, *, dtype: bool
    ) -> tuple[Scope, str] | None:
        """Return a value that a node's outputs depend on and whose dtype, or rank, is unknown.

        That is an input, or an output of a graph within the node.
        """
        if not is_default(node.domain):
            return None
        # The rank of Reshape's output depends on its second input alone.
        names = node.input[1:] if node.op_type == "Reshape" and not dtype else node.input[:]
        read = [(scope, name) for name in names if name]
        for _, graph in subgraphs(node):
            inner = self.model.inner(graph)
            if inner is not None:
                read += [(inner, output.name) for output in graph.output]
        for place, name in read:
            known = self.type(place, name)
            if known is None or (not dtype and known.dims is None and known.elem_type):
                return place, name
        return None

    # Constants

    def kept_dims(self, scope: Scope, sizes: str, data: str) -> tuple[bool, ...]:
        """Return for each element of a list of sizes whether it is that dimension of `data`."""
        return self.model.constants.kept_dims(self.folded(scope, sizes), scope, data)

    def _is_generated(self, scope: Scope, name: str) -> bool:
        key = (id(scope.root), name)
        return key in self._arrays or key in self._generated

    def _owner(self, scope: Scope, name: str) -> Scope | None:
        if self._is_generated(scope, name):
            return scope.root
        owner = scope.resolve(name) if name else None
        if owner is None or self.model.owns(owner):
            return None
        return self._added.setdefault(id(owner), owner)

    def _work(self, owner: Scope, name: str) -> Work:
        key = (id(owner), name)
        if key in self._arrays:
            return Folded.whole(self._arrays[key])
        if key in self._generated:
            node, opset, scope, _ = self._generated[key]
            return (yield from self._fold_node(scope, node, opset))
        return (yield from self._fold_in_container(owner, name))

    def _from_outside(self, scope: Scope, name: str) -> Folded | None:
        return self.model.constants.folded(scope, name)

    def _type(self, scope: Scope, name: str) -> ValueType | None:
        return self.type(scope, name)

    def _shape(self, scope: Scope, name: str, dims: Dims) -> Folded:
        owner = None if self._is_generated(scope, name) else scope.resolve(name)
        if owner is None or not self.model.owns(owner):
            return folding.shape_of(dims)
        return self.model.constants.shape(owner, name, dims)
