"""Function operators, replaced by the function body that the specification defines them by.

These are CausalConvWithState, CenterCropPad, DynamicQuantizeLinear, losses and windows. The
body is that of the operator's first version, at the opset it is written for; the steps of its
nodes take them further. Operators whose official body loses precision have steps elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, helper, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.attributes import bind
from onnxreduce_cli.model.graph.domains import default_opset
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, subgraphs
from onnxreduce_cli.steps.registry import introduced

#: Operators by the opset that introduced them.
_OPERATORS = {
    11: ("DynamicQuantizeLinear",),
    12: ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"),
    17: ("BlackmanWindow", "HammingWindow", "HannWindow"),
    18: ("CenterCropPad",),
    27: ("CausalConvWithState",),
}


_NEWER = "install a newer onnx, or choose opset 23 or later"


def replace_by_function_body(context: Context) -> None:
    """``Op<alpha=2>(x)`` becomes the nodes of its function body, with names of their own.

    Constants are made as for every step, references to attributes are bound to the node's or to
    their defaults, and nodes that only make outputs that nobody reads are left out.
    """
    check_causal(context)
    function = _function_body(context)
    context = context.at(default_opset(function) or context.op.opset)
    actual_inputs = dict(zip(function.input, context.node.input, strict=False))
    names = {name: actual_inputs.get(name, "") for name in function.input}
    wanted = dict(zip(function.output, context.node.output, strict=False))
    names |= {name: actual for name, actual in wanted.items() if actual}
    bound = _attribute_values(context)
    nodes = _nodes_for_outputs(function, set(wanted))
    for node in nodes:
        bind(node, bound)
    _emit_all(context, nodes, names)


def check_causal(context: Context) -> None:
    """Raise `Blocked` for an Attention whose body does not do what is_causal says.

    That of older releases of onnx leaves it out where there is a mask, and so does what checks the
    replacement.
    """
    if context.node.op_type != "Attention" or context.value("is_causal", 0) != 1:
        return
    if not any(node.op_type in ("Trilu", "Less") for node in _function_body(context).node):
        raise Blocked(
            "the function body that the installed onnx has for it leaves out is_causal where "
            "there is a mask",
            _NEWER,
        )


def check_definition(context: Context, *, grouped: bool) -> None:
    """Raise `Blocked` for an Attention that older releases of onnx define in another way.

    Their body repeats all heads of keys one after the other, not each by itself, and caps scores
    with the mask in them; so does what checks the replacement.

    Args:
        context: the context of the node.
        grouped: whether there are fewer heads of keys than of queries.
    """
    masked = context.input(3) or context.value("is_causal", 0) == 1
    op_types = [node.op_type for node in _function_body(context).node]
    if grouped and "Tile" in op_types:
        what = "repeats heads of keys and values in another order than the definition"
    elif masked and "Tanh" in op_types and "Add" not in op_types[op_types.index("Tanh") :]:
        what = "caps scores after the mask is added to them, not before"
    else:
        return
    raise Blocked(f"the function body that the installed onnx has for it {what}", _NEWER)


def _emit_all(context: Context, nodes: Iterable[NodeProto], names: dict[str, str]) -> None:
    """Emit a body's nodes.

    Args:
        context: the node.
        nodes: the nodes of the body, in order.
        names: the name in the model of each value of the body; emitted values are added to it.
    """
    for node in nodes:
        tensor = _constant_tensor(node)
        if tensor is not None and names.get(node.output[0]) is None:
            array = context.array(numpy_helper.to_array(tensor), node.output[0])
            names[node.output[0]] = array
            continue
        if node.op_type == "Identity" and node.output[0] not in names:
            names[node.output[0]] = names[node.input[0]]
            continue
        for name in node.output:
            if name and name not in names:
                names[name] = context.fresh(name)
        if node.op_type == "If":
            condition = context.constant(names[node.input[0]])
            if condition is not None:
                _emit_branch(context, node, bool(condition), names)
                continue
        if node.op_type in GRAPH_OPERATORS:
            raise Blocked(
                f"its function body has the operator {node.op_type}, and no control flow is added",
                f"choose opset {schemas.versions(context.node.op_type)[0]} or later",
            )
        values: dict[str, Any] = {attribute.name: attribute for attribute in node.attribute}
        inputs, outputs = ([names.get(it, it) for it in part] for part in (node.input, node.output))
        if context.node.output[0] in outputs:
            context.replace(node.op_type, inputs, outputs, keep=(), **values)
        else:
            context.op.emit(node.op_type, *inputs, outputs=outputs, **values)


def _emit_branch(context: Context, node: NodeProto, chosen: bool, names: dict[str, str]) -> None:
    """Emit the nodes of the one branch of an If that is ever taken, in place of the If."""
    wanted = "then_branch" if chosen else "else_branch"
    branch = next(attribute.g for attribute in node.attribute if attribute.name == wanted)
    pairs = zip(branch.output, node.output, strict=True)
    # What the branch defines is not seen outside; what it gives is called as the If calls it.
    inner = names | {output.name: names[name] for output, name in pairs}
    _emit_all(context, branch.node, inner)


def _function_body(context: Context) -> FunctionProto:
    """Return the function body of the operator's first version, for this very node."""
    op_type = context.node.op_type
    # The stubs of onnx leave out most of what a schema has to say about functions.
    schema: Any = schemas.schema(op_type, schemas.versions(op_type)[0])
    function = FunctionProto()
    if schema.function_opset_versions:
        body = schema.get_function_with_opset_version(schema.function_opset_versions[0])
        function.ParseFromString(body)
        return function
    # What the body is depends on which inputs there are, on their types and on attributes.
    node = NodeProto()
    node.CopyFrom(context.node)
    given, bound = [item.name for item in node.attribute], _attribute_values(context)
    del node.attribute[:]
    node.attribute.extend(bound[name] for name in given if name in bound)
    types = []
    for name in node.input:
        if name:
            context.need_elem_type(name, "the operator's function body depends on it")
        known = context.type(name)
        types.append(known.to_proto().SerializeToString() if known is not None else b"")
    version = schema.context_dependent_function_opset_versions[0]
    function.ParseFromString(
        schema.get_context_dependent_function_with_opset_version(
            version, node.SerializeToString(), types
        )
    )
    return function


