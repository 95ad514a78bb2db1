"""Shape inference over calls of functions that is no more work than there are bodies and types.

onnx goes through a function's body again for each call of it, and through the bodies that it calls:
where each of 20 functions calls the next one twice, a million times. Here each body is gone through
once for the types and attributes with which it is called, however often that is.
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

#: Nodes that onnx may go through by itself, as many as it does in half a second.
LIMIT = 100_000

#: Functions times calls that onnx may go through by itself: it takes all names along to each call,
#: half a second for 2,000 of both.
NAMES = 4_000_000

#: Bodies that are gone through in any case.
BODIES = 1000

#: Elements of a constant that shapes may follow from, at most.
_SMALL = 1024

#: The types of a call's outputs; None for those that are not known.
_Types = Sequence[TypeProto | None]


class _Call(NamedTuple):
    """One way in which a function is called.

    Attributes:
        function: the function.
        inputs: the types of what it reads; their sizes have names of the call's own.
        bound: the values of its attributes.
        names: by the call's names of sizes, those that these have where it stands.
    """

    function: FunctionProto
    inputs: tuple[ValueType | None, ...]
    bound: Mapping[str, AttributeProto]
    names: dict[str, str]

    @property
    def key(self) -> tuple[object, ...]:
        return function_key(self.function), self.inputs, frozen(self.bound)


#: Goes through nodes: gives each call, and is sent the types of its outputs.
_BodyInference = Generator[_Call, _Types, ModelProto]


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
        infer: Callable[[ModelProto], ModelProto | None],
    ) -> None:
        """Prepare; nothing is inferred yet.

        Args:
            model: the model.
            functions: those that nodes can name.
            infer: onnx's shape inference of a model without functions; None where that fails.
        """
        self._model = model
        self._functions = functions
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
                answer = ()  # It calls itself, or with sizes that never end: nothing is known.
            elif answer is None:
                self._left -= 1
                given = call.inputs, call.bound, self._functions
                body = call_skeleton(self._model, call.function, (), *given)
                under_way[wanted] = self._walk(body)

    def _walk(self, skeleton: ModelProto) -> _BodyInference:
        """Infer what stands between calls with the types of what these give."""
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
    """The names of the sizes in one body, those among them that onnx makes up.

    It makes up the same ones in each part of a body and for each call, but for those that it is
    given: where sizes have one name, they count as equal.
    """

    def __init__(self, stated: Iterable[ValueInfoProto]) -> None:
        taken = {dim.dim_param for info in stated for dim in _dims(info.type)}
        self._free = (name for number in count() if (name := f"unk__{number}") not in taken)

    def rename(self, found: TypeProto, names: dict[str, str]) -> None:
        """Name the sizes of a type, in place: one that is not among `names` gets one of its own."""
        for dim in _dims(found):
            name = dim.dim_param
            if name and name not in names:
                names[name] = next(self._free)
            if name and names[name] != name:
                dim.dim_param = names[name]


def _dims(found: TypeProto) -> Iterator[TensorShapeProto.Dimension]:
    """The sizes that a type states, of the elements of sequences too."""
    which = found.WhichOneof("value")
    while which in ("sequence_type", "optional_type"):
        found = getattr(found, which).elem_type
        which = found.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        yield from getattr(found, which).shape.dim


def _inner_infos(nodes: Iterable[NodeProto]) -> Iterator[ValueInfoProto]:
    """What the graphs within nodes state of their values."""
    for node in with_inner(nodes):
        for _, graph in subgraphs(node):
            yield from stated_in(graph)


def _constant(node: NodeProto) -> TensorProto | None:
    """What a Constant gives, if shapes may follow from it: for parts that it is no node of."""
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
    # References are resolved in the body that holds the call, before it is gone through.
    bound = attributes.of_call(node, function)
    names: dict[str, str] = {}
    inputs: list[ValueType | None] = []
    for name in node.input:
        known = from_proto(types[name]) if name in types else None
        if name in tensors:
            known = tensor_type(tensors[name].data_type, tuple(tensors[name].dims))
        if known is not None and known.dims is not None:
            # A call whose sizes differ in name alone gives the same but for these names.
            dims = [
                names.setdefault(dim, f"given__{len(names)}") if isinstance(dim, str) else dim
                for dim in known.dims
            ]
            known = known._replace(dims=tuple(dims))
        inputs.append(known)
    return _Call(function, tuple(inputs), bound, {own: name for name, own in names.items()})


def _merged(stated: TypeProto | None, found: TypeProto) -> TypeProto:
    """What is stated of a value, and found of it besides."""
    if stated is None:
        return found
    both = merge(from_proto(stated), from_proto(found))
    return both.to_proto() if both is not None and both.elem_type else stated


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
