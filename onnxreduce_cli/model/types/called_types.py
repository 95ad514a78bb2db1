"""Shape inference over calls of functions, once for each body and each way of calling it.

onnx infers a function's body anew at each call, with the bodies of the functions that it calls:
where each of 20 functions calls the next one twice, a million times. Here each body is inferred
once for the same types and attributes, however often it is called with them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import prod
from typing import NamedTuple

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import (
    FunctionKey,
    called_key,
    function_key,
    subgraphs,
    with_inner,
)
from onnxreduce_cli.model.graph.values import (
    CONSTANT_DTYPES,
    ValueType,
    from_proto,
    merge,
    stated_in,
    tensor_type,
)
from onnxreduce_cli.model.types.skeleton import call_skeleton

#: The most nodes to leave to onnx, which takes half a second for as many.
LIMIT = 100_000

#: The largest product of functions and calls to leave to onnx, which copies the names of all
#: functions at each call: half a second for 2,000 functions and 2,000 calls.
NAMES = 4_000_000

#: The number of bodies that are inferred in any case.
BODIES = 1000

#: The most elements of a constant that shapes may depend on.
_SMALL = 1024

#: The types of a call's outputs; None for unknown ones.
_Types = Sequence[TypeProto | None]


class _Call(NamedTuple):
    """One way in which a function is called.

    Attributes:
        function: the function.
        inputs: the types of its inputs, with dimensions named anew.
        bound: the values of its attributes.
        names: the names of these dimensions in the calling scope.
    """

    function: FunctionProto
    inputs: tuple[ValueType | None, ...]
    bound: Mapping[str, AttributeProto]
    names: dict[str, str]

    @property
    def key(self) -> tuple[object, ...]:
        return function_key(self.function), self.inputs, frozen(self.bound)


#: Infers a body: yields each call in it, and is sent the types of the call's outputs.
_BodyInference = Generator[_Call, _Types, ModelProto]


def frozen(bound: Mapping[str, AttributeProto]) -> tuple[tuple[str, bytes], ...]:
    """Return attributes by name as a hashable key."""
    return tuple(
        sorted((name, item.SerializeToString(deterministic=True)) for name, item in bound.items())
    )


class CalledTypes:
    """The types of the outputs of calls, inferred once for each way of calling a function.

    Each body is inferred ten times on average at most; further calls have unknown types.
    """

    def __init__(
        self,
        model: ModelProto,
        functions: Mapping[FunctionKey, FunctionProto],
        infer: Callable[[ModelProto], ModelProto | None],
    ) -> None:
        """Prepare; nothing is inferred yet.

        Args:
            model: the model.
            functions: its functions, by domain, name and overload.
            infer: onnx's shape inference of a model without functions; it returns None on failure.
        """
        self._model = model
        self._functions = functions
        self._run = infer
        self._outputs: dict[tuple[object, ...], _Types] = {}
        #: How many bodies may still be inferred: each call may have dimensions of its own.
        self._left = BODIES + 10 * len(functions)

    def infer(self, skeleton: ModelProto) -> ModelProto:
        """Infer the types of a model's values, as onnx does, but not of calls within subgraphs.

        Args:
            skeleton: a model, perhaps without its functions, which are not read.

        Returns:
            a copy with the types in its value_info.
        """
        return self._infer(ModelProto.FromString(skeleton.SerializeToString()))

    def _infer(self, skeleton: ModelProto) -> ModelProto:
        under_way: dict[tuple[object, ...], _BodyInference] = {(): self._walk(skeleton)}
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
                answer = [info.type for info in done.value.graph.output]
                self._outputs[key] = answer
                continue
            wanted = call.key
            answer = self._outputs.get(wanted)
            if answer is None and (wanted in under_way or not self._left):
                answer = ()  # It calls itself, or there are ever new dimensions: unknown.
            elif answer is None:
                self._left -= 1
                given = call.inputs, call.bound, self._functions
                body = call_skeleton(self._model, call.function, (), *given)
                under_way[wanted] = self._walk(body)

    def _walk(self, skeleton: ModelProto) -> _BodyInference:
        """Infer the nodes between calls, given the types of the calls' outputs."""
        graph = skeleton.graph
        types = _stated(graph)
        tensors = {tensor.name: tensor for tensor in graph.initializer}
        names = _SizeNames((*stated_in(graph), *_inner_infos(graph.node)))
        nodes: list[NodeProto] = []
        between: list[NodeProto] = []
        for node in graph.node:
            function = self._functions.get(called_key(node))
            if function is None:
                between.append(node)
                tensor = _constant(node) if node.op_type == "Constant" else None
                if tensor is not None:
                    tensors[tensor.name] = tensor
                continue
            nodes += self._infer_between(skeleton, between, types, tensors, names)
            between = []
            call = _call(function, node, types, tensors)
            outputs = yield call
            for name, found in zip(node.output, outputs, strict=False):
                if name and found is not None and found.WhichOneof("value"):
                    own = TypeProto.FromString(found.SerializeToString())
                    names.rename(own, call.names)
                    types[name] = _merged(types.get(name), own)
            nodes.append(node)
        nodes += self._infer_between(skeleton, between, types, tensors, names)
        copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        _state(graph, copies, types)
        return skeleton

    def _infer_between(
        self,
        skeleton: ModelProto,
        nodes: Sequence[NodeProto],
        types: dict[str, TypeProto],
        tensors: Mapping[str, TensorProto],
        names: _SizeNames,
    ) -> Sequence[NodeProto]:
        """Infer the outputs of nodes that are no calls; adds to `types`.

        Returns:
            the nodes, with value_info in the graphs within them.
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
        stated = (*stated_in(part.graph), *_inner_infos(nodes))
        known = {dim.dim_param: dim.dim_param for info in stated for dim in _dims(info.type)}
        inferred = self._run(part)
        if inferred is None:
            return nodes
        for info in (*inferred.graph.value_info, *_inner_infos(inferred.graph.node)):
            names.rename(info.type, known)
        types.update((info.name, info.type) for info in inferred.graph.value_info)
        return list(inferred.graph.node)


class _SizeNames:
    """The names of the dimensions in one body, which replace names that onnx has generated.

    onnx generates the same names in each part of a body and for each call, though dimensions of one
    name count as equal.
    """

    def __init__(self, stated: Iterable[ValueInfoProto]) -> None:
        taken = {dim.dim_param for info in stated for dim in _dims(info.type)}
        self._free = (name for number in count() if (name := f"unk__{number}") not in taken)

    def rename(self, found: TypeProto, names: dict[str, str]) -> None:
        """Rename the dimensions of a type, in place; adds fresh names to `names` where needed."""
        for dim in _dims(found):
            name = dim.dim_param
            if name and name not in names:
                names[name] = next(self._free)
            if name and names[name] != name:
                dim.dim_param = names[name]


def _dims(found: TypeProto) -> Iterator[TensorShapeProto.Dimension]:
    """Yield the dimensions of a type, or of the elements of a sequence or an optional."""
    which = found.WhichOneof("value")
    while which in ("sequence_type", "optional_type"):
        found = getattr(found, which).elem_type
        which = found.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        yield from getattr(found, which).shape.dim


def _inner_infos(nodes: Iterable[NodeProto]) -> Iterator[ValueInfoProto]:
    """Yield the value_info of the graphs within nodes."""
    for node in with_inner(nodes):
        for _, graph in subgraphs(node):
            yield from stated_in(graph)


def _constant(node: NodeProto) -> TensorProto | None:
    """Return the tensor of a Constant, if shapes may depend on it; None otherwise."""
    for attribute in node.attribute if is_default(node.domain) else ():
        if attribute.name == "value" and prod(attribute.t.dims) <= _SMALL:
            tensor = TensorProto.FromString(attribute.t.SerializeToString())
            tensor.name = node.output[0]
            return tensor
        if attribute.name in CONSTANT_DTYPES:
            array = np.array(attributes.value(attribute), CONSTANT_DTYPES[attribute.name])
            return numpy_helper.from_array(array, node.output[0])
    return None


def _call(
    function: FunctionProto,
    node: NodeProto,
    types: Mapping[str, TypeProto],
    tensors: Mapping[str, TensorProto],
) -> _Call:
    # References are resolved in the body of the caller, before it is inferred.
    bound = attributes.of_call(node, function)
    names: dict[str, str] = {}
    inputs: list[ValueType | None] = []
    for name in node.input:
        known = from_proto(types[name]) if name in types else None
        if name in tensors:
            known = tensor_type(tensors[name].data_type, tuple(tensors[name].dims))
        if known is not None and known.dims is not None:
            # Calls whose dimensions differ in name only have the same result but for the names.
            dims = [
                names.setdefault(dim, f"given__{len(names)}") if isinstance(dim, str) else dim
                for dim in known.dims
            ]
            known = known._replace(dims=tuple(dims))
        inputs.append(known)
    return _Call(function, tuple(inputs), bound, {own: name for name, own in names.items()})


def _merged(stated: TypeProto | None, found: TypeProto) -> TypeProto:
    """Return a stated type combined with an inferred one."""
    if stated is None:
        return found
    both = merge(from_proto(stated), from_proto(found))
    return both.to_proto() if both is not None and both.elem_type else stated


def _stated(graph: GraphProto) -> dict[str, TypeProto]:
    infos = (*graph.output, *graph.value_info, *graph.input)
    return {info.name: info.type for info in infos if info.type.WhichOneof("value")}


def _state(graph: GraphProto, nodes: list[NodeProto], types: Mapping[str, TypeProto]) -> None:
    """Replace a graph's nodes, and its value_info by types."""
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    given = {info.name for info in (*graph.input, *graph.output)}
    for info in graph.output:
        if info.name in types:
            info.type.CopyFrom(types[info.name])
    for name, found in types.items():
        if name not in given:
            graph.value_info.append(helper.make_value_info(name, found))
