"""onnx's shape inference over a model and its functions.

It runs at most twice over the model, without its large tensors, and once for each way in which a
function whose types are needed is called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import onnx
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto, numpy_helper

from onnxreduce_cli.model import called_types, placeholders
from onnxreduce_cli.model.called_types import CalledTypes
from onnxreduce_cli.model.calls import Calls
from onnxreduce_cli.model.domains import DEFAULT_DOMAINS, is_default
from onnxreduce_cli.model.edit import put_in_order
from onnxreduce_cli.model.overridable import Stated, drop_defaults
from onnxreduce_cli.model.safe_inference import fewer_parts, infer_shapes
from onnxreduce_cli.model.scope import Scope, scopes, with_inner
from onnxreduce_cli.model.skeleton import call_skeleton, model_skeleton
from onnxreduce_cli.model.values import ValueType, common, forget_negative_dims, stated_in

#: What a graph says of values, by name.
_Infos = defaultdict[str, list[ValueInfoProto]]

#: Operators whose output's shape follows from the values of inputs.
_SHAPED_BY_VALUES = frozenset(
    {"ConstantOfShape", "Expand", "Pad", "Reshape", "Resize", "Slice", "Tile", "Upsample"}
)


class Known(Protocol):
    """Types and constants of a model's values; see `onnxreduce_cli.model.facts.Facts`."""

    def type(self, scope: Scope, name: str) -> ValueType | None:
        """A value's type as far as it is known."""

    def constant(self, scope: Scope, name: str) -> npt.NDArray[np.generic] | None:
        """A value that is the same for every run; None where it is not known."""

    def elements(self, scope: Scope, name: str) -> tuple[int | None, ...] | None:
        """The elements of a list of integers as far as they are known."""

    def forget(self) -> None:
        """Drop the results that were computed from less than is known now."""


