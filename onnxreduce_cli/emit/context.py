"""A node that is to cross a boundary, and the nodes emitted to replace it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy as shallow_copy
from typing import Any, NamedTuple

import numpy as np
from onnx import AttributeProto, FunctionProto, NodeProto, TensorProto, helper

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Operators, Value, fill, require_operator
from onnxreduce_cli.emit.node_facts import Array, Lookups, NodeFacts, Workspace
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import MICROSOFT, is_default
from onnxreduce_cli.model.graph.edit import reference_node
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import ValueType, numpy_dtype, tensor_type


def as_array(values: Any, dtype: np.dtype[Any]) -> Array:
    """Return numbers as an array of a dtype.

    Raises:
        Blocked: one of them is out of its range.
    """
    try:
        return np.asarray(values, dtype)
    except (OverflowError, ValueError) as error:
        reason = f"numbers that it needs are beyond {dtype.name}"
        raise Blocked(reason, "mend the model: give it smaller numbers") from error


class EmittedNode(NamedTuple):
    """A node that a step emitted.

    Attributes:
        node: the node.
        opset: the opset by which it is read; the engine converts it from there on.
    """

    node: NodeProto
    opset: int


class _Description:
    """What a step says of its change; shared by all bindings of a context."""

    def __init__(self) -> None:
        self.text = ""
        self.is_of_finite = False


class Context(NodeFacts):
    """A node that is to cross a boundary, bound to the opset by which emitted nodes are read.

    The engine binds it to the far side of the boundary. A step that needs operators of another
    opset binds it to that with `at`; the emitted nodes are then converted by their own steps.

    Attributes:
        may_loop: whether control flow may be emitted that was not there.
        op: the operators of the opset by which emitted nodes are read; see `Operators`.
        emitted: the nodes that replace it, in order.
        initializers: the initializers that replace it.
        warnings: remarks for the user about this site.
        taken_over: for the name of a graph in an emitted node, the attribute whose graph it takes
            over: with the same nodes or none of them yet, and maybe others around them.
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
        lookups: Lookups,
        *,
        takes_initializers: bool = True,
        may_loop: bool = False,
    ) -> None:
        super().__init__(node, scope, source_opset, workspace, lookups)
        self._target_opset = target_opset
        self._takes_initializers = takes_initializers
        self.may_loop = may_loop
        self.emitted: list[EmittedNode] = []
        self.initializers: list[TensorProto] = []
        self.warnings: list[str] = []
        self.taken_over: dict[str, str] = {}
        self._opset = opset
        self._base = base
        self._description = _Description()

    def at(self, opset: int) -> Context:
        """Return this context bound to another opset.

        Both emit into the same list of nodes, which replace the one node.
        """
        bound = shallow_copy(self)
        bound._opset = opset
        return bound

    def afresh(self) -> Context:
        """Return this context as it was at first, without the nodes that were emitted."""
        fresh = shallow_copy(self)
        fresh.emitted, fresh.initializers, fresh.warnings = [], [], []
        fresh.taken_over = {}
        fresh._description = _Description()
        return fresh

    @property
    def target_opset(self) -> int:
        """The opset that the whole conversion leads to; what asks it is written for no other."""
        self.reaches(self._target_opset + 1)
        self.reaches(self._target_opset)
        return self._target_opset

    def reaches(self, opset: int) -> bool:
        """Return whether the whole conversion leads to an opset, or to a later one."""
        found = self._lookups.reached[opset] = self._target_opset >= opset
        return found

    @property
    def has_initializers(self) -> bool:
        """Return whether the scope can hold constants as initializers.

        A function body cannot, and before IR version 4 a graph's initializers are its inputs too.
        """
        if isinstance(self._scope.container, FunctionProto):
            return False
        self._lookups.initializers = self._takes_initializers
        return self._takes_initializers

    @property
    def op(self) -> Builder:
        """The operators of the opset by which emitted nodes are read."""
        return Builder(self, self._opset)

    @property
    def description(self) -> str:
        """The description of the change, beside what the emitted nodes show."""
        return self._description.text

    @description.setter
    def description(self, text: str) -> None:
        self._description.text = text

    def warn(self, text: str) -> None:
        """Add a remark for the user about this site, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def warn_of_infinite(self, text: str) -> None:
        """Add a remark that the replacement is not right for NaN or infinity: none is drawn."""
        self.warn(text)
        self._description.is_of_finite = True

    @property
    def is_of_finite(self) -> bool:
        """True if what was emitted is right for finite numbers alone."""
        return self._description.is_of_finite

    def fresh(self, hint: str) -> Value:
        """Return a new value name, derived from the node's own."""
        return Value(self.fresh_name(hint), self)

    def fresh_name(self, hint: str) -> str:
        """Return the same as plain text."""
        self._lookups.note(more=True)
        name = self._fresh(hint)
        if self._facts.questions is not None:
            self._facts.questions.fresh[name] = hint, None
        return name

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
        """Emit the node that replaces the original, with its name, documentation and metadata.

        Args:
            op_type: the operator; by default unchanged.
            inputs: the inputs; by default unchanged; trailing empty names are dropped.
            outputs: the outputs; by default unchanged.
            drop: attributes to leave out.
            keep: attributes to keep, all others are left out; by default all are kept.
            values: attributes to set; None leaves one out.
        """
        if op_type is not None and is_default(self.node.domain):
            require_operator(op_type, self._opset)
        node = self._workspace.drafts.node.add()
        node.CopyFrom(self.node)
        if op_type is not None:
            node.op_type = op_type
            if node.domain == MICROSOFT:
                node.ClearField("domain")
        unwanted = (*drop, *values)
        if keep is not None:
            unwanted += tuple(item.name for item in node.attribute if item.name not in keep)
        if unwanted:
            attributes.drop(node, unwanted)
        if inputs is not None:
            del node.input[:]
        fill(node, inputs or (), values)
        if outputs is None:
            # Its outputs keep their types.
            self.emitted.append(EmittedNode(node, self._opset))
        else:
            node.output[:] = outputs
            self._accept(node)
        return node

    def state_type(self, name: str, like: ValueType) -> None:
        """Record the type of an emitted value, where shape inference cannot find it."""
        generated = self._workspace.facts.generated
        if name in self.node.output and generated.key(self._scope, name) is None:
            generated.restated.add((id(self._scope.root), str(name)))
            self._ask_beyond()  # Equal nodes state the types of their own values.
        generated.declare_type(self._scope, name, like)

    def again(self, node: NodeProto, inputs: Sequence[str], outputs: Sequence[str]) -> NodeProto:
        """Emit a copy of a node with other inputs and outputs."""
        copy = self._workspace.drafts.node.add()
        copy.CopyFrom(node)
        copy.input[:] = inputs
        copy.output[:] = outputs
        self._accept(copy)
        return copy

    @property
    def unchanged(self) -> bool:
        """True if the step left the node as it is."""
        return not self.emitted and not self.initializers

    def move_to_initializer(self, tensor: TensorProto) -> None:
        """Replace the node by an initializer with the name of its output."""
        copy = TensorProto()
        copy.CopyFrom(tensor)
        copy.name = self.node.output[0]
        self.initializers.append(copy)

    def taken_for(self, tensor: TensorProto, elem_type: int, dims: Sequence[int]) -> Value:
        """Return a constant of dtype `elem_type` and shape `dims` with the bytes of a tensor."""
        copy = self._workspace.drafts.initializer.add()
        copy.CopyFrom(tensor)
        copy.data_type = elem_type
        copy.dims[:] = dims
        copy.name = self.fresh("bytes")
        if not self.has_initializers:
            return self.op.Constant(value=copy)
        self.initializers.append(copy)
        known = tensor_type(elem_type, tuple(dims))
        self._workspace.facts.generated.declare_type(self._scope, copy.name, known)
        return Value(copy.name, self)

    def array(self, values: Array | Sequence[int], hint: str) -> Value:
        """Return a constant of the scope: an initializer, or a Constant node in a function body.

        It has the dtype and the shape of the array; a sequence of n ints becomes int64 of shape
        [n]. Equal constants of a scope are shared.

        Raises:
            Blocked: an int is out of the range of int64.
        """
        name = quick = None
        if isinstance(values, (list, tuple)):
            quick = (tuple(values),)
            name = self._constants.get(quick)
        if name is None:
            array = np.asarray(values) if quick is None else as_array(values, np.dtype(np.int64))
            elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
            name = self._workspace.constant(self._scope, self._base, hint, array, elem_type)
            if quick is not None:
                self._constants.add(quick, name)
        if self._facts.questions is not None:
            self._facts.questions.fresh.setdefault(name, (hint, self._constants.arrays[name]))
        return Value(name, self)

    def scalar(self, value: float, hint: str, elem_type: int = 0) -> Value:
        """Return a constant of rank 0 in the dtype `elem_type`.

        By default that is int64 for an int and float for a float.
        """
        if elem_type:
            dtype = numpy_dtype(elem_type)
        else:
            dtype = np.dtype(np.int64 if isinstance(value, int) else np.float32)
        return self.array(as_array(value, dtype), hint)

    def reference(self, attribute: AttributeProto, hint: str) -> Value:
        """Return the value of an attribute of the function as a tensor, int64 of shape [n]."""
        self._ask_beyond()
        key = ("reference", attribute.ref_attr_name)
        name = self._constants.get(key)
        if name is None:
            self._lookups.note(more=True)
            name = self._fresh(hint)
            self._constants.add(key, name)
            self._constants.references[name] = attribute
            self._facts.generated.declare(self._scope, reference_node(name, attribute), 13, [name])
            ints = ValueType("tensor(int64)", TensorProto.INT64, (None,))
            self._facts.generated.declare_type(self._scope, name, ints)
        return Value(name, self)

    def _accept(self, node: NodeProto) -> None:
        self.emitted.append(EmittedNode(node, self._opset))
        own = list(self.node.output)
        names = [name for name in node.output if name not in own]
        self._lookups.note(more=True)
        self._workspace.facts.generated.declare(self._scope, node, self._opset, names)


class Builder(Operators):
    """The operators of one opset, emitted into a context."""

    def __init__(self, context: Context, opset: int) -> None:
        self.opset = opset
        self._context = context

    def _fresh(self, op_type: str) -> str:
        return self._context.fresh_name(op_type)

    def _new(self) -> NodeProto:
        return self._context._workspace.drafts.node.add()

    def _accept(self, node: NodeProto, like: ValueType | None) -> Context:
        context = self._context
        context._accept(node)
        if like is not None:
            context.state_type(node.output[0], like)
        return context
