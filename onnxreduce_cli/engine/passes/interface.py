"""Casts at inputs and outputs, where what callers give and get is of another dtype than inside."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.changes import Change
from onnxreduce_cli.engine.differences import differences
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.graph.dead_values import names_read
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import Scope, by_root, scopes, subgraphs
from onnxreduce_cli.model.graph.values import dtype_name, narrows, parse_dtype
from onnxreduce_cli.text import did_you_mean, quoted


@dataclass(frozen=True, slots=True)
class CastInterface:
    """The Casts at a model's inputs and outputs, and the changes that they bring.

    Attributes:
        casts: the names of the Casts.
        changes: the nodes whose inputs or outputs changed, each with the Casts of inputs that it is
            the first to read, and of its outputs.
        lines: a description of each change, in one line.
    """

    casts: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    lines: tuple[str, ...] = ()


def cast_values(model: ModelProto) -> frozenset[str]:
    """Return the inputs of a model that only Casts read, and the outputs that only a Cast makes.

    They have their Casts already: their dtypes may stay whatever the other values become.
    """
    graph = model.graph
    tree = by_root(found := scopes(model))[id(found[0])]
    casts = [node for node in graph.node if node.op_type == "Cast" and is_default(node.domain)]
    of_casts = {id(node) for node in casts}
    outputs = {item.name for item in graph.output}
    read = {name for scope in tree[1:] for name in scope.outputs}
    for scope in tree:
        read.update(n for node in scope.nodes if id(node) not in of_casts for n in node.input)
    taken = {node.input[0] for node in casts} & {item.name for item in graph.input}
    read_by_casts = {node.input[0] for node in casts}
    given = {node.output[0] for node in casts} & outputs
    return frozenset((taken - read - outputs) | (given - read - read_by_casts))


def cast_interface(
    model: ModelProto, names: Collection[str], outer: int, inner: int
) -> CastInterface:
    """Add Casts at inputs and outputs of a model, in place.

    Requires: inputs and outputs of these names and of dtype `outer`; the nodes that read or make
    them are of dtype `inner` already.

    Args:
        model: the model.
        names: the names of the inputs and outputs.
        outer: their dtype.
        inner: the dtype of the values between them.
    """
    graph = model.graph
    tree = by_root(found := scopes(model))[id(found[0])]
    inputs = dict.fromkeys(item.name for item in graph.input if item.name in names)
    read = {name for scope in tree for node in scope.nodes for name in node.input}
    read.update(name for scope in tree[1:] for name in scope.outputs)
    taken = [name for name in inputs if name in read]
    # A model may name one output twice.
    outputs = dict.fromkeys(item.name for item in graph.output)
    given = [name for name in outputs if name in names and name not in inputs]
    fresh = Names(tree)
    renamed = {name: fresh.fresh(f"{name}_inner") for name in (*taken, *given)}
    before = [(scope, copy_of(node), node) for scope, node in _to_rename(tree, renamed)]
    for node in graph.node:
        _rename(node, renamed)
    for tensor in graph.initializer:
        if tensor.name not in inputs:
            tensor.name = renamed.get(tensor.name, tensor.name)
    opset = tree[0].opset or 0
    first = [cast_node(name, renamed[name], inner, opset) for name in taken]
    last = [cast_node(renamed[name], name, outer, opset) for name in given]
    if opset < 6:
        _state_cast_inputs(graph, {name: renamed[name] for name in taken}, inner)
    left = list(first)
    changes = tuple(
        _change(scope, node, after, *((left, last) if scope is tree[0] else ([], [])))
        for scope, node, after in before
    )
    nodes = [*first, *map(copy_of, graph.node), *last]
    del graph.node[:]
    graph.node.extend(nodes)
    return CastInterface(tuple(node.name for node in (*first, *last)), changes)


def change_interface(model: ModelProto, dtypes: Mapping[str, str]) -> CastInterface:
    """Change the dtypes of inputs and outputs of a model alone, in place.

    Args:
        model: the model.
        dtypes: the new dtypes by the names of inputs and outputs, as `parse_dtype` reads them.

    Raises:
        UsageError: there is no such input, output or dtype, or a Cast does not lead there.
    """
    pairs = {name: _dtypes_of(model, name, text) for name, text in dtypes.items()}
    lines = [_line(model, name, *pair) for name, pair in pairs.items()]
    wanted: dict[tuple[int, int], list[str]] = {}
    for name, (before, after) in pairs.items():
        if before != after:
            wanted.setdefault((before, after), []).append(name)
    done = CastInterface(lines=tuple(lines))
    for (before, after), names in wanted.items():
        for name in names:
            for _, proto in _types_of(model.graph, name):
                proto.tensor_type.elem_type = after
        found = cast_interface(model, names, after, before)
        done = CastInterface(
            (*done.casts, *found.casts), (*done.changes, *found.changes), done.lines
        )
    return done


def _types_of(graph: GraphProto, name: str) -> list[tuple[str, TypeProto]]:
    """Return the types of the input and the output of a name, those that there are."""
    return [
        (what, info.type)
        for what, infos in (("input", graph.input), ("output", graph.output))
        for info in infos
        if info.name == name
    ]


def _dtypes_of(model: ModelProto, name: str, text: str) -> tuple[int, int]:
    """Return the dtype of an input or output, and the one that it is to get.

    Raises:
        UsageError: there is no such one, or a Cast does not lead from one to the other.
    """
    graph, said = model.graph, f"--io-dtype {name}={text}"
    types = _types_of(graph, name)
    if not types:
        known = [info.name for info in (*graph.input, *graph.output)]
        raise UsageError(
            f"{said}: the model has no input or output {quoted(name)}{did_you_mean(name, known)}; "
            f"its inputs: {_names(info.name for info in graph.input)}; its outputs: "
            f"{_names(info.name for info in graph.output)}"
        )
    after = parse_dtype(text)
    before = types[0][1].tensor_type.elem_type
    if not before:
        raise UsageError(f"{said}: it is no tensor of a known dtype; leave it out")
    if before == after:
        return before, after
    if any(tensor.name == name for tensor in graph.initializer) and types[0][0] == "input":
        raise UsageError(
            f"{said}: the input has a default, an initializer, which would be of the old dtype; "
            "leave it out, or remove the input"
        )
    opset = scopes(model)[0].opset
    if opset is None:
        raise UsageError(f"{said}: the model imports no default domain, so it can have no Cast")
    allowed = schemas.allowed_types("Cast", opset)
    for what, _ in types:
        ends = (after, before) if what == "input" else (before, after)
        for side, end in zip(("in0", "out0"), ends, strict=True):
            if f"tensor({dtype_name(end)})" not in allowed[side] or end == TensorProto.STRING:
                raise UsageError(
                    f"{said}: Cast-{opset} does not lead from {dtype_name(ends[0])} to "
                    f"{dtype_name(ends[1])}; choose another dtype"
                )
    return before, after


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names)) or "none"


def _line(model: ModelProto, name: str, before: int, after: int) -> str:
    """Return the description of a changed input or output in one line."""
    what = " and ".join(item for item, _ in _types_of(model.graph, name))
    old, new = dtype_name(before), dtype_name(after)
    if before == after:
        return f"{what} {name} is {new} already"
    line = f"{what} {name}: {new} instead of {old}, which a Cast inside restores"
    if what == "output":
        line = f"{what} {name}: {new} instead of {old}, by a Cast at its end"
    if not narrows(before, after):
        return line
    return f"{line}; values that do not fit {new} are not what they were"


def _to_rename(tree: list[Scope], names: Collection[str]) -> list[tuple[Scope, NodeProto]]:
    """Return the nodes that read or make values of these names, each with its scope."""
    return [
        (scope, node)
        for scope in tree
        for node in scope.nodes
        if any(name in names for name in (*node.input, *node.output))
    ]


def _change(
    scope: Scope, node: NodeProto, after: NodeProto, first: list[NodeProto], last: list[NodeProto]
) -> Change:
    """Return the change of a node.

    Args:
        scope: its scope.
        node: the node before.
        after: the node after.
        first: the Casts of inputs that no earlier node reads; those that it reads are removed.
        last: the Casts of outputs.
    """
    mine = [item for item in first if item.output[0] in {*names_read(after)}]
    for item in mine:
        first.remove(item)
    result = [*mine, after, *(item for item in last if item.input[0] in after.output)]
    opset = scope.opset or 0
    return Change(
        scope.describe(node),
        node.op_type,
        scope.label,
        tuple(differences(node, result, (opset, opset), {})),
        tuple(item.op_type for item in result),
        nodes=len(result),
    )


def cast_node(before: str, after: str, dtype: int, opset: int) -> NodeProto:
    """Return a Cast of a value to a dtype, as an opset writes it."""
    to = dtype if opset >= 6 else TensorProto.DataType.Name(dtype)  # Before 6 it is a text.
    return helper.make_node("Cast", [before], [after], name=f"{after}_cast", to=to)


def _state_cast_inputs(graph: GraphProto, cast: dict[str, str], dtype: int) -> None:
    """Add the types of inputs that were cast, which inference does not find before opset 6."""
    for item in graph.input:
        if item.name in cast:
            info = graph.value_info.add(name=cast[item.name])
            info.type.CopyFrom(item.type)
            info.type.tensor_type.elem_type = dtype


def copy_of(node: NodeProto) -> NodeProto:
    """Return a copy of a node."""
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy


def _rename(node: NodeProto, names: dict[str, str]) -> None:
    """Rename the inputs and outputs of a node, in its subgraphs too."""
    waiting = [node]
    while waiting:
        item = waiting.pop()
        item.input[:] = [names.get(name, name) for name in item.input]
        item.output[:] = [names.get(name, name) for name in item.output]
        for _, graph in subgraphs(item):
            _rename_outputs(graph, names)
            waiting += graph.node


def _rename_outputs(graph: GraphProto, names: dict[str, str]) -> None:
    for output in graph.output:
        output.name = names.get(output.name, output.name)
