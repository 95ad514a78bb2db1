"""The facts about a node and the values around it that a step can ask for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy.typing as npt
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.calls import UNKNOWN
from onnxreduce_cli.model.graph.edit import Constants
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import ValueType
from onnxreduce_cli.model.types.facts import Facts

Array = npt.NDArray[Any]


class Workspace(NamedTuple):
    """The objects that all steps in one scope of the model share.

    Attributes:
        facts: the facts about the model's values.
        names: the names in use in the scope, its outer and inner scopes.
        constants: the constants that steps add to the scope.
        drafts: the message that new nodes are added to: that is twice as fast as one for each.
    """

    facts: Facts
    names: Names
    constants: Constants
    drafts: GraphProto

    def constant(self, scope: Scope, base: str, hint: str, array: Array, elem_type: int) -> str:
        """Return the name of a constant, which is added unless the scope has an equal one.

        Args:
            scope: the scope of the node that reads it.
            base: the prefix of the names that are generated for that node.
            hint: what follows it.
            array: the constant.
            elem_type: its `TensorProto.DataType`.
        """
        strings = elem_type == TensorProto.STRING
        key = (elem_type, array.shape, (*array.ravel(),) if strings else array.tobytes())
        name = self.constants.get(key)
        if name is None:
            name = self.names.fresh(f"{base}_{hint}")
            self.constants.add(key, name)
            self.constants.arrays[name] = (array, elem_type)
            self.facts.generated.define(scope, name, array, elem_type)
        return name


@dataclass(slots=True)
class Lookups:
    """A record of the facts that the steps of one node have looked up so far.

    Each question of `NodeFacts` notes itself here.

    Attributes:
        constants: the names of the values whose elements were looked up; plain strings, as a
            `Value` would make a reference cycle.
        types: whether the type or the shape of any value was.
        more: whether the emitted nodes may depend on more than the node's operator and attributes,
            the elements of `constants`, and the types of its inputs and outputs.
        non_negative: the names of values on whose having no negative elements its steps rely.
        steps: the opset that the next step led to, by the operator of each node on the way and the
            opset at which it was read; None where none was left.
        reached: the opsets of which was asked whether the conversion leads there, or later.
        initializers: whether the graphs of the converted model hold constants as initializers; None
            where it was not asked.
    """

    constants: set[str] = field(default_factory=set)
    types: bool = False
    more: bool = False
    non_negative: frozenset[str] = frozenset()
    steps: dict[tuple[str, int], int | None] = field(default_factory=dict)
    reached: dict[int, bool] = field(default_factory=dict)
    initializers: bool | None = None

    def note(self, *constants: str, types: bool = False, more: bool = False) -> None:
        """Note the constants that a question reads, and whether it asks for types or for more."""
        if constants:
            self.constants.update(map(str, constants))
        self.types |= types
        self.more |= more


class NodeFacts:
    """A node with the facts about it and the values around it; asking emits nothing.

    Attributes:
        node: the node on the near side of the boundary; not to be changed.
        source_opset: the opset by which the node is read.
        beside: further nodes that replace the same node of the model, as far as they are known.
    """

    def __init__(
        self,
        node: NodeProto,
        scope: Scope,
        source_opset: int,
        workspace: Workspace,
        lookups: Lookups,
    ) -> None:
        self.node = node
        self._scope = scope
        self.source_opset = source_opset
        self.beside: Sequence[NodeProto] = ()
        self._workspace = workspace
        self._constants = workspace.constants
        self._lookups = lookups

    def about(self, node: NodeProto) -> NodeFacts:
        """Return the facts about another node of this scope or one around it."""
        self._ask_beyond()
        return NodeFacts(node, self._scope, self.source_opset, self._workspace, self._lookups)

    def _ask_beyond(self) -> None:
        """Note that the answer is a part of the model, of which more may be read than is noted."""
        if self._facts.questions is not None:
            self._facts.questions.complete = False

    @property
    def scope(self) -> Scope:
        """The graph or function body that contains the node."""
        self._ask_beyond()
        return self._scope

    @property
    def lookups(self) -> Lookups:
        """The facts that were looked up so far."""
        return self._lookups

    @property
    def _facts(self) -> Facts:
        return self._workspace.facts

    @property
    def in_main_graph(self) -> bool:
        """Return whether the scope is the main graph, not a subgraph or a function body."""
        return self._scope.parent is None and not isinstance(self._scope.container, FunctionProto)

    def input(self, index: int) -> Value:
        """Return the node's input at `index`; empty where it is absent."""
        return Value(self.node.input[index] if index < len(self.node.input) else "", self)

    def attribute(self, name: str) -> AttributeProto | None:
        """Return the attribute itself, to copy it; None where it is absent.

        It may be a reference, which has no value: see `value`.
        """
        return attributes.find(self.node, name)

    def value(self, name: str, default: Any = None) -> Any:
        """Return the attribute's value, or `default`.

        Raises:
            Blocked: it refers to an attribute of the function that calls set differently.
        """
        value = self.known_value(name, default)
        if value is UNKNOWN:
            raise Blocked(
                f"its attribute {name!r} is set by the function's callers, not all in one way",
                "give it the same value in every call",
            )
        return value

    def known_value(self, name: str, default: Any = None) -> Any:
        """Return the attribute's value, `default` or `UNKNOWN`; see `Calls.resolve_attribute`."""
        attribute = self._resolvable(name)
        return self._facts.calls.resolve_attribute(self._scope, attribute, default)

    def choice(self, name: str, default: str, choices: Collection[str]) -> str:
        """Return the value of an attribute that is one of a few words, or `default`.

        Raises:
            Blocked: it is another word, or not known; see `value`.
        """
        found: str = self.value(name, default)
        if found not in choices:
            raise Blocked(
                f"its {name}={found!r} does not exist",
                f"mend the model: set it to {' or '.join(sorted(choices))}",
            )
        return found

    def possible_values(self, name: str, default: Any = None) -> list[Any]:
        """Return every value that the attribute may have: one, or one for each way of calling.

        Raises:
            Blocked: they are not known.
        """
        attribute = self._resolvable(name)
        found = self._facts.calls.possible_values(self._scope, attribute, default)
        return found or [self.value(name, default)]

    def _resolvable(self, name: str) -> AttributeProto | None:
        """Return the attribute, whose value the calls of the function may decide."""
        attribute = self.attribute(name)
        if attribute is not None and attribute.ref_attr_name:
            # The value of a reference depends on the calls, not on the node alone.
            self._lookups.note(more=True)
        return attribute

    def constant(self, name: str) -> Array | None:
        """Return a value, if it is the same for every run; see `Constants.constant`."""
        self._lookups.note(name)
        return self._facts.constant(self._scope, name)

    def elements(self, name: str) -> tuple[int | None, ...] | None:
        """Return the elements of a list of integers, None for those known at run time only.

        Returns:
            None where their number is not known.
        """
        self._lookups.note(name, more=True)
        return self._facts.elements(self._scope, name)

    def kept_dims(self, sizes: str, data: str) -> tuple[bool, ...]:
        """Return for each of `sizes` whether it is `data`'s dimension of the same index."""
        self._lookups.note(types=True, more=True)
        return self._facts.kept_dims(self._scope, sizes, data)

    def producer(self, name: str) -> NodeProto | None:
        """Return the node of the model that computes the value; None if none does."""
        self._lookups.note(more=True)
        self._ask_beyond()
        owner = self._scope.resolve(name) if name else None
        return None if owner is None else owner.producer(name)

    def maker(self, name: str) -> NodeProto | None:
        """Return the node that computes the value, emitted or the model's; None if none does."""
        self._lookups.note(more=True)
        self._ask_beyond()
        emitted = self._facts.generated.node(self._scope, name)
        return self.producer(name) if emitted is None else emitted[1]

    def made_by(self, name: str) -> str:
        """Return the operator that computes the value, emitted or the model's; empty for none."""
        self._lookups.note(more=True)
        return self._facts.made_by(self._scope, name)

    def initializer_dims(self, name: str) -> tuple[int, ...] | None:
        """Return the dimensions of an initializer, which callers may override by an input."""
        self._lookups.note(more=True)
        return self._facts.initializer_dims(self._scope, name)

    def is_read(self, name: str) -> bool:
        """Return whether anything in the model reads the value."""
        if not name:
            return False
        self._lookups.note(more=True)
        return self._facts.is_read(self._scope, name)

    def readers(self, name: str) -> Sequence[NodeProto] | None:
        """Return the nodes that read the value; None if they are not known, as for new values."""
        if self._scope.function is not None:
            return None
        self._lookups.note(more=True)
        self._ask_beyond()
        if self._facts.generated.node(self._scope, name) is not None:
            return None
        beside = [node for node in self.beside if name in node.input[:]]
        return (*self._facts.readers(self._scope, name), *beside)

    def type(self, name: str) -> ValueType | None:
        """Return the value's type as far as it is known."""
        self._lookups.note(types=True, more=True)
        return self._facts.type(self._scope, name)

    def elem_type(self, name: str) -> int | None:
        """Return a tensor's `TensorProto.DataType`, if known."""
        self._lookups.note(types=True)
        return self._facts.elem_type(self._scope, name)

    def kind(self, name: str) -> str | None:
        """Return the value's type as schemas spell it, if known."""
        self._lookups.note(types=True)
        return self._facts.kind(self._scope, name)

    def allowed_kinds(self, name: str) -> frozenset[str] | None:
        """Return the types that a value of unknown type may have, as schemas spell them."""
        self._lookups.note(types=True, more=True)
        return self._facts.allowed_kinds(self._scope, name)

    def rank(self, name: str) -> int | None:
        """Return the value's rank, if known."""
        self._lookups.note(types=True, more=True)
        return self._facts.rank(self._scope, name)

    def specialised_rank(self, name: str) -> int | None:
        """Return the value's rank; None where it is known at run time only, in every call.

        Raises:
            Blocked: see `require_specialised`.
        """
        rank = self.rank(name)
        if rank is None:
            self.require_specialised(f"the rank of {name!r}")
        return rank

    def require_specialised(self, fact: str) -> None:
        """Raise unless a fact stays unknown even if the function is specialised for its calls.

        A known fact takes fewer nodes than one that is computed at run time.

        Raises:
            Blocked: the fact may be known in a copy of the function for some of its calls.
        """
        function = self._scope.function
        if function is None:
            return
        from onnxreduce_cli.model.types.specialisation import calls_differ

        self._lookups.note(more=True)
        self._ask_beyond()
        if calls_differ(self._facts, function):
            raise Blocked(
                f"{fact} is not the same in all calls of the function", "inline the function"
            )

    def need_rank(self, name: str, purpose: str) -> int:
        """Return the value's rank.

        Raises:
            Blocked: it is not known; `purpose` says what it is needed for.
        """
        rank = self.rank(name)
        if rank is None:
            raise Blocked(
                f"the rank of {name!r} is not known, and {purpose}",
                "state its shape in the model's value_info or inputs",
                rank_of=name,
            )
        return rank

    def need_elem_type(self, name: str, purpose: str) -> int:
        """Return the value's `TensorProto.DataType`.

        Raises:
            Blocked: it is not known; `purpose` says what it is needed for.
        """
        elem_type = self.elem_type(name)
        if elem_type is None:
            raise Blocked(
                f"the dtype of {name!r} is not known, and {purpose}",
                "state its type in the model's value_info",
                dtype_of=name,
            )
        self._check_type(name)
        return elem_type

    def _check_type(self, name: str) -> None:
        """Raise `Blocked` where an input has a type that the operator does not take."""
        op_type, opset = self.node.op_type, self.source_opset
        if name not in self.node.input or not schemas.exists(op_type, opset):
            return
        place = list(self.node.input).index(name)
        kind = self.kind(name)
        if kind is not None and not schemas.takes(op_type, opset, place, kind):
            raise Blocked(
                f"its input {name!r} is {kind}, which {op_type} does not take",
                "mend the model: put a Cast before it",
            )

    def argument_is_set(self, name: str) -> bool:
        """Return whether all calls of the function give its attribute `name`; False if none does.

        Raises:
            Blocked: some calls give it, others do not.
        """
        function = self._scope.function
        assert isinstance(function, FunctionProto)
        self._lookups.note(more=True)
        given = {value is not None for _, value in self._facts.calls.arguments(function, name)}
        if len(given) > 1:
            raise Blocked(
                f"calls of the function give its attribute {name!r}, others leave it out",
                "give it in every call",
            )
        return True in given or (not given and name in function.attribute)

    def subgraph_types(self, name: str) -> list[ValueType | None]:
        """Return the types of the outputs of the graph in attribute `name`, as far as known."""
        attribute = self.attribute(name)
        assert attribute is not None
        self._lookups.note(types=True, more=True)
        self._ask_beyond()
        facts, graph = self._facts, attribute.g
        inner = facts.inner(graph) or Scope(graph, self._scope, self.source_opset, name)
        return [facts.type(inner, output.name) for output in graph.output]

    def tensor(self, name: str) -> TensorProto | None:
        """Return the tensor of a constant of any size; None where there is none."""
        self._lookups.note(more=True)
        self._ask_beyond()
        owner = self._scope.resolve(name) if name else None
        if owner is None or name in owner.inputs:
            return None
        producer = owner.producer(name)
        if producer is None:
            return owner.initializers.get(name)
        value = attributes.find(producer, "value")
        return value.t if producer.op_type == "Constant" and value is not None else None

    def reference_behind(self, name: str) -> AttributeProto | None:
        """Return the attribute reference that a Constant node holds; None where it has none."""
        if self._scope.function is None:
            return None  # References exist in function bodies only.
        self._lookups.note(more=True)
        self._ask_beyond()
        reference = self._constants.references.get(name)
        if reference is not None:
            return reference
        producer = self.producer(name)
        if producer is None or producer.op_type != "Constant":
            return None
        return next((item for item in producer.attribute if item.ref_attr_name), None)
