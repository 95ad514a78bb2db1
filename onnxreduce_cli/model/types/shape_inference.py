"""onnx's shape inference over a model and its functions.

It runs over the model without its large tensors, again as long as more constants decide shapes, and
once for each way in which a function whose types are needed is called.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
)

from onnxreduce_cli.model.graph.calls import Calls, sizes_of_calls
from onnxreduce_cli.model.graph.edit import put_in_order
from onnxreduce_cli.model.graph.overridable import StatedTypes, drop_defaults
from onnxreduce_cli.model.graph.scope import Scope, called_key, scopes, with_inner
from onnxreduce_cli.model.graph.values import (
    ValueType,
    common_type,
    forget_negative_dims,
    stated_in,
)
from onnxreduce_cli.model.types.constants import KnownConstants
from onnxreduce_cli.model.types.questions import answer_key
from onnxreduce_cli.model.types.run_time_sizes import infer_run_time_shapes
from onnxreduce_cli.model.types.shapes_by_values import (
    StatedShapes,
    candidate_indices,
    infos_by_name,
)
from onnxreduce_cli.model.types.skeleton import call_skeleton, model_skeleton

if TYPE_CHECKING:
    from onnxreduce_cli.model.types.called_types import CalledTypes

#: The types of a call's inputs, and the values of its attributes.
_Arguments = tuple[Sequence[ValueType | None], Mapping[str, AttributeProto]]

#: How many times inference runs again, each time for shapes that those of the time before decide.
_ROUNDS = 3


class ShapeInference:
    """The types that onnx infers for a model's values, by scope."""

    def __init__(
        self,
        model: ModelProto,
        trees: dict[int, list[Scope]],
        calls: Calls,
        stated: StatedTypes,
        known: KnownConstants,
    ) -> None:
        """Prepare; nothing is inferred yet.

        Args:
            model: the model.
            trees: its scopes, by the identity of the outermost; functions may be added later.
            calls: the calls of its functions.
            stated: the types that it states.
            known: its other facts.
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
        #: The types in each scope of a function, by its body and the arguments of a call.
        self._types_by_call: dict[Hashable, list[dict[str, ValueType]]] = {}
        #: The same in all calls together, by its body, these arguments, and its constant inputs.
        self._types_by_calls: dict[Hashable, list[dict[str, ValueType]]] = {}
        #: The outermost scopes that inference has been run over.
        self._done: set[int] = set()

    def type(self, scope: Scope, name: str) -> ValueType | None:
        """Return the inferred type of a value that a scope defines; None where there is none."""
        return self.of(scope).get(name)

    def of(self, scope: Scope) -> dict[str, ValueType]:
        """Return the inferred types of the values that a scope defines, by name."""
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
        """Return the outermost scopes that must be inferred for one of them, in that order.

        Callers come before the functions that they call, as their types are needed, unless they
        state them: so a chain of functions may be as long as the model.
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
                waiting += [
                    caller.root
                    for caller, call in self._calls.of(root.container)
                    if id(caller.root) not in begun and not self._states_inputs(caller, call)
                ]
        return found

    def _states_inputs(self, caller: Scope, call: NodeProto) -> bool:
        """Return whether the types of all inputs of a call are stated in full."""
        for name in call.input:
            owner = caller.resolve(name) if name else None
            known = None if owner is None else self._stated.type(owner, name)
            if owner is not None and (known is None or not known.is_whole):
                return False
        return True

    def take_graphs(self, other: ShapeInference) -> None:
        """Take over the types that `other` has inferred for the model's graphs, if any.

        The types in functions are shared from then on: copies of a function have its name until
        they are settled.
        """
        own = {id(scope) for scope in self._graphs}
        self._done |= other._done & own
        self._inferred |= {key: other._inferred[key] for key in own & other._inferred.keys()}
        self._called_types, self._too_many_calls = other._called_types, other._too_many_calls
        self._types_by_call = other._types_by_call

    # The model's graphs

    def _infer_model(self) -> None:
        skeleton = model_skeleton(self._model)
        misplaced = (scope.misplaced for tree in self._trees.values() for scope in tree)
        ordered = all(node is None for node in misplaced)
        twins = list(self._twins(skeleton, ordered=ordered))
        for _, twin in twins:
            assert isinstance(twin.container, GraphProto)
            forget_negative_dims(stated_in(twin.container))
        if self._stated.are_doubtful:
            self._drop_defaults(twins)
        if not ordered:
            # Shape inference goes through nodes in their order in the graph.
            for _, twin in twins:
                put_in_order(twin)
        # Most inferences are the last by this: exporters compute the sizes of an Expand by a Where
        # of constants, for example, through which onnx infers nothing.
        self._state_constants(skeleton)
        self._known.forget()
        self._infer_graphs(skeleton)
        for _ in range(_ROUNDS):
            if not self._inferred or not self._state_constants(skeleton):
                break
            self._infer_graphs(skeleton)
            self._known.forget()

    def _drop_defaults(self, twins: Sequence[tuple[Scope, Scope]]) -> None:
        """Remove overridable initializers from a skeleton, and the shapes that may follow."""
        main = twins[0][1].container
        assert isinstance(main, GraphProto)
        drop_defaults(main, self._stated.overridable)
        for scope, twin in twins:
            assert isinstance(twin.container, GraphProto)
            for name, infos in infos_by_name(twin.container).items():
                for info in infos if self._stated.follows(scope, name) else ():
                    if not self._stated.overridable:
                        for dim in info.type.tensor_type.shape.dim:
                            dim.ClearField("dim_value")
                    elif info.type.HasField("tensor_type"):
                        info.type.tensor_type.ClearField("shape")

    def _infer_graphs(self, skeleton: ModelProto) -> None:
        inferred = self._infer(skeleton)
        if inferred is None:
            return
        # Same structure as the model's own, so scopes correspond one to one.
        for scope, twin in self._twins(inferred):
            self._inferred[id(scope)] = twin.declared

    def _infer(self, skeleton: ModelProto) -> ModelProto | None:
        if self._too_many_calls:
            return self._called_types.infer(skeleton)
        return _infer_by_onnx(skeleton)

    @cached_property
    def _called_types(self) -> CalledTypes:
        from onnxreduce_cli.model.types.called_types import CalledTypes

        return CalledTypes(self._model, self._calls.functions, _infer_by_onnx)

    @cached_property
    def _too_many_calls(self) -> bool:
        """Return whether inference by onnx would take too long.

        It goes through nodes at each call, and through the names of all functions.
        """
        functions = self._calls.functions
        if not functions:
            return False
        from onnxreduce_cli.model.types import called_types

        if sum(map(len, self._calls.all.values())) * len(functions) > called_types.NAMES:
            return True
        sizes = sizes_of_calls(functions)
        nodes = [node for scope in self._graphs for node in scope.nodes]
        nodes += [node for item in functions.values() for node in with_inner(item.node)]
        calls = (sizes.get(called_key(node), 0) for node in nodes)
        return sum(calls) > called_types.LIMIT

    def _twins(self, copy: ModelProto, *, ordered: bool = True) -> Iterator[tuple[Scope, Scope]]:
        """Return pairs of scopes: of the model's graphs, and of the same graphs in a copy.

        Args:
            copy: the copy.
            ordered: whether its nodes are in topological order.
        """
        graphs = self._graphs
        if len(graphs) == 1:  # There are no subgraphs to search nodes for.
            return iter([(graphs[0], Scope(copy.graph, None, graphs[0].opset, ""))])
        others = (scope for scope in scopes(copy, ordered=ordered) if scope.function is None)
        return zip(graphs, others, strict=True)

    def _state_constants(self, skeleton: ModelProto) -> bool:
        """Write computed constants that decide unknown shapes into a skeleton; return if any.

        Exporters compute the pads of a Pad, for example, by operators without data propagation.
        """
        if not any(map(candidate_indices, self._graphs)):
            return False
        return self._state_in(skeleton, self._twins(skeleton))

    def _state_in(self, skeleton: ModelProto, twins: Iterable[tuple[Scope, Scope]]) -> bool:
        """Write such constants into the second of each two scopes; return whether there are any.

        Before the first inference these are the inputs that follow from constants alone.
        """
        found = False
        for scope, twin in twins:
            inferred = self._inferred.get(id(scope))
            stated = StatedShapes(self._known, self._calls, scope, inferred or {}, twin)
            state = stated.state if inferred is not None else stated.state_before
            for index in candidate_indices(scope):
                found |= state(index)
        # Before IR version 4 shape inference wants initializers among a graph's inputs.
        skeleton.ir_version = max(skeleton.ir_version, 4)
        return found

    # Functions

    def _infer_function(self, root: Scope, function: FunctionProto) -> None:
        from onnxreduce_cli.model.types.called_types import frozen

        tree = self._trees[id(root)]
        body = id(root.body)
        calls: dict[Hashable, _Arguments] = {}
        for caller, call in self._calls.of(function):
            types = tuple(self._known.type(caller, name) for name in call.input)
            bound = self._calls.bound(function, caller, call)
            calls[body, types, frozen(bound)] = types, bound
        read = function.input if any(map(candidate_indices, tree)) else ()
        constants = (answer_key(root, name, self._known.constant(root, name)) for name in read)
        key = (body, *calls, *constants)
        if key not in self._types_by_calls:
            self._infer_calls(tree, function, calls)
            self._types_by_calls[key] = [self._inferred[id(scope)] for scope in tree]
        known = zip(tree, self._types_by_calls[key], strict=True)
        self._inferred |= {id(scope): types for scope, types in known}

    def _infer_calls(
        self, tree: Sequence[Scope], function: FunctionProto, calls: Mapping[Hashable, _Arguments]
    ) -> None:
        """Infer the types in a function, of which some are known in all its calls."""
        for key, call in calls.items():
            if key not in self._types_by_call:
                skeleton = self._call_skeleton(tree, function, *call)
                self._types_by_call[key] = self._infer_call(tree, skeleton)
        by_call = {key: self._types_by_call[key] for key in calls}
        self._join(tree, list(by_call.values()))
        if not any(map(candidate_indices, tree)):
            return
        # What is constant here may be so in these calls only, which the keys do not tell.
        skeletons = {key: self._call_skeleton(tree, function, *call) for key, call in calls.items()}
        for _ in range(_ROUNDS):
            more = [
                key
                for key, skeleton in skeletons.items()
                if self._state_in(skeleton, zip(tree, scopes(skeleton), strict=False))
            ]
            if not more:
                break
            inferred = {key: self._infer_call(tree, skeletons[key]) for key in more}
            # Where inference fails what was known before stays.
            by_call |= {key: types for key, types in inferred.items() if any(types)}
            self._join(tree, list(by_call.values()))
            self._known.forget()

    def _join(self, tree: Sequence[Scope], found: Sequence[list[dict[str, ValueType]]]) -> None:
        """Keep for each scope of a function the types that its values have in all calls."""
        for index, scope in enumerate(tree):
            by_call = [types_of_call[index] for types_of_call in found]
            if len(by_call) == 1:
                self._inferred[id(scope)] = by_call[0]
                continue
            names = {name for known in by_call for name in known}
            joined = {name: common_type([known.get(name) for known in by_call]) for name in names}
            self._inferred[id(scope)] = {n: t for n, t in joined.items() if t is not None}

    def _call_skeleton(
        self,
        tree: Sequence[Scope],
        function: FunctionProto,
        types: Sequence[ValueType | None],
        bound: Mapping[str, AttributeProto],
    ) -> ModelProto:
        """Return a function's body as the main graph of a model, as one call runs it."""
        called = [] if self._too_many_calls else self._calls.reached_from(tree)
        functions = self._calls.functions
        skeleton = call_skeleton(self._model, function, called, types, bound, functions)
        if self._stated.overridable:
            del skeleton.graph.value_info[:]
        forget_negative_dims(skeleton.graph.value_info)
        return skeleton

    def _infer_call(
        self, tree: Sequence[Scope], skeleton: ModelProto
    ) -> list[dict[str, ValueType]]:
        """Return the inferred types in each scope of a function for one way of calling it."""
        inferred = self._infer(skeleton)
        found = [] if inferred is None else [scope.declared for scope in scopes(inferred)]
        return found[: len(tree)] or [{} for _ in tree]


def _infer_by_onnx(model: ModelProto) -> ModelProto | None:
    # Where inference fails only stated types are known.
    return infer_run_time_shapes(model, data_prop=True)
