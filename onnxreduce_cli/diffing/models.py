"""Two models, compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto

from onnxreduce_cli.diffing.aligning import Pair, align, names_of
from onnxreduce_cli.diffing.content import Hashes, content_key, put_hashes, tensor_text
from onnxreduce_cli.diffing.nodes import Nodes
from onnxreduce_cli.diffing.results import Diff, Difference
from onnxreduce_cli.model.file.document import Document
from onnxreduce_cli.model.graph.scope import Scope, function_key, function_label
from onnxreduce_cli.model.graph.values import dtype_name
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.text import as_text, count, listed, shortened

#: Fields that are compared by themselves.
_MODEL = frozenset({"ir_version", "opset_import", "graph", "functions", "training_info"})
_GRAPH = frozenset(
    {"node", "initializer", "input", "output", "value_info", "name", "sparse_initializer"}
)
_FUNCTION = frozenset({"node", "input", "output", "value_info", "opset_import", "name"})

_Mapped = Mapping[Any, str]


def compare(a: Document, b: Document, labels: tuple[str, str]) -> Diff:
    """Compare two models; both are edited, and of no use afterwards.

    Args:
        a: the first model.
        b: the second.
        labels: what they are called.

    Raises:
        InvalidModelError: one contradicts itself, or its external data is not there.
        OSError: external data cannot be read.
    """
    scopes = admit(a.model, a.base_dir).scopes, admit(b.model, b.base_dir).scopes
    hashes = Hashes()
    for document in (a, b):
        put_hashes(document, hashes)
    first, second = a.model, b.model
    inputs = tuple(_of_maps("", _types(first.graph.input), _types(second.graph.input)))
    outputs = tuple(_of_maps("", _types(first.graph.output), _types(second.graph.output)))
    roots = _roots(scopes[0]), _roots(scopes[1])
    both = [(root, roots[1][key]) for key, root in roots[0].items() if key in roots[1]]
    pairs = [pair for first_root, second_root in both for pair in align(first_root, second_root)]
    nodes = [Nodes(pair) for pair in pairs]
    metadata = sum((item.metadata for item in nodes), Counter[str]())
    return Diff(
        *labels,
        imports=tuple(_imports(first, second)),
        model=(*_model(first, second), *chain.from_iterable(map(_fields_of_pair, pairs))),
        inputs=inputs,
        outputs=outputs,
        functions=tuple(_functions(first, second)),
        changes=tuple(change for item in nodes for change in item.changes),
        added=tuple(node for item in nodes for node in item.added),
        removed=tuple(node for item in nodes for node in item.removed),
        constants=(
            *chain.from_iterable(map(_initializers, pairs)),
            *(constant for item in nodes for constant in item.constants),
        ),
        renamed=(
            *chain.from_iterable(map(_renamed, pairs)),
            *(renamed for item in nodes for renamed in item.renamed),
        ),
        values=tuple(chain.from_iterable(map(_values, pairs))),
        metadata=tuple((field, number) for field, number in metadata.items() if field != "name"),
    )


def _renamed(pair: Pair) -> Iterator[Difference]:
    for before, after in pair.renamed:
        yield Difference("initializer", before, after, pair.a.label)


def _roots(scopes: Iterable[Scope]) -> dict[Any, Scope]:
    """The main graph, the training graphs and the functions, by what tells them apart."""
    found: dict[Any, Scope] = {}
    for scope in scopes:
        container = scope.container
        if isinstance(container, FunctionProto):
            found[function_key(container)] = scope
        elif scope.owner is None:
            found[scope.label] = scope
    return found


def _imports(a: ModelProto, b: ModelProto) -> Iterator[Difference]:
    first, second = _versions(a), _versions(b)
    yield from _of_maps("", first, second)
    others = {function_key(function): function for function in b.functions}
    for function in a.functions:
        other = others.get(function_key(function))
        for item in [] if other is None else _of_maps("", _versions(function), _versions(other)):
            alike = first.get(item.name), second.get(item.name)
            if (item.before, item.after) != alike:
                label = f"function {function_label(function)}"
                yield Difference(item.name, item.before, item.after, label)


def _versions(owner: ModelProto | FunctionProto) -> dict[str, str]:
    return {entry.domain or "ai.onnx": str(entry.version) for entry in owner.opset_import}


def _of_maps(scope: str, first: _Mapped, second: _Mapped) -> Iterator[Difference]:
    """Return what differs between two mappings from names to texts."""
    for name in dict.fromkeys((*first, *second)):
        before, after = first.get(name, ""), second.get(name, "")
        if before != after:
            yield Difference(name, before, after, scope)


def _types(infos: Iterable[ValueInfoProto]) -> dict[str, str]:
    return {info.name: type_text(info.type) for info in infos}


def type_text(proto: TypeProto) -> str:
    """``float[N,3,224]``, ``seq(float[N])``; a type of another kind as protobuf's text."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        told = _dtype_text(tensor.elem_type)
        if tensor.HasField("shape"):
            dims = [
                str(dim.dim_value) if dim.HasField("dim_value") else as_text(dim.dim_param) or "?"
                for dim in tensor.shape.dim
            ]
            told += f"[{','.join(dims)}]"
        return told if kind == "tensor_type" else f"sparse_tensor({told})"
    if kind == "sequence_type":
        return f"seq({type_text(proto.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({type_text(proto.optional_type.elem_type)})"
    if kind == "map_type":
        key, value = proto.map_type.key_type, proto.map_type.value_type
        return f"map({_dtype_text(key)},{type_text(value)})"
    return " ".join(str(proto).split()) or "no type"


