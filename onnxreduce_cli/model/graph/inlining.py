"""Inlining of model-local functions into a model's graphs.

A function can express less than a graph: it has no initializers, its value_info is not read, and
one body serves many calls. A node that is blocked in a function may convert in a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.attributes import bind
from onnxreduce_cli.model.graph.domains import default_opset, is_default
from onnxreduce_cli.model.graph.edit import Edits, apply_edits
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.renaming import Renaming
from onnxreduce_cli.model.graph.scope import (
    FunctionKey,
    Scope,
    by_root,
    called_key,
    function_key,
    scopes,
    subgraphs,
)

_Functions = Mapping[FunctionKey, FunctionProto]


def can_inline(model: ModelProto, function: FunctionProto) -> bool:
    """Return whether the model imports all that the function does, at the same versions."""
    imported = {entry.domain: entry.version for entry in model.opset_import}
    return default_opset(function) in (None, default_opset(model)) and all(
        imported.get(entry.domain, entry.version) == entry.version
        for entry in function.opset_import
        if not is_default(entry.domain)
    )


def inline_calls(model: ModelProto, keys: Sequence[FunctionKey]) -> dict[FunctionKey, list[str]]:
    """Replace the nodes that call functions by the functions' bodies, in place.

    All calls of the functions must be in graphs, or in these functions. Their nodes keep their
    doc_string and metadata, and get those of the call and of the function where they have none.
    Names derive from the call's; the same model gives the same bytes.

    Args:
        model: the model; the functions are taken out of it.
        keys: the functions, for which `can_inline` must be true.

    Returns:
        for each function the nodes that called it, for messages: none where nothing did.
    """
    functions = {
        key: item for item in model.functions if (key := function_key(item)) in frozenset(keys)
    }
    calls: dict[FunctionKey, list[str]] = {key: [] for key in functions}
    names: dict[int, Names] = {}
    found = scopes(model)
    trees = by_root(found)
    # Inner graphs first: edits move nodes, and the graphs within them.
    for scope in reversed(found):
        if scope.function is not None or not any(
            called_key(item) in functions for item in scope.nodes
        ):
            continue
        root = scope.root
        if id(root) not in names:
            names[id(root)] = Names(trees[id(root)])
        _inline_in(scope, functions, names[id(root)], calls)
    for function in functions.values():
        _import(model, function)
    for index in reversed(range(len(model.functions))):
        if function_key(model.functions[index]) in functions:
            del model.functions[index]
    return calls


def _import(model: ModelProto, function: FunctionProto) -> None:
    known = {entry.domain for entry in model.opset_import}
    for entry in function.opset_import:
        if entry.domain not in known and not is_default(entry.domain):
            model.opset_import.add().CopyFrom(entry)


def _inline_in(
    scope: Scope, functions: _Functions, names: Names, calls: dict[FunctionKey, list[str]]
) -> None:
    graph = scope.container
    edits = Edits()
    infos: list[ValueInfoProto] = []
    for node in scope.nodes:
        if called_key(node) in functions:
            nodes = list(_expanded(node, functions, names, calls, infos))
            edits.replace(node, nodes, [], {}, [])
    stated = {info.name for info in graph.value_info}
    if isinstance(graph, GraphProto):
        stated.update(info.name for info in graph.output)
    apply_edits(scope, edits)
    graph.value_info.extend(info for info in infos if info.name not in stated)


def _expanded(
    call: NodeProto,
    functions: _Functions,
    names: Names,
    calls: dict[FunctionKey, list[str]],
    infos: list[ValueInfoProto],
) -> Iterator[NodeProto]:
    """Expand a call into the nodes of the function's body, in which calls are expanded as well.

    The types that functions state of their values are added to `infos`.
    """
    waiting = [call]
    while waiting:
        node = waiting.pop()
        function = functions.get(called_key(node))
        if function is not None:
            name = node.name or next((name for name in node.output if name), function.name)
            calls[function_key(function)].append(name)
            body = _Body(node, function, name, names)
            infos += body.infos
            waiting += reversed(body.nodes)
            continue
        for _, graph in subgraphs(node):
            own = list(graph.node)
            inner: list[ValueInfoProto] = []
            nodes = [new for item in own for new in _expanded(item, functions, names, calls, inner)]
            if nodes != own:
                copies = [NodeProto.FromString(item.SerializeToString()) for item in nodes]
                del graph.node[:]
                graph.node.extend(copies)
                graph.value_info.extend(inner)
        yield node


class _Body:
    """A function's body as one call runs it.

    Attributes:
        nodes: its nodes, with unique names and with attributes bound.
        infos: its value_info, for the values that its nodes make.
    """

    def __init__(self, call: NodeProto, function: FunctionProto, base: str, names: Names) -> None:
        given = {"": ""}
        for index, name in enumerate(function.input):
            given[name] = call.input[index] if index < len(call.input) else ""
        outputs = dict(zip(function.output, call.output, strict=False))
        wanted = {name: actual for name, actual in outputs.items() if actual}
        given = {**wanted, **given}
        self.nodes = [NodeProto.FromString(node.SerializeToString()) for node in function.node]
        renaming = Renaming(given, base, names, closed=True)
        for node in self.nodes:
            renaming.node(node)
        # After renaming: a graph among the call's attributes uses names of the caller.
        bound = attributes.of_call(call, function)
        for node in self.nodes:
            bind(node, bound)
        for name in wanted.keys() & set(function.input):
            # An input that is an output too.
            self.nodes.append(
                NodeProto(
                    op_type="Identity",
                    name=names.fresh(f"{base}_{name}"),
                    input=[given[name]],
                    output=[wanted[name]],
                )
            )
        for node in self.nodes:
            _inherit(node, call, function)
        self.infos = [
            _named(info, given[info.name])
            for info in function.value_info
            if info.name in given and info.name not in function.input
        ]


def _named(info: ValueInfoProto, name: str) -> ValueInfoProto:
    copy = ValueInfoProto()
    copy.CopyFrom(info)
    copy.name = name
    for dim in copy.type.tensor_type.shape.dim:
        # A dimension of the same name may be another size outside of the function.
        dim.ClearField("dim_param")
    return copy


def _inherit(node: NodeProto, call: NodeProto, function: FunctionProto) -> None:
    """Give a node of a body the doc_string and metadata of the call and of the function."""
    for owner in (call, function):
        if not node.doc_string and isinstance(owner.doc_string, str):  # Else it is not UTF-8.
            node.doc_string = owner.doc_string
        known = {entry.key for entry in node.metadata_props}
        node.metadata_props.extend(
            entry for entry in owner.metadata_props if entry.key not in known
        )
