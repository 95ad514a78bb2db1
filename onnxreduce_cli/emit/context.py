"""What a step sees of its node, and how it emits the nodes that replace it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, helper

from onnxreduce_cli.emit.builder import Operators, Value, check, fill
from onnxreduce_cli.model import attributes
from onnxreduce_cli.model.calls import UNKNOWN
from onnxreduce_cli.model.conversion_facts import ConversionFacts
from onnxreduce_cli.model.edit import Constants
from onnxreduce_cli.model.names import Names
from onnxreduce_cli.model.scope import Scope
from onnxreduce_cli.model.specialisation import could_know_more
from onnxreduce_cli.model.values import ValueType, numpy_dtype, tensor_type

Array = npt.NDArray[Any]


class Blocked(Exception):  # noqa: N818 - an outcome, not an error
    """There is no way across the boundary for this node.

    Attributes:
        reason: why, as the end of a sentence that begins with the node.
        advice: what the user can do about it; may be empty.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice


class Asked(IntEnum):
    """What steps asked that tells apart nodes alike in all but names; each includes the former."""

    NOTHING = 0
    #: The kinds of a node's inputs and outputs.
    KINDS = 1
    #: Other facts about values, or a new name.
    MORE = 2


@dataclass(frozen=True)
class Workspace:
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
    drafts: GraphProto = field(default_factory=GraphProto)


class Emitted(NamedTuple):
    """A node that a step emitted.

    Attributes:
        node: the node.
        opset: the opset by which it is read; the engine takes it on from there.
    """

    node: NodeProto
    opset: int


@dataclass
class _Replacement:
    """What a step makes of its node; one for all bindings of a context."""

    emitted: list[Emitted] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    taken_over: dict[str, str] = field(default_factory=dict)
    words: str = ""
    asked: Asked = Asked.NOTHING