class ShapeInference:
    """The types that onnx infers for a model's values, by scope."""

    def __init__(
        self,
        model: ModelProto,
        trees: dict[int, list[Scope]],
        calls: Calls,
        stated: Stated,
        known: Known,
    ) -> None:
        """Prepare; nothing is inferred yet.

        Args:
            model: the model.
            trees: its scopes, by the identity of the outermost; functions may be added later.
            calls: those of its functions.
            stated: what it states of its values.
            known: what is known of its values otherwise.
        """
        self._model = model
        self._trees = trees
        self._calls = calls
        self._stated = stated
        self._known = known
        self._graphs = [
            scope for tree in trees.values() for scope in tree if tree[0].function is None
        ]
        self._inferred: dict[int, dict[str, ValueType]] = {}
        #: The outermost scopes that inference has been run over.
        self._done: set[int] = set()

    def of(self, scope: Scope) -> dict[str, ValueType]:
        """The types that are inferred for the values that a scope defines, by their names."""
        found = self._inferred.get(id(scope))
        if found is not None:
            return found
        for root in self._callers_first(scope.root):
            self._done.add(id(root))
            if isinstance(root.container, FunctionProto):
                self._infer_function(root, root.container)
            else:
                self._infer_model()
        return self._inferred.get(id(scope), {})

    def _callers_first(self, last: Scope) -> list[Scope]:
        """The outermost scopes that inference has to run over for one of them, in that order.

        What calls a function is asked for the types that it gives: it comes before, so that a
        chain of functions may be as long as the model.
        """
        found: list[Scope] = []
        begun = set[int]()
        waiting = [last]
        while waiting:
            root = waiting[-1]
            if id(root) in self._done or id(root) in begun:
                waiting.pop()
                if id(root) not in self._done and root not in found:
                    found.append(root)
                continue
            begun.add(id(root))
            if isinstance(root.container, FunctionProto):
                callers = [caller.root for caller, _ in self._calls.of(root.container)]
                waiting += [caller for caller in callers if id(caller) not in begun]
        return found

    def take_graphs(self, other: ShapeInference) -> None:
        """Take over the types that `other` has inferred for the model's graphs, if it has."""
        own = {id(scope) for scope in self._graphs}
        self._done |= other._done & own
        self._inferred |= {key: other._inferred[key] for key in own & other._inferred.keys()}
        self._called_types, self._too_many_calls = other._called_types, other._too_many_calls

    # The model's graphs

    def _infer_model(self) -> None:
        skeleton = model_skeleton(self._model)
        for _, twin in self._twins(skeleton):
            assert isinstance(twin.container, GraphProto)
            forget_negative_dims(stated_in(twin.container))
        if self._stated.overridable:
            self._drop_defaults(skeleton)
        if any(scope.misplaced is not None for tree in self._trees.values() for scope in tree):
            # Shape inference takes nodes in the order in which they stand.
            for _, twin in list(self._twins(skeleton)):
                put_in_order(twin)
        self._infer_graphs(skeleton)
        if self._inferred and self._state_constants(skeleton):
            self._infer_graphs(skeleton)
            self._known.forget()

    def _drop_defaults(self, skeleton: ModelProto) -> None:
        """Take what a caller may override from a skeleton, and the shapes that may follow."""
        drop_defaults(skeleton.graph, self._stated.overridable)
        for scope, twin in self._twins(skeleton):
            assert isinstance(twin.container, GraphProto)
            for name, infos in _by_name(twin.container).items():
                for info in infos if self._stated.follows(scope, name) else ():
                    if info.type.HasField("tensor_type"):
                        info.type.tensor_type.ClearField("shape")

    def _infer_graphs(self, skeleton: ModelProto) -> None:
        inferred = self._infer(skeleton)
        if inferred is None:
            return
        # Same structure as the model's own, so scopes correspond one to one.
        for scope, twin in self._twins(inferred):
            self._inferred[id(scope)] = twin.declared

    def _infer(self, skeleton: ModelProto) -> ModelProto | None:
        if self._ends_the_process:
            return None
        if self._too_many_calls:
            return self._called_types.infer(skeleton)
        return _infer_by_onnx(skeleton)

    @cached_property
    def _called_types(self) -> CalledTypes:
        return CalledTypes(self._model, self._calls.functions, _infer_by_onnx)

    @cached_property
    def _too_many_calls(self) -> bool:
        """Return whether onnx would go through more nodes than it should by itself."""
        functions = self._calls.functions
        if not functions:
            return False
        sizes = called_types.sizes(functions)
        nodes = [node for scope in self._graphs for node in scope.nodes]
        nodes += [node for item in functions.values() for node in with_inner(item.node)]
        calls = (sizes.get((node.domain, node.op_type, node.overload), 0) for node in nodes)
        return sum(calls) > called_types.LIMIT

    @cached_property
    def _ends_the_process(self) -> bool:
        """Return whether onnx would crash: on a Split into fewer parts than it has outputs."""
        return any(
            node.op_type == "Split" and fewer_parts(node) is not None
            for tree in self._trees.values()
            for scope in tree
            if "Split" in scope.op_types
            for node in scope.nodes
        )

    def _twins(self, copy: ModelProto) -> Iterator[tuple[Scope, Scope]]:
        """The scopes of the model's graphs and of those of a copy of it, side by side."""
        graphs = self._graphs
        if len(graphs) == 1:  # So no node need be looked at for graphs in it.
            return iter([(graphs[0], Scope(copy.graph, None, graphs[0].opset, ""))])
        return zip(graphs, [scope for scope in scopes(copy) if scope.function is None], strict=True)

    # Shapes that follow from values

    def _state_constants(self, skeleton: ModelProto) -> bool:
        """Write computed constants that decide an unknown shape into a skeleton; whether any was.

        Exporters compute the pads of a Pad, say, by operators that shape inference cannot follow.
        """
        places = {id(scope): _open_places(scope) for scope in self._graphs}
        if not any(places.values()):
            return False
        found = False
        for scope, twin in self._twins(skeleton):
            assert isinstance(twin.container, GraphProto)
            stated = _by_name(twin.container)
            for place in places[id(scope)]:
                node, copied = scope.nodes[place], twin.nodes[place]
                found |= self._state_shapes(scope, node, twin.container, stated)
                if node.op_type in _SHAPED_BY_VALUES and not self._shape_is_known(scope, node):
                    found |= self._state_inputs(scope, node, twin.container, copied)
        # Before IR version 4 shape inference wants initializers among a graph's inputs.
        skeleton.ir_version = max(skeleton.ir_version, 4)
        return found

    def _state_inputs(
        self, scope: Scope, node: NodeProto, graph: GraphProto, copied: NodeProto
    ) -> bool:
        """Let the copy of a node read initializers in place of what nodes compute.

        Args:
            scope: the node's.
            node: one of the model's.
            graph: the copy of its graph.
            copied: the copy of the node.
        """
        found = False
        for index, name in enumerate(node.input):
            array = self._known.constant(scope, name) if name in scope.producers else None
            if array is not None:
                tensor = numpy_helper.from_array(array, f"{name}/constant")
                graph.initializer.append(tensor)
                copied.input[index] = tensor.name
                found = True
        return found

    def _state_shapes(
        self, scope: Scope, node: NodeProto, graph: GraphProto, stated: _Infos
    ) -> bool:
        """Write what is certain of a node's unknown shapes into a copy of its graph.

        Args:
            scope: the node's.
            node: one of the model's.
            graph: the copy.
            stated: what the copy says of values by name.
        """
        found = False
        for name, dims in zip(node.output, self._certain_dims(scope, node), strict=False):
            known = self._known.type(scope, name)
            if known is None or not known.elem_type or known.dims is not None or dims is None:
                continue
            info = onnx.helper.make_tensor_value_info(name, known.elem_type, dims)
            for entry in stated[name]:
                entry.CopyFrom(info)
            if not stated[name]:
                graph.value_info.append(info)
                stated[name].append(graph.value_info[-1])
            found = True
        return found

    def _certain_dims(self, scope: Scope, node: NodeProto) -> list[list[int | None] | None]:
        """For each of a node's outputs what is certain of its shape beyond shape inference."""
        if self._calls.function_of(node) is not None:
            return []
        if not is_default(node.domain):
            first = self._known.type(scope, node.input[0]) if node.input else None
            found = placeholders.ranks(node, None if first is None else first.rank)
            return [[None] * rank for rank in found]
        if node.op_type == "ConstantOfShape":
            sizes = self._known.elements(scope, node.input[0])
        elif node.op_type == "Reshape" and len(node.input) > 1:
            sizes = self._known.elements(scope, node.input[1])
        else:
            return []
        # Zero may stand for a size of the data, and -1 for what is left.
        return [None if sizes is None else [size if size and size > 0 else None for size in sizes]]

    def _shape_is_known(self, scope: Scope, node: NodeProto) -> bool:
        known = self._inferred[id(scope)].get(node.output[0])
        if known is None or known.dims is None:
            return False
        return all(isinstance(dim, int) for dim in known.dims)

    # Functions

    def _infer_function(self, root: Scope, function: FunctionProto) -> None:
        tree = self._trees[id(root)]
        called = [] if self._too_many_calls else self._calls.reached_from(tree)
        accounts: dict[Hashable, Sequence[dict[str, ValueType]]] = {}
        for caller, call in self._calls.of(function):
            types = tuple(self._known.type(caller, name) for name in call.input)
            bound = self._calls.bound(function, caller, call)
            key = types, called_types.frozen(bound)
            if key in accounts:
                continue
            skeleton = call_skeleton(self._model, function, called, types, bound)
            if self._stated.overridable:
                del skeleton.graph.value_info[:]
            forget_negative_dims(skeleton.graph.value_info)
            inferred = self._infer(skeleton)
            found = [] if inferred is None else [scope.declared for scope in scopes(inferred)]
            accounts[key] = found[: len(tree)] or [{} for _ in tree]
        for index, scope in enumerate(tree):
            told = [account[index] for account in accounts.values()]
            names = {name for types_of in told for name in types_of}
            joined = {name: common([types_of.get(name) for types_of in told]) for name in names}
            self._inferred[id(scope)] = {n: t for n, t in joined.items() if t is not None}


def _infer_by_onnx(model: ModelProto) -> ModelProto | None:
    # Where onnx cannot type a model, what it declares is all there is.
    return infer_shapes(model, data_prop=True)


def _open_places(scope: Scope) -> list[int]:
    """The places of the nodes whose shapes may follow from more than shape inference looks at."""
    return [
        place
        for place, (op_type, node) in enumerate(zip(scope.op_types, scope.nodes, strict=True))
        if op_type in _SHAPED_BY_VALUES or node.domain not in DEFAULT_DOMAINS
    ]


def _by_name(graph: GraphProto) -> _Infos:
    stated: _Infos = defaultdict(list)
    for info in (*graph.value_info, *graph.output):
        stated[info.name].append(info)
    return stated