def _dtype_text(elem_type: int) -> str:
    # One that is not known here is told by its number.
    known = elem_type in TensorProto.DataType.values()
    return dtype_name(elem_type) if known else f"dtype {elem_type}"


def _model(a: ModelProto, b: ModelProto) -> Iterator[Difference]:
    if a.ir_version != b.ir_version:
        yield Difference("IR version", str(a.ir_version), str(b.ir_version))
    yield from _fields("", a, b, _MODEL)
    if len(a.training_info) != len(b.training_info):
        yield Difference("training_info", str(len(a.training_info)), str(len(b.training_info)))


def _fields_of_pair(pair: Pair) -> Iterator[Difference]:
    a, b = pair.a.container, pair.b.container
    if isinstance(a, FunctionProto):
        yield from _fields(pair.a.label, a, b, _FUNCTION)
        return
    yield from _fields(pair.a.label, a, b, _GRAPH)
    if a.name != b.name:
        yield Difference("name of the graph", a.name, b.name, pair.a.label)
    first, second = (
        {item.values.name: item.SerializeToString() for item in graph.sparse_initializer}
        for graph in (a, b)
        if isinstance(graph, GraphProto)
    )
    for name in dict.fromkeys((*first, *second)):
        if first.get(name) != second.get(name):
            before, after = ("sparse" if name in found else "" for found in (first, second))
            yield Difference(name, before, after, pair.a.label)


def _fields(label: str, a: Any, b: Any, apart: frozenset[str]) -> Iterator[Difference]:
    """Return the fields of two messages that differ, but for some."""
    for field in a.DESCRIPTOR.fields:
        if field.name in apart:
            continue
        mine, its = getattr(a, field.name), getattr(b, field.name)
        if mine != its:
            yield Difference(field.name, _field_text(mine), _field_text(its), label)


def _field_text(value: Any) -> str:
    if isinstance(value, (str, bytes, int, float)):
        return shortened(repr(value), 60)
    keys = [as_text(getattr(item, "key", "")) for item in value]
    return f"{len(value)} ({listed(keys)})" if any(keys) else str(len(value))


def _functions(a: ModelProto, b: ModelProto) -> Iterator[Difference]:
    first, second = (
        {function_label(function): _function_text(function) for function in model.functions}
        for model in (a, b)
    )
    for item in _of_maps("", first, second):
        takes = item.before.partition(",")[2], item.after.partition(",")[2]
        # What became of its nodes is told of these.
        if "" in (item.before, item.after) or takes[0] != takes[1]:
            yield item


def _function_text(function: FunctionProto) -> str:
    ways = f"{len(function.input)} in, {len(function.output)} out"
    return f"{count(len(function.node), 'node')}, {ways}"


def _initializers(pair: Pair) -> Iterator[Difference]:
    a, b = pair.a.initializers, pair.b.initializers
    for name in dict.fromkeys((*a, *b)):
        before, after = (tensor_text(found[name]) if name in found else "" for found in (a, b))
        if name not in a or name not in b or content_key(a[name]) != content_key(b[name]):
            yield Difference(name, before, after, pair.a.label)


def _values(pair: Pair) -> Iterator[Difference]:
    first, second = (_types(scope.container.value_info) for scope in (pair.a, pair.b))
    yield from _of_maps(pair.a.label, first, second)
    if pair.a.parent is not None or pair.a.function is not None:
        given = (dict(enumerate(names_of(scope, "output"))) for scope in (pair.a, pair.b))
        for item in _of_maps(pair.a.label, *given):
            yield Difference(f"output {item.name}", item.before, item.after, item.scope)
    if pair.a.subgraph:
        for field in ("input", "output"):
            both = [
                {index: type_text(info.type) for index, info in enumerate(getattr(item, field))}
                for item in (pair.a.container, pair.b.container)
            ]
            for item in _of_maps(pair.a.label, *both):
                yield Difference(f"{field} {item.name}", item.before, item.after, item.scope)
