"""What a step may ask about its node and the values around it."""

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
from onnxreduce_cli.model.types.conversion_facts import ConversionFacts

Array = npt.NDArray[Any]


class Workspace(NamedTuple):
    """What all steps in one scope of the model share.

    Attributes:
        facts: what is known of the model's values.
        names: the names taken in the scope's tree.
        constants: the constants that steps add to the scope.
        ir_version: the IR version that the model will have.
        drafts: what holds new nodes: in one message they cost half of what each costs alone.
    """

    facts: ConversionFacts
    names: Names
    constants: Constants
    ir_version: int
    drafts: GraphProto


@dataclass(slots=True)
class Lookups:
    """What the steps of one node of the model looked up so far, as far as it must be sound.

    Each question of `NodeFacts` notes itself here.

    Attributes:
        constants: the names of the values of which the elements were looked up; never a `Value`,
            which knows whose lookups these are, so that neither would be freed at once.
        types: whether the type of a value was, or its shape.
        more: whether what they emit may depend on more than the node's operator and attributes,
            the elements of `constants`, and the kinds of its inputs and outputs.
    """

    constants: set[str] = field(default_factory=set)
    types: bool = False
    more: bool = False

    def note(self, *constants: str, types: bool = False, more: bool = False) -> None:
        """Note a question: the constants that it read, whether for types, and for more."""
        self.constants.update(map(str, constants))
        self.types |= types
        self.more |= more


