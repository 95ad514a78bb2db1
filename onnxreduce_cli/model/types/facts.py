"""The facts of a model as it is given, such as types and constants, each computed once on demand.

Nothing here depends on the target opset, so all conversions of a model share one `Facts`. The facts
of values that a conversion adds are in `conversion_facts`.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping, Sequence

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from onnxreduce_cli.model.gate.model import check_model
from onnxreduce_cli.model.graph.calls import Calls
from onnxreduce_cli.model.graph.overridable import StatedTypes
from onnxreduce_cli.model.graph.scope import FunctionKey, Scope, by_root, scopes
from onnxreduce_cli.model.graph.values import ValueType, elem_type_of
from onnxreduce_cli.model.types.constants import Array, ModelConstants
from onnxreduce_cli.model.types.model_types import ModelTypes
from onnxreduce_cli.model.types.node_inference import Contradictions
from onnxreduce_cli.model.types.shape_inference import ShapeInference


class Facts:
    """Types, constants and calls of one model, by scope and name.

    Attributes:
        model: the model, which must not change while the facts are in use.
        scopes: its scopes.
        calls: the calls of its functions, and the values that they give attributes.
        constants: its values that are known before the run, in whole or in part.
        stated: the types that it states.
        base_dir: the folder that external data is relative to.
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
        self.model = model
        self.scopes = list(found)
        self.calls = Calls(found, functions)
        self.base_dir = base_dir
        #: The identities of its nodes that were found to be valid.
        self._sound: set[int] = set()
        self._trees = by_root(found)
        self._own = {id(scope) for scope in found}
        self._by_container: dict[int, Scope] = {}
        self._unread: dict[int, frozenset[str]] = {}
        self._readers: dict[int, dict[str, list[NodeProto]]] = {}
        # Types follow from constants and constants from types. They don't hold on to each other:
        # objects that refer to themselves, and the model with them, are not freed at once.
        known = weakref.proxy(self)
        self.constants = ModelConstants(self.calls, known, base_dir)
        graphs = [scope for scope in found if scope.function is None]
        self.stated = StatedTypes(model, graphs, self.calls)
        self._inference = ShapeInference(model, self._trees, self.calls, self.stated, known)
        self._types = ModelTypes(model, self._trees, self.stated, self._inference)
        self._contradictions = Contradictions(known, model.ir_version)

    # Scopes

    def tree(self, scope: Scope) -> list[Scope]:
        """Return the scopes within the outermost one around `scope`, the outermost first."""
        return self._trees[id(scope.root)]

    def inner(self, graph: GraphProto) -> Scope | None:
        """Return the scope of one of the model's own subgraphs."""
        if not self._by_container:
            self._by_container = {id(scope.container): scope for scope in self.scopes}
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
        other._sound = {*self._sound}
        return other

    def add_scopes(self, tree: Sequence[Scope]) -> None:
        """Add a function's scopes, once all calls of it are known."""
        self.scopes += tree
        self._own |= {id(scope) for scope in tree}
        self._trees |= by_root(tree)
        self._by_container = {}
        self.calls.add(tree)

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

    def type(self, scope: Scope, name: str) -> ValueType | None:
        """Return the type of the value that `scope` reads by a name; None if it is not known."""
        return self._types.type(scope, name)

    def elem_type(self, scope: Scope, name: str) -> int | None:
        """Return a dense tensor's `TensorProto.DataType`; None if it is not known."""
        kind = self.kind(scope, name)
        return None if kind is None else elem_type_of(kind)

    def kind(self, scope: Scope, name: str) -> str | None:
        """Return a value's type as schemas spell it; cheaper than `type`, without shapes."""
        return self._types.kind(scope, name)

    def allowed_kinds(self, scope: Scope, name: str) -> frozenset[str] | None:
        """Return the types that a value of unknown type may have by the schemas of its nodes."""
        return self._types.allowed_kinds(scope, name)

    def contradiction(self, scope: Scope, node: NodeProto) -> str | None:
        """Return why a node of the model is invalid with the facts around it; None if it is not.

        Nodes with graphs, with references to attributes, or with inputs of unknown type are not
        checked.
        """
        if id(node) in self._sound:
            return None
        problem = self._contradictions.of(scope, node)
        if problem is None:
            self._sound.add(id(node))
        return problem

    def contradiction_of_sizes(self, scope: Scope, node: NodeProto) -> str | None:
        """Return which output of a node is stated with a wrong size; None if none is."""
        return self._contradictions.of_sizes(scope, node)

    def contradiction_of_constants(
        self, scope: Scope, node: NodeProto, names: Collection[str]
    ) -> str | None:
        """Return the same as far as it follows from the named constants, without types."""
        return self._contradictions.of_constants(scope, node, names)

    # Constants

    def constant(self, scope: Scope, name: str) -> Array | None:
        """Return a value that is the same in every run, or None; see `KnownConstants.constant`."""
        return self.constants.constant(scope, name)

    def elements(self, scope: Scope, name: str) -> tuple[int | None, ...] | None:
        """Return a list of integers with None for unknown ones; None if its length is unknown."""
        return self.constants.elements(scope, name)

    def forget(self) -> None:
        """Drop the results computed before shape inference found more types."""
        self._types.forget()
        self.constants.forget()


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
