"""Fixing of dimensions, with the shapes and constants that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.changes import Change
from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.model.graph.dead_values import dead_values, names_read
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.edit import Edits, apply_edits, constant_node
from onnxreduce_cli.model.graph.fixed_dims import fix_dims
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.model.graph.values import ValueType, dtype_name, from_proto
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.skeleton import without_weights
from onnxreduce_cli.model.types.stated_shapes import FalseShape, mend_shapes
from onnxreduce_cli.text import count, listed

#: Operators whose outputs depend on shapes alone.
_OF_SHAPES = frozenset({"Shape", "Size"})

#: Constants of more elements are not sizes, and would make the model larger.
_MOST = 1024

#: How often constants are folded again: shapes follow from constants, and constants from shapes.
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class StaticShapes:
    """The changes of a model whose dimensions were fixed.

    Attributes:
        lines: a description of each change, in one line.
        changes: the nodes that constants replaced.
        removed: names of the values that nothing reads any more.
    """

    lines: tuple[str, ...]
    changes: tuple[Change, ...]
    removed: tuple[str, ...]


def fix_dimensions(model: ModelProto, dims: Mapping[str, int], base_dir: str) -> StaticShapes:
    """Fix dimensions of a model, in place.

    Requires: a model that passed the gate.

    Guarantees: the model computes what it did, on inputs of these sizes only; values that depend on
    shapes alone, and are known now, are constants; the stated shapes are as complete as inference
    can make them.

    Args:
        model: the model.
        dims: sizes by the names of dimensions.
        base_dir: the folder that external data is relative to.

    Raises:
        UsageError: the model has no such dimension.
        ConversionError: with these sizes a node cannot run, or its shape is not the stated one.
    """
    false = set(_false_shapes(model))
    values = fix_dims(model, dims)
    said = ", ".join(f"{name} = {size}" for name, size in dims.items())
    _check(model, base_dir, false, said)
    lines = [f"dimensions fixed: {said}, in the shapes of {count(values, 'value')}"]
    changes: list[Change] = []
    removed: list[str] = []
    for _ in range(_ROUNDS):
        model_input = ConversionInput.of(model, base_dir)
        found = _Folding(model_input)
        if not found.replaced:
            break
        changes += found.changes
        removed += found.apply()
    model_input = ConversionInput.of(model, base_dir)
    _state_shapes(model_input)
    return StaticShapes(tuple(lines), tuple(changes), tuple(removed))


def _false_shapes(model: ModelProto) -> tuple[FalseShape, ...]:
    return mend_shapes(without_weights(model))


def _check(model: ModelProto, base_dir: str, false: set[FalseShape], said: str) -> None:
    """Refuse sizes that contradict the model's computations."""
    for item in _false_shapes(model):
        if item not in false:
            raise ConversionError(
                f"with {said} the model states {item.name!r} to have shape {list(item.stated)}, "
                f"but what computes it gives {list(item.inferred)}: another size is right"
            )
    facts = (model_input := ConversionInput.of(model, base_dir)).facts
    for scope in model_input.scopes:
        if scope.opset is None:
            continue
        for node in scope.nodes:
            if not is_default(node.domain) or facts.calls.function_of(node) is not None:
                problem = _of_call(facts, scope, node)
            else:
                problem = facts.contradiction(scope, node)
                if problem is None and scope.function is not None:
                    # What a function states was not compared with what its calls make of it yet.
                    problem = facts.contradiction_of_sizes(scope, node)
            if problem is not None:
                where = f" in {scope.label}" if scope.label else ""
                raise ConversionError(
                    f"with {said} {node.op_type} node {scope.describe(node)}{where} cannot run: "
                    f"{problem}; another size is right, or mend the model"
                )


def _of_call(facts: Facts, scope: Scope, node: NodeProto) -> str | None:
    """Return which input a function states with another shape than a call gives it."""
    function = facts.calls.function_of(node)
    if function is None:
        return None
    stated = {info.name: from_proto(info.type) for info in function.value_info}
    for name, given in zip(function.input, node.input, strict=False):
        wanted, known = stated.get(name), facts.type(scope, given) if given else None
        if wanted is not None and known is not None and wanted.contradicts(known):
            return (
                f"the function states its input {name!r} to have shape {list(wanted.dims or ())}, "
                f"and {given!r} has {list(known.dims or ())}"
            )
    return None


