"""Shape inference over calls of functions that is no more work than there are bodies and types.

onnx goes through a function's body again for each call of it, and through the bodies that it calls:
where each of 20 functions calls the next one twice, a million times. Here each body is gone through
once for the types and attributes with which it is called, however often that is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    helper,
)

from onnxreduce_cli.model.scope import FunctionKey, with_inner
from onnxreduce_cli.model.skeleton import call_skeleton
from onnxreduce_cli.model.values import ValueType, from_proto

#: Nodes that onnx may go through by itself, as many as it does in half a second.
LIMIT = 100_000

#: Functions times calls that onnx may go through by itself: it takes all names along to each call,
#: half a second for 2,000 of both.
NAMES = 4_000_000

#: Bodies that are gone through in any case.
BODIES = 1000

#: The types of a call's outputs; None for those that are not known.
_Types = Sequence[TypeProto | None]


class _Call(NamedTuple):
    """One way in which a function is called."""

    function: FunctionProto
    inputs: tuple[ValueType | None, ...]
    bound: Mapping[str, AttributeProto]

    @property
    def key(self) -> tuple[object, ...]:
        function = self.function
        name = function.domain, function.name, function.overload
        return name, self.inputs, frozen(self.bound)


#: Goes through nodes: gives each call, and is sent the types of its outputs.
_Walk = Generator[_Call, _Types, ModelProto]


def sizes(functions: Mapping[FunctionKey, FunctionProto]) -> dict[FunctionKey, int]:
    """Return for each function the nodes that one call of it stands for, those it calls included.

    A function that calls itself counts as more than `LIMIT`.
    """
    found: dict[FunctionKey, int] = {}
    under_way = set[FunctionKey]()
    for first in functions:
        waiting = [first]
        while waiting:
            key = waiting[-1]
            if key in found:
                waiting.pop()
                continue
            called = list(map(_key, with_inner(functions[key].node)))
            inner = [item for item in called if item in functions]
            missing = [item for item in inner if item not in found]
            if missing and key not in under_way:
                under_way.add(key)
                waiting += missing
                continue
            found[key] = len(called) + sum(found.get(item, LIMIT + 1) for item in inner)
            waiting.pop()
    return found


def frozen(bound: Mapping[str, AttributeProto]) -> tuple[tuple[str, bytes], ...]:
    """Return attributes by the names they are bound to, in a form that can be compared."""
    return tuple(
        sorted((name, item.SerializeToString(deterministic=True)) for name, item in bound.items())
    )


class CalledTypes:
    """The types that come of calls of a model's functions, each worked out once.

    Bodies are gone through some ten times each on average; after that no more is known.
    """

    def __init__(
        self,
        model: ModelProto,
        functions: Mapping[FunctionKey, FunctionProto],
        first_like: Callable[[FunctionProto], FunctionProto],
        infer: Callable[[ModelProto], ModelProto | None],
    ) -> None:
        """Prepare; nothing is inferred yet.

        Args:
            model: the model.
            functions: those that nodes can name.
            first_like: gives the first of those that have the body of one.
            infer: onnx's shape inference of a model without functions; None where that fails.
        """
        self._model = model
        self._functions = functions
        self._first_like = first_like
        self._run = infer
        self._outputs: dict[tuple[object, ...], _Types] = {}
        #: How often bodies may still be gone through: each call may come with a size of its own.
        self._left = BODIES + 10 * len(functions)

    def infer(self, skeleton: ModelProto) -> ModelProto:
        """Infer the types of a model's values, as onnx does; calls within subgraphs tell nothing.

        Args:
            skeleton: a model of which only the graph is looked at; its functions may be left out.

        Returns:
            a copy with the types stated.
        """
        return self._infer(ModelProto.FromString(skeleton.SerializeToString()))

    def _infer(self, skeleton: ModelProto) -> ModelProto:
        under_way: dict[tuple[object, ...], _Walk] = {(): self._walk(skeleton)}
        answer: _Types | None = None
        while True:
            key = next(reversed(under_way))
            try:
                call = under_way[key].send(answer)  # type: ignore[arg-type]
            except StopIteration as done:
                del under_way[key]
                if not under_way:
                    inferred: ModelProto = done.value
                    return inferred
                types = {info.name: info.type for info in done.value.graph.output}
                answer = self._outputs[key] = list(types.values())
                continue
            wanted = call.key
            answer = self._outputs.get(wanted)
            if answer is None and (wanted in under_way or not self._left):
                answer = ()  # It calls itself, or with sizes that never end: nothing is known.
            elif answer is None:
                self._left -= 1
                body = call_skeleton(self._model, call.function, (), call.inputs, call.bound)
                under_way[wanted] = self._walk(body)

    def _walk(self, skeleton: ModelProto) -> _Walk:
        """Infer what stands between calls with the types of what these give."""
        types = _stated(skeleton.graph)
        tensors = {tensor.name: tensor for tensor in skeleton.graph.initializer}
        nodes: list[NodeProto] = []
        between: list[NodeProto] = []
        for node in skeleton.graph.node:
            function = self._functions.get(_key(node))
            if function is None:
                between.append(node)
                continue
            nodes += self._infer_between(skeleton, between, types, tensors)
            between = []
            outputs = yield _call(self._first_like(function), node, types)
            for name, found in zip(node.output, outputs, strict=False):
                if name and found is not None and found.WhichOneof("value"):
                    types.setdefault(name, found)
            nodes.append(node)
        nodes += self._infer_between(skeleton, between, types, tensors)
        copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        _state(skeleton.graph, copies, types)
        return skeleton

    def _infer_between(
        self,
        skeleton: ModelProto,
        nodes: Sequence[NodeProto],
        types: dict[str, TypeProto],
        tensors: Mapping[str, TensorProto],
    ) -> Sequence[NodeProto]:
        """Infer the types of what nodes without calls give; adds to `types`.

        Returns:
            the nodes, with types stated in the graphs within them.
        """
        if not nodes:
            return nodes
        # From IR version 4 on initializers need not be inputs.
        part = ModelProto(ir_version=max(skeleton.ir_version, 4))
        part.opset_import.extend(skeleton.opset_import)
        part.graph.name = skeleton.graph.name
        part.graph.node.extend(nodes)
        made = {name for node in nodes for name in node.output}
        read = {name for node in with_inner(nodes) for name in node.input}
        for name in sorted(made | read):
            if name in tensors and name not in made:
                part.graph.initializer.append(tensors[name])
            elif name in types:
                infos = part.graph.value_info if name in made else part.graph.input
                infos.append(helper.make_value_info(name, types[name]))
        inferred = self._run(part)
        if inferred is None:
            return nodes
        types.update((info.name, info.type) for info in inferred.graph.value_info)
        return list(inferred.graph.node)


def _key(node: NodeProto) -> FunctionKey:
    return node.domain, node.op_type, node.overload


def _call(function: FunctionProto, node: NodeProto, types: Mapping[str, TypeProto]) -> _Call:
    # References are resolved in the body that holds the call, before it is gone through.
    bound = {item.name: item for item in (*function.attribute_proto, *node.attribute)}
    inputs = [from_proto(types[name]) if name in types else None for name in node.input]
    return _Call(function, tuple(inputs), bound)


def _stated(graph: GraphProto) -> dict[str, TypeProto]:
    infos = (*graph.output, *graph.value_info, *graph.input)
    return {info.name: info.type for info in infos if info.type.WhichOneof("value")}


def _state(graph: GraphProto, nodes: list[NodeProto], types: Mapping[str, TypeProto]) -> None:
    """Put nodes in the place of a graph's own, and state the types of its values."""
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    given = {info.name for info in (*graph.input, *graph.output)}
    for info in graph.output:
        if info.name in types:
            info.type.CopyFrom(types[info.name])
    for name, found in types.items():
        if name not in given:
            graph.value_info.append(helper.make_value_info(name, found))