def _attribute_values(context: Context) -> dict[str, AttributeProto]:
    """Return the node's attributes by name, references resolved, and the schema's defaults."""
    op_type = context.node.op_type
    schema = schemas.schema(op_type, schemas.versions(op_type)[0])
    bound = {}
    for name, definition in schema.attributes.items():
        if definition.default_value.name:
            bound[name] = definition.default_value
        given = context.attribute(name)
        value = None if given is None else context.value(name)
        if given is not None and value is not None:
            bound[name] = helper.make_attribute(name, value, attr_type=given.type or None)
    return bound


def _nodes_for_outputs(function: FunctionProto, wanted: set[str]) -> list[NodeProto]:
    """Return copies of the nodes of a body that the wanted outputs depend on, in order."""
    needed = set(wanted)
    kept = []
    for node in reversed(function.node):
        if needed.intersection(node.output):
            copy = NodeProto()
            copy.CopyFrom(node)
            kept.append(copy)
            needed |= _used_names(node)
    return kept[::-1]


def _used_names(node: NodeProto) -> set[str]:
    """Return the names that a node and the graphs within it read."""
    names = set(node.input)
    for _, graph in subgraphs(node):
        names |= {output.name for output in graph.output}
        for inner in graph.node:
            names |= _used_names(inner)
    return names


def _constant_tensor(node: NodeProto) -> onnx.TensorProto | None:
    """Return the tensor that a Constant node gives; None for any other node."""
    if node.op_type != "Constant":
        return None
    attribute = node.attribute[0]
    value = attributes.value(attribute)
    if attribute.name == "value":
        return attribute.t
    elem_type = onnx.TensorProto.FLOAT if "float" in attribute.name else onnx.TensorProto.INT64
    dims = [len(value)] if attribute.name.endswith("s") else []
    return helper.make_tensor(attribute.name, elem_type, dims, value if dims else [value])


BLOCKS = "the type of an input is not known, or its body has operators that block"
for _opset, _op_types in _OPERATORS.items():
    introduced(_op_types, _opset, "the operator's function body", blocks=BLOCKS)(
        replace_by_function_body
    )
