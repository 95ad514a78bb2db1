"""What is known of the values of a model, such as types and constants, computed once on demand.

Nothing that is known of the model as given depends on the target opset, so all its conversions
share that: each extends the same `Facts` by the values that it generates.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping, Sequence
from copy import copy

import onnx
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.model.gate.model import check_model
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.calls import Calls
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.overridable import StatedTypes
from onnxreduce_cli.model.graph.scope import FunctionKey, Scope, by_root, scopes
from onnxreduce_cli.model.graph.values import (
    ValueType,
    common_type,
    elem_type_of,
    tensor_type,
)
from onnxreduce_cli.model.types.constants import KnownConstants
from onnxreduce_cli.model.types.generated import GeneratedKey, GeneratedOutput, GeneratedValues
from onnxreduce_cli.model.types.model_types import ModelTypes
from onnxreduce_cli.model.types.node_inference import Contradictions, infer_outputs
from onnxreduce_cli.model.types.occurring_types import OccurringTypes
from onnxreduce_cli.model.types.questions import Questions, question
from onnxreduce_cli.model.types.shape_inference import ShapeInference


class Facts(KnownConstants):
    """Types, constants and calls of one model, by scope and name.

    Attributes:
        model: the model, which must not change while the facts are in use.
        scopes: its scopes.
        stated: the types that it states.
        occurring_types: those that may occur in it, its functions included.
    """

    def __init__(
        self,
        model: ModelProto,
        found: Sequence[Scope],
        base_dir: str = "",
        functions: Mapping[FunctionKey, FunctionProto] | None = None,
    ) -> None:
        """Prepare for `model`, whose scopes are `found`; nothing is computed yet.

        Args:
            model: the model, which must not change while the facts are in use.
            found: `scopes(model)`.
            base_dir: the folder that external data is relative to.
            functions: the model's functions; None for the functions whose scopes are given.
        """
        self._trees = by_root(found)
        super().__init__(Calls(found, functions), base_dir, GeneratedValues(self._trees))
        self.model = model
        self.scopes = list(found)
        #: What was asked about its nodes that were found to be valid, by their identity.
        self._sound: dict[int, Questions] = {}
        self._own = {id(scope) for scope in found}
        self._by_container: dict[int, Scope] = {}
        self._unread: dict[int, frozenset[str]] = {}
        self._readers: dict[int, dict[str, list[NodeProto]]] = {}
        # Types follow from constants and constants from types. They don't hold on to each other:
        # objects that refer to themselves, and the model with them, are not freed at once.
        known = weakref.proxy(self)
        graphs = [scope for scope in found if scope.function is None]
        self.stated = StatedTypes(model, graphs, self.calls)
        self._inference = ShapeInference(model, self._trees, self.calls, self.stated, known)
        self._types = ModelTypes(model, self._trees, self.stated, self._inference)
        self._contradictions = Contradictions(known, model.ir_version)
        self.occurring_types = OccurringTypes(found, self.calls)

    def extended(self) -> Facts:
        """Return facts of the same model, to which one conversion adds the values it generates.

        What is known of the model's own values is shared.
        """
        other = copy(self)
        other.generated, other._given = GeneratedValues(self._trees), self._given or self
        other._folded, other._added = {}, {}
        other._contradictions = Contradictions(weakref.proxy(other), self.model.ir_version)
        return other

    # Scopes

    def tree(self, scope: Scope) -> list[Scope]:
        """Return the scopes within the outermost one around `scope`, the outermost first."""
        return self._trees[id(scope.root)]

    def inner(self, graph: GraphProto) -> Scope | None:
        """Return the scope of one of the model's own subgraphs."""
        if not self._by_container:
            self._by_container.update((id(scope.container), scope) for scope in self.scopes)
        return self._by_container.get(id(graph))

    def owns(self, scope: Scope) -> bool:
        """Return whether a scope belongs to the model, and not to a generated graph."""
        return id(scope) in self._own

    def without_functions(self) -> Facts:
        """Return facts of the model's graphs alone, to which functions are added one by one."""
        graphs = [scope for scope in self.scopes if scope.function is None]
        other = Facts(self.model, graphs, self.base_dir, self.calls.functions)
        # The inferred types of graphs are the same, whichever copy of a function is called.
        other._inference.take_graphs(self._inference)
        other._sound = {**self._sound}
        other.occurring_types = self.occurring_types
        return other

    def add_scopes(self, tree: Sequence[Scope]) -> None:
        """Add a function's scopes, once all calls of it are known."""
        self.scopes += tree
        self._own |= {id(scope) for scope in tree}
        self._trees |= by_root(tree)
        self._by_container.clear()
        self.calls.add(tree)

    @question
    def made_by(self, scope: Scope, name: str) -> str:
        """Return the operator of the node that computes a value; empty where none does."""
        generated = self.generated.node(scope, name)
        owner = scope.resolve(name) if name else None
        node = owner.producer(name) if owner is not None else None
        if generated is not None:
            node = generated[1]
        return "" if node is None else node.op_type

    @question
    def initializer_dims(self, scope: Scope, name: str) -> tuple[int, ...] | None:
        """Return the dimensions of an initializer; None of other values."""
        owner = scope.resolve(name) if name else None
        tensor = None if owner is None else owner.initializers.get(name)
        return None if tensor is None else tuple(tensor.dims)

    @question
    def is_read(self, scope: Scope, name: str) -> bool:
        """Return whether a node reads a value, or a graph has it as an output.

        True for a value that no node of the model computes, as generated values are read.
        """
        root = scope.root
        if id(root) not in self._unread:
            tree = self.tree(root)
            made = {value for item in tree for node in item.nodes for value in node.output}
            for item in tree:
                made.difference_update(item.outputs, *(node.input for node in item.nodes))
            self._unread[id(root)] = frozenset(made)
        return name not in self._unread[id(root)]

    def readers(self, scope: Scope, name: str) -> Sequence[NodeProto]:
        """Return the nodes that read a value, also in graphs within the scope."""
        root = scope.root
        if id(root) not in self._readers:
            found = self._readers[id(root)] = {}
            for node in (node for item in self.tree(root) for node in item.nodes):
                for given in node.input:
                    found.setdefault(given, []).append(node)
        return self._readers[id(root)].get(name, ())

    # Types

    @question
    def type(self, scope: Scope, name: str) -> ValueType | None:
        """Return the type of the value that `scope` reads by a name; None if it is not known."""
        key = self.generated.key(scope, name)
        if key is not None:
            if key not in self.generated.types:
                self.generated.types[key] = self._infer(key)
            return self.generated.types[key]
        return self._type_in_model(scope, name)

    def _type_in_model(self, scope: Scope, name: str) -> ValueType | None:
        owner = scope.resolve(name) if name else None
        if owner is None:
            return None
        return self._types.type(owner, name) if self.owns(owner) else owner.declared.get(name)

    @question
    def rank(self, scope: Scope, name: str) -> int | None:
        """Return a tensor's rank; None if it is not known."""
        if self.generated.key(scope, name) is not None:
            known = self.type(scope, name)
            return None if known is None else known.rank
        known = self._type_in_model(scope, name)
        return None if known is None else known.rank

    def elem_type(self, scope: Scope, name: str) -> int | None:
        """Return a dense tensor's `TensorProto.DataType`; None if it is not known."""
        kind = self.kind(scope, name)
        return None if kind is None else elem_type_of(kind)

    @question
    def kind(self, scope: Scope, name: str) -> str | None:
        """Return a value's type as schemas spell it; cheaper than `type`, without shapes."""
        key = self.generated.key(scope, name)
        if key is None:
            owner = scope.resolve(name) if name else None
            if owner is None or self.owns(owner):
                return None if owner is None else self._types.kind(owner, name)
        elif key not in self.generated.types:
            kind = self._kind_of_inputs(key)
            if kind is not None:
                return kind
        found = self.type(scope, name)
        return None if found is None else found.kind

    @question
    def allowed_kinds(self, scope: Scope, name: str) -> frozenset[str] | None:
        """Return the types that a value of unknown type may have by the schemas of its nodes."""
        owner = scope.resolve(name)
        return None if owner is None else self._types.allowed_kinds(owner, name)

    def contradiction(self, scope: Scope, node: NodeProto) -> str | None:
        """Return why a node of the model is invalid with the facts around it; None if it is not.

        Nodes with graphs, with references to attributes, or with inputs of unknown type are not
        checked.
        """
        asked, problem = self._sound.get(id(node)), None
        if asked is None:
            asked = Questions(scope)
            with self.noting(asked):
                problem = self._contradictions.of(scope, node)
        elif self.questions is not None:
            self.questions.add(asked)
        if problem is None:
            self._sound[id(node)] = asked
        return problem

    def contradiction_of_sizes(self, scope: Scope, node: NodeProto) -> str | None:
        """Return which output of a node is stated with a wrong size; None if none is."""
        return self._contradictions.of_sizes(scope, node)

    def contradiction_of_constants(
        self, scope: Scope, node: NodeProto, names: Collection[str]
    ) -> str | None:
        """Return the same as far as it follows from the named constants, without types."""
        return self._contradictions.of_constants(scope, node, names)

    def accepts_ranks(self, scope: Scope, node: NodeProto, ranks: Mapping[str, int]) -> bool:
        """Return whether a node may read values of some ranks, which are not known."""
        return self._contradictions.accepts_ranks(scope, node, ranks)

    def forget(self) -> None:
        """Drop the results computed before shape inference found more types."""
        self._types.forget()
        super().forget()

    # Types of generated values

    def _infer(self, key: GeneratedKey) -> ValueType | None:
        made = self.generated.nodes[key]
        node = made.node
        if not is_default(node.domain):
            return None
        if node.op_type == "If":
            # Its branches read outer values, which the inference of a single node does not see.
            graphs = [item.g for item in node.attribute if item.HasField("g")]
            return common_type([self._type_within(made, graph) for graph in graphs])
        return self._infer_node(made) or self._type_of_inputs(key)

    def _type_within(self, made: GeneratedOutput, graph: GraphProto) -> ValueType | None:
        """Return the type of a value as a branch of the If that makes it gives it."""
        name = graph.output[made.place].name
        own = next((item for item in self.tree(made.scope) if name in item.producers), None)
        inner = own or Scope(graph, made.scope, made.opset, "", subgraph=True)
        return self.type(inner, name)

    def _type_of_inputs(self, key: GeneratedKey) -> ValueType | None:
        """Return the type that an output of a node shares with an input, or that a Cast names."""
        node, opset, scope, _ = self.generated.nodes[key]
        to = attributes.find(node, "to") if node.op_type == "Cast" else None
        if to is not None:
            # There is no inference of Cast below 6, nor of one from a dtype that came later.
            known = self.type(scope, node.input[0])
            number = to.i if opset >= 6 else TensorProto.DataType.Value(to.s.decode())
            return tensor_type(number, None if known is None else known.dims)
        kind = self._kind_of_inputs(key)
        return None if kind is None else ValueType(kind, elem_type_of(kind) or 0, None)

    def _kind_of_inputs(self, key: GeneratedKey) -> str | None:
        """Return the type of an output that must be that of an input by the node's schema."""
        if key in self.generated.kinds:
            return self.generated.kinds[key]
        node, opset, scope, place = self.generated.nodes[key]
        if not is_default(node.domain):
            return None
        outputs = schemas.inputs_of_same_type(node.op_type, opset)
        inputs = outputs[min(place, len(outputs) - 1)]
        for index, name in enumerate(node.input[:]):
            same_type = bool(name) and inputs[min(index, len(inputs) - 1)]
            kind = self.kind(scope, name) if same_type else None
            if kind is not None:
                self.generated.kinds[key] = kind
                return kind
        return None

    def _infer_node(self, made: GeneratedOutput) -> ValueType | None:
        """Return the type that onnx's inference of a single node gives for one of its outputs."""
        node, opset, scope, place = made
        if node.op_type == "Scan" and opset < 9:
            return None  # onnx 1.19 crashes there, as it infers the body.
        try:
            outputs = infer_outputs(self, scope, node, opset, self.model.ir_version)
        except (
            onnx.shape_inference.InferenceError,
            onnx.defs.SchemaError,
            onnx.checker.ValidationError,
            ValueError,
        ):
            # It is invalid with these types, or its graphs nest deeper than onnx reads; reported
            # where the type is needed.
            return None
        return outputs.get(node.output[place])


def admit(model: ModelProto, base_dir: str = "") -> Facts:
    """Check a model at the gate, and return its facts, which are computed when needed.

    Args:
        model: the model.
        base_dir: the folder that external data is relative to.

    Raises:
        InvalidModelError: what is wrong with it, and where.
    """
    found = scopes(model)
    check_model(model, found)
    return Facts(model, found, base_dir)