class NodeFacts:
    """A node, and what is known of it and of the values around it; questions emit nothing.

    Attributes:
        node: the node, as it is on the near side; not to be changed.
        scope: the graph or function body that holds it.
        source_opset: the opset by which the node is read on the near side.
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
        self.scope = scope
        self.source_opset = source_opset
        self._workspace = workspace
        self._constants = workspace.constants
        self._lookups = lookups

    def about(self, node: NodeProto) -> NodeFacts:
        """Another node whose values this one's scope sees."""
        return NodeFacts(node, self.scope, self.source_opset, self._workspace, self._lookups)

    @property
    def lookups(self) -> Lookups:
        """What was looked up so far."""
        return self._lookups

    @property
    def _facts(self) -> ConversionFacts:
        return self._workspace.facts

    @property
    def has_initializers(self) -> bool:
        """Return whether the scope can hold constants as initializers.

        A function body cannot, and before IR version 4 a graph's initializers are its inputs too.
        """
        return not isinstance(self.scope.container, FunctionProto) and (
            self._workspace.ir_version >= 4
        )

    @property
    def in_main_graph(self) -> bool:
        """Return whether the scope is the main graph, not one within it nor a function's body."""
        return self.scope.parent is None and not isinstance(self.scope.container, FunctionProto)

    def input(self, index: int) -> Value:
        """The node's input at `index`; empty where it is absent."""
        return Value(self.node.input[index] if index < len(self.node.input) else "", self)

    def attribute(self, name: str) -> AttributeProto | None:
        """The attribute as it stands, to be handed on; None where it is absent.

        It may be a reference, which holds no value: see `value`.
        """
        return attributes.find(self.node, name)

    def value(self, name: str, default: Any = None) -> Any:
        """The attribute's value, or `default`.

        Raises:
            Blocked: the attribute refers to one of the function's, which calls set differently.
        """
        value = self.known_value(name, default)
        if value is UNKNOWN:
            raise Blocked(
                f"its attribute {name!r} is set by the function's callers, not all in one way",
                "give it the same value in every call",
            )
        return value

    def known_value(self, name: str, default: Any = None) -> Any:
        """The attribute's value, `default`, or `UNKNOWN`; see `Calls.resolve_attribute`."""
        attribute = self.attribute(name)
        if attribute is not None and attribute.ref_attr_name:
            # What a reference stands for follows from the calls, not from the node alone.
            self._lookups.note(more=True)
        return self._facts.calls.resolve_attribute(self.scope, attribute, default)

    def choice(self, name: str, default: str, choices: Collection[str]) -> str:
        """The value of an attribute that is one of a few words, or `default`.

        Raises:
            Blocked: it is another, or not known; see `value`.
        """
        found: str = self.value(name, default)
        if found not in choices:
            raise Blocked(f"its {name}={found!r} does not exist", "mend the model")
        return found

    def possible_values(self, name: str, default: Any = None) -> list[Any]:
        """Every value that the attribute may have: one, or one for each call of the function.

        Raises:
            Blocked: a value is not known, or nothing calls the function.
        """
        attribute = self.attribute(name)
        function = self.scope.function
        if attribute is None or not attribute.ref_attr_name or function is None:
            return [self.value(name, default)]
        self._lookups.note(more=True)
        found = [
            self._facts.calls.resolve_attribute(caller, given, default)
            for caller, given in self._facts.calls.arguments(function, attribute.ref_attr_name)
        ]
        return [self.value(name, default)] if not found or UNKNOWN in found else found

    def constant(self, name: str) -> Array | None:
        """The value, if it is the same for every run; see `Constants.constant`."""
        self._lookups.note(name)
        return self._facts.constant(self.scope, name)

    def elements(self, name: str) -> tuple[int | None, ...] | None:
        """The elements of a list of integers, None for each that is only known at run time.

        Returns:
            None where not even their number is known.
        """
        self._lookups.note(name, more=True)
        return self._facts.elements(self.scope, name)

    def kept_dims(self, sizes: str, data: str) -> tuple[bool, ...]:
        """Return for each of the int64 `sizes` whether it is that dimension of `data`."""
        self._lookups.note(types=True, more=True)
        return self._facts.kept_dims(self.scope, sizes, data)

    def producer(self, name: str) -> NodeProto | None:
        """The node of the model that makes the value, if one does."""
        self._lookups.note(more=True)
        owner = self.scope.resolve(name) if name else None
        return None if owner is None else owner.producer(name)

    def maker(self, name: str) -> NodeProto | None:
        """The node that makes the value, if one does: one that was emitted, or the model's."""
        self._lookups.note(more=True)
        emitted = self._facts.generated(self.scope, name)
        return self.producer(name) if emitted is None else emitted[1]

    def is_read(self, name: str) -> bool:
        """Return whether anything in the model reads the value."""
        if not name:
            return False
        self._lookups.note(more=True)
        return self._facts.model.is_read(self.scope, name)

    def readers(self, name: str) -> Sequence[NodeProto] | None:
        """The nodes that read the value; None where they are not known, as of one generated."""
        if self.scope.function is not None:
            return None
        self._lookups.note(more=True)
        if self._facts.generated(self.scope, name) is not None:
            return None
        return self._facts.model.readers(self.scope, name)

    def type(self, name: str) -> ValueType | None:
        """The value's type as far as it is known."""
        self._lookups.note(types=True, more=True)
        return self._facts.type(self.scope, name)

    def elem_type(self, name: str) -> int | None:
        """A tensor's `TensorProto.DataType`, if known."""
        self._lookups.note(types=True)
        return self._facts.elem_type(self.scope, name)

    def kind(self, name: str) -> str | None:
        """The value's type as schemas spell it, if known."""
        self._lookups.note(types=True)
        return self._facts.kind(self.scope, name)

    def allowed_kinds(self, name: str) -> frozenset[str] | None:
        """The types that a value of unknown type may have, as schemas spell them."""
        self._lookups.note(types=True, more=True)
        return self._facts.allowed_kinds(self.scope, name)

    def rank(self, name: str) -> int | None:
        """The value's rank, if known."""
        found = self.type(name)
        return None if found is None else found.rank

    def specialised_rank(self, name: str) -> int | None:
        """The value's rank; None where it is only known at run time in any call.

        Raises:
            Blocked: see `require_specialised`.
        """
        rank = self.rank(name)
        if rank is None:
            self.require_specialised(f"the rank of {name!r}")
        return rank

    def require_specialised(self, fact: str) -> None:
        """Have a function specialised for its calls before a step does without a fact.

        What is known takes fewer nodes than what is computed at run time.

        Raises:
            Blocked: a copy of the function for some of its calls may know it.
        """
        function = self.scope.function
        if function is None:
            return
        from onnxreduce_cli.model.types.specialisation import calls_differ

        self._lookups.note(more=True)
        if calls_differ(self._facts.model, function):
            raise Blocked(
                f"{fact} is not the same in all calls of the function", "inline the function"
            )

    def need_rank(self, name: str, purpose: str) -> int:
        """The value's rank.

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
        """The value's `TensorProto.DataType`.

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
        """Raise `Blocked` where a value is an input that the operator does not take."""
        op_type, opset = self.node.op_type, self.source_opset
        if name not in self.node.input or not schemas.exists(op_type, opset):
            return
        place = list(self.node.input).index(name)
        kind = self.kind(name)
        if kind is not None and not schemas.takes(op_type, opset, place, kind):
            raise Blocked(
                f"its input {name!r} is {kind}, which {op_type} does not take", "mend the model"
            )

    def argument_is_set(self, name: str) -> bool:
        """Return whether the function's attribute `name` has a value in every call (else in none).

        Raises:
            Blocked: some calls give one, others don't.
        """
        function = self.scope.function
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
        """The types of what the graph in attribute `name` gives, as far as they are known."""
        attribute = self.attribute(name)
        assert attribute is not None
        self._lookups.note(types=True, more=True)
        facts, graph = self._facts, attribute.g
        inner = facts.model.inner(graph) or Scope(graph, self.scope, self.source_opset, name)
        return [facts.type(inner, output.name) for output in graph.output]

    def tensor(self, name: str) -> TensorProto | None:
        """The tensor that holds a constant, however large; None where there is none."""
        self._lookups.note(more=True)
        owner = self.scope.resolve(name) if name else None
        if owner is None or name in owner.inputs:
            return None
        producer = owner.producer(name)
        if producer is None:
            return owner.initializers.get(name)
        value = attributes.find(producer, "value")
        return value.t if producer.op_type == "Constant" and value is not None else None

    def reference_behind(self, name: str) -> AttributeProto | None:
        """The attribute reference that a constant holds; None where it holds none."""
        if self.scope.function is None:
            return None  # Only the attributes of a function are referred to.
        self._lookups.note(more=True)
        reference = self._constants.references.get(name)
        if reference is not None:
            return reference
        producer = self.producer(name)
        if producer is None or producer.op_type != "Constant":
            return None
        return next((item for item in producer.attribute if item.ref_attr_name), None)
