"""Folding: what is the same in every run is computed, and a branch takes the place of its If."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.changes import Change
from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.branches import branch, can_place, placed
from onnxreduce_cli.model.graph.dead_values import dead_values, names_read
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.edit import Edits, apply_edits, constant_node
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.random_operators import is_random
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.model.graph.values import dtype_name, numpy_dtype
from onnxreduce_cli.model.types.dead_branches import is_dead, truth
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.stated_shapes import FalseShape, mend_shapes
from onnxreduce_cli.text import count, listed, shortened

Array = npt.NDArray[Any]

#: Operators whose outputs depend on shapes alone.
_OF_SHAPES = frozenset({"Shape", "Size"})

#: A constant of more elements is a weight: what is computed of it is left to the run.
_MOST = 1024

#: A result of more bytes is left to the run: the file would grow by it.
_MOST_BYTES = 1_000_000

#: Operators that are left: constants already, graphs, and the marks of a quantized model.
_LEFT = GRAPH_OPERATORS | {"Constant", "QuantizeLinear", "DequantizeLinear"}

#: From this opset on Identity takes all kinds of values.
_IDENTITY_OF_ANY = 16


@dataclass(slots=True)
class Folded:
    """What folding did to a model.

    Attributes:
        changes: the nodes that constants replaced, and the Ifs that a branch did.
        removed: names of the values that nothing reads any more.
        nodes: how many nodes were computed.
        constants: how many constants took their place.
        branches: the names of the branches that took the place of an If.
        mended: the stated shapes that were false.
    """

    changes: list[Change] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    nodes: int = 0
    constants: int = 0
    branches: list[str] = field(default_factory=list)
    mended: list[FalseShape] = field(default_factory=list)

    @property
    def lines(self) -> tuple[str, ...]:
        """What was done, in one line; a line for each stated shape that was false follows."""
        done = []
        if self.nodes:
            done.append(f"{count(self.nodes, 'node')} became {count(self.constants, 'constant')}")
        for name in sorted({*self.branches}, reverse=True):
            done.append(f"{self.branches.count(name)} If became its {name}")
        return (f"folded: {', '.join(done) or 'nothing'}", *map(str, self.mended))


def fold(model: ModelProto, base_dir: str, *, of_shapes: bool = False) -> Folded:
    """Compute what is the same in every run, in place.

    Requires: a model that passed the gate.

    Guarantees: the model computes what it did. Weights are not touched, and no constant of more
    than a megabyte is added. Folding the result again does nothing.

    Args:
        model: the model.
        base_dir: the folder that external data is relative to.
        of_shapes: fold only what depends on the shapes of values.
    """
    done = Folded()
    while True:
        model_input = ConversionInput.of(model, base_dir)
        constants = _Constants(model_input, of_shapes)
        # Ifs first: what only a branch that goes reads need not be computed.
        if ifs := list(_constant_ifs(model_input, constants)):
            _place_branches(model_input, ifs, done)
            done.mended += mend_shapes(model)
        elif constants.found:
            constants.replace(done)
        else:
            return done


class _FoldedNode(NamedTuple):
    """A node whose outputs are known, as arrays by their names."""

    scope: Scope
    node: NodeProto
    outputs: Mapping[str, Array]


class _Constants:
    """The nodes of a model that compute constants.

    Attributes:
        found: the nodes.
    """

    def __init__(self, model_input: ConversionInput, of_shapes: bool) -> None:
        self._input = model_input
        self._facts = model_input.facts
        self._of_shapes = of_shapes
        #: The values that depend on shapes, each with the identity of its scope.
        self._derived: set[tuple[int, str]] = set()
        self._known: dict[tuple[int, str], Array] = {}
        self.found: list[_FoldedNode] = []
        for scope in model_input.scopes:
            if scope.opset is None or is_dead(self._facts, scope):
                continue
            for node in scope.nodes:
                if self._is_left(scope, node) or (
                    not self._depends_on_shapes(scope, node) and of_shapes
                ):
                    continue
                outputs = self._outputs(scope, node)
                if outputs:
                    self.found.append(_FoldedNode(scope, node, outputs))
                    for name, array in outputs.items():
                        self._known[id(scope), name] = array

    def _is_left(self, scope: Scope, node: NodeProto) -> bool:
        return (
            node.op_type in _LEFT
            or not is_default(node.domain)
            or self._facts.calls.function_of(node) is not None
            or is_random(node, scope.opset, ())
        )

    def _depends_on_shapes(self, scope: Scope, node: NodeProto) -> bool:
        depends = node.op_type in _OF_SHAPES or any(
            (id(scope.resolve(name)), name) in self._derived for name in node.input if name
        )
        if depends:
            self._derived.update((id(scope), name) for name in node.output)
        return depends

    def _outputs(self, scope: Scope, node: NodeProto) -> dict[str, Array]:
        """Return the outputs of a node by name; none if one is unknown or cannot be a constant."""
        if any(self._is_weight(scope, name) for name in node.input if name):
            return {}
        names = [name for name in node.output if name]
        values = [self._facts.constant(scope, name) for name in names]
        found = {name: item for name, item in zip(names, values, strict=True) if item is not None}
        if len(found) < len(names):
            found = self._computed(scope, node, names)
        if all(_can_be_constant(scope, name, array) for name, array in found.items()):
            return found
        return {}

    def _computed(self, scope: Scope, node: NodeProto, names: Sequence[str]) -> dict[str, Array]:
        """Return the outputs that the executor computes; none if an input is unknown or a weight.

        The sizes of the outputs must be known before, so that none is too large.
        """
        if any(item.ref_attr_name for item in node.attribute):
            return {}
        given = {name: self._constant(scope, name) for name in node.input if name}
        inputs = {name: array for name, array in given.items() if array is not None}
        if len(inputs) < len(given) or not all(self._is_small(scope, name) for name in names):
            return {}
        return _run(node, scope.opset or 0, inputs)

    def condition(self, scope: Scope, node: NodeProto) -> bool | None:
        """Return the condition of an If; None if it is not known, or not to be folded."""
        name = node.input[0]
        if self._of_shapes and (id(scope.resolve(name)), name) not in self._derived:
            return None
        return truth(self._constant(scope, name))

    def _constant(self, scope: Scope, name: str) -> Array | None:
        """Return a value that is the same in every run; None if it is not known."""
        known = self._known.get((id(scope.resolve(name)), name))
        return self._facts.constant(scope, name) if known is None else known

    def _is_weight(self, scope: Scope, name: str) -> bool:
        """Return whether a value is a large constant that was not computed here."""
        owner = scope.resolve(name)
        if owner is None or (id(owner), name) in self._known:
            return False
        array = self._facts.constant(scope, name)
        return array is not None and array.size > _MOST

    def _is_small(self, scope: Scope, name: str) -> bool:
        known = self._facts.type(scope, name)
        if known is None or known.dims is None or not known.elem_type:
            return False
        sizes = [dim for dim in known.dims if isinstance(dim, int)]
        size = math.prod(sizes) * numpy_dtype(known.elem_type).itemsize
        return len(sizes) == len(known.dims) and size <= _MOST_BYTES

    def replace(self, done: Folded) -> None:
        """Put constants in the place of the nodes, in the model, and add them to what was done."""
        gone = {id(item.node) for item in self.found}
        needed = self._needed(gone)
        edits: dict[int, Edits] = {}
        sites: list[Site] = []
        for scope, node, outputs in self.found:
            nodes, initializers = [], []
            read = {name: outputs[name] for name in outputs if (id(scope), name) in needed}
            for name, array in read.items():
                tensor = numpy_helper.from_array(array, name)
                if _is_made_by_node(scope, name):
                    nodes.append(constant_node(tensor))
                else:
                    initializers.append(tensor)
            sites.append(Site(scope, node, result=nodes))
            edit = edits.setdefault(id(scope), Edits())
            edit.replace(node, nodes, [], {}, initializers)
            # A value that became an initializer keeps its stated type.
            unread = [name for name in outputs if name not in read]
            edit.removed_values.update(unread)
            done.nodes += 1
            done.constants += len(read)
            if read:
                done.changes.append(_constant_change(scope, node, read, len(nodes)))
            else:
                done.removed += unread
        # All nodes that only these read are removed: no operator has side effects.
        every = {id(node) for scope in self._input.scopes for node in scope.nodes}
        dead = dead_values(self._input.scopes, sites, self._input.bound(), every)
        for scope in dead.scopes:
            edits.setdefault(id(scope), Edits()).remove(dead.of(scope))
        _apply(self._input.scopes, edits)
        done.removed += dead.names

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


def _apply(found: Sequence[Scope], edits: Mapping[int, Edits]) -> None:
    for scope in reversed(found):  # Inner graphs first: edits move nodes, and graphs with them.
        if id(scope) in edits:
            apply_edits(scope, edits[id(scope)])


def _run(node: NodeProto, opset: int, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a node by name; none if the executor does not compute it."""
    from onnxreduce_cli.executor import Executor, ExecutorError
    from onnxreduce_cli.executor.errors import FAILURES

    names = [name for name in node.output if name]
    graph = GraphProto(
        name="constant",
        node=[node],
        initializer=[numpy_helper.from_array(array, name) for name, array in inputs.items()],
        output=[helper.make_empty_tensor_value_info(name) for name in names],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        found = Executor(model).run({})
    except (ExecutorError, *FAILURES):
        return {}  # The node stays, and fails in the run as it did.
    arrays = {name: item for name, item in found.items() if isinstance(item, np.ndarray)}
    return arrays if len(arrays) == len(names) else {}


def _can_be_constant(scope: Scope, name: str, array: Array) -> bool:
    if array.nbytes > _MOST_BYTES or array.dtype.kind not in "biuf" or not array.dtype.isbuiltin:
        return False
    if not _is_made_by_node(scope, name):
        return True
    return _tensor_kind(array.dtype) in _constant_kinds(scope.opset or 0)


def _tensor_kind(dtype: np.dtype[Any]) -> str:
    return f"tensor({dtype_name(helper.np_dtype_to_tensor_dtype(dtype))})"


@cache
def _constant_kinds(opset: int) -> frozenset[str]:
    return frozenset(schemas.allowed_types("Constant", opset)["out0"])


def _is_made_by_node(scope: Scope, name: str) -> bool:
    """Return whether a Constant takes the place of a value, not an initializer.

    A function has no initializers, and what a graph gives is made by a node.
    """
    return scope.function is not None or name in scope.outputs


def _constant_change(
    scope: Scope, node: NodeProto, outputs: Mapping[str, Array], nodes: int
) -> Change:
    edits = (f"always {listed([shortened(str(array.tolist())) for array in outputs.values()])}",)
    result = ("Constant",) * nodes
    return Change(scope.describe(node), node.op_type, scope.label, edits, result, (), nodes)


class _ConstantIf(NamedTuple):
    """An If that always takes the same branch."""

    scope: Scope
    node: NodeProto
    condition: bool


def _constant_ifs(model_input: ConversionInput, constants: _Constants) -> Iterator[_ConstantIf]:
    """Yield the Ifs that always take the same branch, without those in one that is yielded."""
    within: set[int] = set()
    for scope in model_input.scopes:
        if id(scope.parent) in within or id(scope.owner) in within:
            within.add(id(scope))
            continue
        for node in scope.nodes:
            if node.op_type != "If" or not is_default(node.domain):
                continue
            condition = constants.condition(scope, node)
            if condition is None:
                continue
            if _can_leave(model_input.facts, scope, node, branch(node, condition)[1]):
                within.add(id(node))
                yield _ConstantIf(scope, node, condition)


def _can_leave(facts: Facts, scope: Scope, node: NodeProto, graph: GraphProto) -> bool:
    """Return whether the nodes of a branch can take the place of its If."""
    if not can_place(graph):
        return False
    made = {name for item in graph.node for name in item.output}
    given = [value.name for value in graph.output]
    if len({*given} & made) == len(given) or (scope.opset or 0) >= _IDENTITY_OF_ANY:
        return True
    kinds = [facts.kind(scope, name) for name in node.output if name]
    return all(kind is not None and kind.startswith("tensor(") for kind in kinds)


class _Gone(NamedTuple):
    """A node that its branch has replaced already, in the model as it is then."""

    scope: Scope
    node: NodeProto
    dropped: Sequence[str]
    reads: Sequence[str] = ()
    with_graphs: Sequence[NodeProto] = ()


def _place_branches(model_input: ConversionInput, ifs: Sequence[_ConstantIf], done: Folded) -> None:
    """Put branches in the place of Ifs, in the model, and add them to what was done."""
    edits: dict[int, Edits] = {}
    names: dict[int, Names] = {}
    read: set[str] = set()
    for scope, node, condition in ifs:
        root = scope.root
        fresh = names.setdefault(id(root), Names(model_input.facts.tree(root)))
        name, graph = branch(node, condition)
        nodes, initializers, infos = placed(scope, node, graph, fresh)
        edits.setdefault(id(scope), Edits()).replace(node, nodes, [], {}, initializers)
        scope.container.value_info.extend(infos)
        read.update(names_read(node))
        done.branches.append(name)
        edit = (f"condition always {condition}: {name}",)
        operators = tuple(item.op_type for item in nodes)
        done.changes.append(
            Change(
                scope.describe(node), node.op_type, scope.label, edit, operators, (), len(operators)
            )
        )
    _apply(model_input.scopes, edits)
    done.removed += _sweep(model_input.model, read)


def _sweep(model: ModelProto, names: set[str]) -> Sequence[str]:
    """Remove the values of these names that nothing reads any more; return their names."""
    model_input = ConversionInput.of(model, "")
    found = model_input.scopes
    gone = [
        _Gone(scope, NodeProto(), sorted(names & {*scope.producers, *scope.initializers}))
        for scope in found
    ]
    every = {id(node) for scope in found for node in scope.nodes}
    dead = dead_values(found, gone, model_input.bound(), every)
    edits: dict[int, Edits] = {}
    for scope in dead.scopes:
        edits.setdefault(id(scope), Edits()).remove(dead.of(scope))
    _apply(found, edits)
    return dead.names