class _Folding:
    """The nodes of a model that compute constants from shapes, and their replacements.

    Attributes:
        replaced: the nodes, each with its scope, and with the nodes or initializers that replace
            it; without either if only other replaced nodes read it.
        changes: the changes of those that constants replace.
    """

    def __init__(self, model_input: ConversionInput) -> None:
        self._input = model_input
        self._facts: Facts = model_input.facts
        self.replaced: list[tuple[Scope, NodeProto, list[NodeProto], list[TensorProto]]] = []
        self.changes: list[Change] = []
        self._unread: list[str] = []
        folded = list(self._folded())
        gone = {id(node) for _, node in folded}
        needed = self._needed(gone)
        for scope, node in folded:
            self._replace(scope, node, needed)

    def _folded(self) -> Iterator[tuple[Scope, NodeProto]]:
        derived: set[tuple[int, str]] = set()
        for scope in self._input.scopes:
            for node in scope.nodes:
                if not is_default(node.domain) or node.op_type in GRAPH_OPERATORS:
                    continue
                if self._facts.calls.function_of(node) is not None:
                    continue
                owners = [(scope.resolve(name), name) for name in node.input if name]
                of_shapes = node.op_type in _OF_SHAPES or any(
                    (id(owner), name) in derived for owner, name in owners
                )
                if not of_shapes:
                    continue
                derived.update((id(scope), name) for name in node.output)
                if all(self._is_foldable(scope, name) for name in node.output if name):
                    yield scope, node

    def _is_foldable(self, scope: Scope, name: str) -> bool:
        array = self._facts.constant(scope, name)
        if array is None or array.size > _MOST or array.dtype.kind not in "biuf":
            return False
        if not _is_made_by_node(scope, name):
            return True
        dtype = dtype_name(helper.np_dtype_to_tensor_dtype(array.dtype))
        return f"tensor({dtype})" in schemas.allowed_types("Constant", scope.opset or 0)["out0"]

    def _needed(self, gone: set[int]) -> set[tuple[int, str]]:
        """Return the values that nodes other than these read, each with its scope."""
        found: set[tuple[int, str]] = set()
        for scope in self._input.scopes:
            names = set(scope.outputs)
            for node in scope.nodes:
                if id(node) not in gone:
                    names.update(names_read(node))
            annotations = getattr(scope.container, "quantization_annotation", ())
            names.update(
                entry.value for item in annotations for entry in item.quant_parameter_tensor_names
            )
            owners = ((scope.resolve(name), name) for name in names if name)
            found.update((id(owner), name) for owner, name in owners if owner is not None)
        return found

    def _replace(self, scope: Scope, node: NodeProto, needed: set[tuple[int, str]]) -> None:
        names = [name for name in node.output if (id(scope), name) in needed]
        nodes, initializers = [], []
        for name in names:
            array = self._facts.constant(scope, name)
            assert array is not None
            tensor = numpy_helper.from_array(array, name)
            if _is_made_by_node(scope, name):
                nodes.append(constant_node(tensor))
            else:
                initializers.append(tensor)
        self.replaced.append((scope, node, nodes, initializers))
        if not names:
            self._unread += [name for name in node.output if name]
            return
        result = tuple(item.op_type for item in nodes)
        values = [self._facts.constant(scope, name) for name in names]
        edits = (f"always {listed([str(item.tolist()) for item in values if item is not None])}",)
        self.changes.append(
            Change(scope.describe(node), node.op_type, scope.label, edits, result, (), len(nodes))
        )

    def apply(self) -> Sequence[str]:
        """Edit the model, and return the names of the values of removed nodes."""
        done = [Site(scope, node, result=nodes) for scope, node, nodes, _ in self.replaced]
        bound = [
            name
            for training in self._input.model.training_info
            for entry in (*training.initialization_binding, *training.update_binding)
            for name in (entry.key, entry.value)
        ]
        # All nodes that only these read are removed: no operator has side effects.
        every = {id(node) for scope in self._input.scopes for node in scope.nodes}
        dead = dead_values(self._input.scopes, done, bound, every)
        edits: dict[int, Edits] = {}
        for scope, node, nodes, initializers in self.replaced:
            edit = edits.setdefault(id(scope), Edits())
            edit.replace(node, nodes, [], {}, initializers)
            # A value that became an initializer keeps its stated type.
            made = {name for item in nodes for name in item.output}
            made.update(tensor.name for tensor in initializers)
            edit.removed_values.update({*node.output} - made - {""})
        for scope in dead.scopes:
            edits.setdefault(id(scope), Edits()).remove(dead.of(scope))
        for scope in reversed(self._input.scopes):
            if id(scope) in edits:
                apply_edits(scope, edits[id(scope)])
        return (*self._unread, *dead.names)


def _is_made_by_node(scope: Scope, name: str) -> bool:
    """Return whether a Constant takes the place of a value, not an initializer.

    A function has no initializers, and what a graph gives is made by a node.
    """
    return scope.function is not None or name in scope.outputs


def _state_shapes(model_input: ConversionInput) -> None:
    """Complete the shapes that the model states in part with the sizes known now, in place."""
    for scope in model_input.scopes:
        graph = scope.container
        if not isinstance(graph, GraphProto):
            continue
        for info in (*graph.output, *graph.value_info):
            stated = from_proto(info.type) if info.HasField("type") else None
            known = model_input.facts.type(scope, info.name)
            if model_input.facts.stated.follows(scope, info.name):
                continue  # onnx may count it otherwise, and would refuse it.
            if stated is None or known is None or stated.dims is None or known.dims is None:
                continue
            if len(stated.dims) == len(known.dims) and stated.dims != known.dims:
                dims = tuple(
                    real if isinstance(real, int) else dim
                    for dim, real in zip(stated.dims, known.dims, strict=True)
                )
                info.type.CopyFrom(ValueType(stated.kind, stated.elem_type, dims).to_proto())