class Context:
    """One node on its way across one boundary, bound to the opset by which new nodes are read.

    The engine binds it to the far side of the boundary. A step that replaces the node by operators
    that came later, or are read as they were at another opset, binds it to that with `at`; the
    steps of what it emits take that across the boundary then.

    Attributes:
        node: the node, as it is on the near side; not to be changed.
        source_opset: the opset by which the node is read on the near side.
        target_opset: the opset that the whole conversion leads to.
        op: the operators of the opset that emitted nodes are read by; see `Operators`.
        emitted: the nodes that replace it, in order.
        initializers: the initializers that replace it.
        warnings: remarks for the user about this site.
        taken_over: the names of graphs within what is emitted, each with that of the node's
            attribute whose graph it takes over: with the nodes as they are here, and maybe others
            around.
    """

    def __init__(
        self,
        node: NodeProto,
        scope: Scope,
        source_opset: int,
        opset: int,
        target_opset: int,
        base: str,
        workspace: Workspace,
        replacement: _Replacement | None = None,
    ) -> None:
        made = _Replacement() if replacement is None else replacement
        self.node = node
        self.scope = scope
        self.source_opset = source_opset
        self.target_opset = target_opset
        self.emitted = made.emitted
        self.initializers = made.initializers
        self.warnings = made.warnings
        self.taken_over = made.taken_over
        self._opset = opset
        self._made = made
        self._base = base
        self._constants = workspace.constants
        self._workspace = workspace

    def at(self, opset: int) -> Context:
        """The same context, whose new nodes are read by another opset.

        What was emitted before stays as it is, and what either emits replaces the one node.
        """
        return Context(
            self.node,
            self.scope,
            self.source_opset,
            opset,
            self.target_opset,
            self._base,
            self._workspace,
            self._made,
        )

    @property
    def op(self) -> Builder:
        """The operators of the opset by which emitted nodes are read."""
        return Builder(self, self._opset)

    @property
    def words(self) -> str:
        """What is done here, for people, where the step's own words don't say it."""
        return self._made.words

    @words.setter
    def words(self, words: str) -> None:
        self._made.words = words

    @property
    def asked(self) -> Asked:
        """What has been asked about the node's values so far."""
        return self._made.asked

    @property
    def _facts(self) -> ConversionFacts:
        self._made.asked = Asked.MORE
        return self._workspace.facts

    @property
    def has_initializers(self) -> bool:
        """Whether the scope can hold constants as initializers.

        A function body cannot, and before IR version 4 a graph's initializers are its inputs too.
        """
        return not isinstance(self.scope.container, FunctionProto) and (
            self._workspace.ir_version >= 4
        )

    @property
    def in_main_graph(self) -> bool:
        """Whether the scope is the main graph, not one within it nor a function's body."""
        return self.scope.parent is None and not isinstance(self.scope.container, FunctionProto)

    # What is known

    def input(self, index: int) -> Value:
        """The node's input at `index`; empty where it is absent."""
        return Value(self.node.input[index] if index < len(self.node.input) else "", self)

    def attribute(self, name: str) -> AttributeProto | None:
        """The attribute as it stands, maybe a reference; None where it is absent."""
        return attributes.find(self.node, name)

    def value(self, name: str, default: Any = None) -> Any:
        """The attribute's value, or `default`.

        Raises:
            Blocked: the attribute refers to one of the function's, which calls set differently.
        """
        attribute = self.attribute(name)
        if attribute is None:
            return default
        if not attribute.ref_attr_name:
            return attributes.value(attribute)
        value = self._facts.calls.resolve_attribute(self.scope, attribute)
        if value is UNKNOWN:
            raise Blocked(
                f"its attribute {name!r} is set by the function's callers, not all in one way",
                "give it the same value in every call",
            )
        return default if value is None else value

    def possible_values(self, name: str, default: Any = None) -> list[Any]:
        """Every value that the attribute may have: one, or one for each call of the function.

        Raises:
            Blocked: a value is not known, or nothing calls the function.
        """
        attribute = self.attribute(name)
        function = self.scope.function
        if attribute is None or not attribute.ref_attr_name or function is None:
            return [self.value(name, default)]
        found = [
            default if given is None else self._facts.calls.resolve_attribute(caller, given)
            for caller, given in self._facts.calls.arguments(function, attribute.ref_attr_name)
        ]
        return [self.value(name, default)] if not found or UNKNOWN in found else found

    def constant(self, name: str) -> Array | None:
        """The value, if it is the same for every run; see `Constants.constant`."""
        return self._facts.constant(self.scope, name)

    def elements(self, name: str) -> tuple[int | None, ...] | None:
        """The elements of a list of integers, None for each that is only known at run time.

        Returns:
            None where not even their number is known.
        """
        return self._facts.elements(self.scope, name)

    def kept_dims(self, sizes: str, data: str) -> tuple[bool, ...]:
        """For each of a list of sizes, whether `data` has the same, whatever that is."""
        return self._facts.kept_dims(self.scope, sizes, data)

    def producer(self, name: str) -> NodeProto | None:
        """The node of the model that makes the value, if one does."""
        self._made.asked = Asked.MORE
        owner = self.scope.resolve(name) if name else None
        return None if owner is None else owner.producers.get(name)

    def is_read(self, name: str) -> bool:
        """Whether anything in the model reads the value."""
        return bool(name) and self._facts.model.is_read(self.scope, name)

    def type(self, name: str) -> ValueType | None:
        """The value's type as far as it is known."""
        return self._facts.type(self.scope, name)

    def elem_type(self, name: str) -> int | None:
        """A tensor's `TensorProto.DataType`, if known."""
        self._made.asked = max(self._made.asked, Asked.KINDS)
        return self._workspace.facts.elem_type(self.scope, name)

    def kind(self, name: str) -> str | None:
        """The value's type as schemas spell it, if known."""
        self._made.asked = max(self._made.asked, Asked.KINDS)
        return self._workspace.facts.kind(self.scope, name)

    def allowed_kinds(self, name: str) -> frozenset[str] | None:
        """The types that a value of unknown type may have, as schemas spell them."""
        return self._facts.model.allowed_kinds(self.scope, name)

    def rank(self, name: str) -> int | None:
        """The value's rank, if known."""
        found = self.type(name)
        return None if found is None else found.rank

    def settled_rank(self, name: str) -> int | None:
        """The value's rank; None where it is only known at run time, see `settle`."""
        rank = self.rank(name)
        if rank is None:
            self.settle(f"the rank of {name!r}")
        return rank

    def settle(self, what: str) -> None:
        """Let a function whose calls differ be specialised before a step does without a fact.

        What is known makes for less than what is found out at run time.

        Raises:
            Blocked: a copy of the function for some of its calls may know it.
        """
        function = self.scope.function
        if function is not None and could_know_more(self._facts.model, function):
            raise Blocked(
                f"{what} is not the same in all calls of the function", "inline the function"
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
            )
        return elem_type

    def argument_is_set(self, name: str) -> bool:
        """Whether the function's attribute `name` has a value in every call, or in none.

        Raises:
            Blocked: some calls give one, others don't.
        """
        function = self.scope.function
        assert isinstance(function, FunctionProto)
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
        facts, graph = self._facts, attribute.g
        inner = facts.model.inner(graph) or Scope(graph, self.scope, self.source_opset, name)
        return [facts.type(inner, output.name) for output in graph.output]

    def warn(self, text: str) -> None:
        """Leave a remark for the user about this site."""
        self.warnings.append(text)

    # What replaces the node

    def fresh(self, hint: str) -> Value:
        """A new value name, derived from the node's own."""
        self._made.asked = Asked.MORE
        return Value(self._fresh(hint), self)

    def _fresh(self, hint: str) -> str:
        return self._workspace.names.fresh(f"{self._base}_{hint}")

    def replace(
        self,
        op_type: str | None = None,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        *,
        drop: Sequence[str] = (),
        keep: Sequence[str] | None = None,
        **values: Any,
    ) -> NodeProto:
        """Emit the node that stands in for the original: its name, documentation, metadata.

        Args:
            op_type: the operator; by default unchanged.
            inputs: the inputs; by default unchanged; trailing empty names are dropped.
            outputs: the outputs; by default unchanged.
            drop: attributes to leave out.
            keep: attributes to keep, all others are left out; by default all are kept.
            values: attributes to set; None leaves one out.
        """
        if op_type is not None:
            check(op_type, self._opset)
        node = self._workspace.drafts.node.add()
        node.CopyFrom(self.node)
        if op_type is not None:
            node.op_type = op_type
        unwanted = (*drop, *values)
        if keep is not None:
            unwanted += tuple(item.name for item in node.attribute if item.name not in keep)
        if unwanted:
            attributes.drop(node, unwanted)
        if inputs is not None:
            del node.input[:]
        fill(node, inputs or (), values)
        if outputs is None:
            # What it gives keeps the types it has.
            self.emitted.append(Emitted(node, self._opset))
        else:
            node.output[:] = outputs
            self._accept(node)
        return node

    def state_type(self, name: str, like: ValueType) -> None:
        """Make the type of a value that was emitted known, where shape inference cannot tell it."""
        self._facts.declare_type(self.scope, name, like)

    def again(self, node: NodeProto, inputs: Sequence[str], outputs: Sequence[str]) -> NodeProto:
        """Emit a node once more, with other inputs and outputs."""
        copy = self._workspace.drafts.node.add()
        copy.CopyFrom(node)
        copy.input[:] = inputs
        copy.output[:] = outputs
        self._accept(copy)
        return copy

    @property
    def unchanged(self) -> bool:
        """Whether the step left the node as it is."""
        return not self.emitted and not self.initializers

    def move_to_initializer(self, tensor: TensorProto) -> None:
        """Let an initializer with the node's output's name take its place."""
        copy = TensorProto()
        copy.CopyFrom(tensor)
        copy.name = self.node.output[0]
        self.initializers.append(copy)

    def tensor(self, name: str) -> TensorProto | None:
        """The tensor that holds a constant, however large; None where there is none."""
        self._made.asked = Asked.MORE
        owner = self.scope.resolve(name) if name else None
        if owner is None or name in owner.inputs:
            return None
        producer = owner.producers.get(name)
        if producer is None:
            return owner.initializers.get(name)
        value = attributes.find(producer, "value")
        return value.t if producer.op_type == "Constant" and value is not None else None

    def taken_for(self, tensor: TensorProto, elem_type: int, dims: Sequence[int]) -> Value:
        """A constant of another dtype with the bytes of a tensor, which are not looked at."""
        copy = self._workspace.drafts.initializer.add()
        copy.CopyFrom(tensor)
        copy.data_type = elem_type
        copy.dims[:] = dims
        copy.name = self.fresh("bytes")
        if not self.has_initializers:
            return self.op.Constant(value=copy)
        self.initializers.append(copy)
        self._facts.declare_type(self.scope, copy.name, tensor_type(elem_type, tuple(dims)))
        return Value(copy.name, self)

    def array(self, values: Array | Sequence[int], hint: str) -> Value:
        """A constant of the scope: an initializer, or a Constant node in a function body.

        Equal constants of one scope are one. A sequence of ints becomes an int64 tensor.
        """
        quick = None
        if isinstance(values, (list, tuple)):
            quick = (tuple(values),)
            name = self._constants.get(quick)
            if name is not None:
                return Value(name, self)
        array = np.asarray(values, np.int64 if quick is not None else None)
        elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        strings = elem_type == TensorProto.STRING
        key = (elem_type, array.shape, (*array.flat,) if strings else array.tobytes())
        name = self._constants.get(key)
        if name is None:
            name = self._fresh(hint)
            self._constants.add(key, name)
            self._constants.arrays[name] = (array, elem_type)
            self._workspace.facts.define(self.scope, name, array, elem_type)
        if quick is not None:
            self._constants.add(quick, name)
        return Value(name, self)

    def scalar(self, value: float, hint: str, elem_type: int = 0) -> Value:
        """A constant of rank 0; by default int64 for an int and float for a float."""
        if elem_type:
            dtype = numpy_dtype(elem_type)
        else:
            dtype = np.dtype(np.int64 if isinstance(value, int) else np.float32)
        return self.array(np.array(value, dtype), hint)

    def reference(self, attribute: AttributeProto, hint: str) -> Value:
        """A constant that holds what an attribute reference of the function stands for."""
        key = ("reference", attribute.ref_attr_name)
        name = self._constants.get(key)
        if name is None:
            name = self.fresh(hint)
            self._constants.add(key, name)
            self._constants.references[name] = attribute
            ints = ValueType("tensor(int64)", TensorProto.INT64, (None,))
            self._facts.declare_type(self.scope, name, ints)
        return Value(name, self)

    def reference_behind(self, name: str) -> AttributeProto | None:
        """The attribute reference that a constant holds; None where it holds none."""
        self._made.asked = Asked.MORE
        reference = self._constants.references.get(name)
        if reference is not None:
            return reference
        producer = self.producer(name)
        if producer is None or producer.op_type != "Constant":
            return None
        return next((item for item in producer.attribute if item.ref_attr_name), None)

    def _accept(self, node: NodeProto) -> None:
        self.emitted.append(Emitted(node, self._opset))
        own = list(self.node.output)
        names = [name for name in node.output if name not in own]
        self._facts.declare(self.scope, node, self._opset, names)


class Builder(Operators):
    """The operators of one opset, which a context emits."""

    def __init__(self, context: Context, opset: int) -> None:
        self.opset = opset
        self._context = context

    def _fresh(self, op_type: str) -> str:
        self._context._made.asked = Asked.MORE
        return self._context._fresh(op_type)

    def _new(self) -> NodeProto:
        return self._context._workspace.drafts.node.add()

    def _accept(self, node: NodeProto, like: ValueType | None) -> Context:
        context = self._context
        context._accept(node)
        if like is not None:
            context.state_type(node.output[0], like)
        return context
