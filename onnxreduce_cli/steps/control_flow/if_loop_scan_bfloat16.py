"""If, Loop and Scan: 16 let bfloat16 into and out of their graphs."""

from __future__ import annotations

from typing import Any

from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import put_nodes_around
from onnxreduce_cli.model.graph.values import ValueType, tensor_type
from onnxreduce_cli.steps.registry import down

#: For each operator its graphs, the first of its inputs that is one of theirs at the same index,
#: and which output of theirs is its first.
_GRAPHS = {
    "If": (("then_branch", "else_branch"), 1, 0),
    "Loop": (("body",), 2, 1),
    "Scan": (("body",), 0, 0),
}


@down(_GRAPHS, 16, "bfloat16 given to and by its graphs as float")
def graphs_in_float(context: Context) -> None:
    """``z = If<then_branch=(y)>(c)`` of bfloat16 becomes
    ``z = Cast<bfloat16>(If<then_branch=(Cast<float>(y))>(c))``.

    Loop and Scan read float too, which their bodies first cast back.
    """
    graphs, first_input, first_output = _GRAPHS[context.node.op_type]
    narrow_inputs = [
        index
        for index, name in enumerate(context.node.input)
        if index >= first_input and context.elem_type(name) == TensorProto.BFLOAT16
    ]
    types = zip(*(context.subgraph_types(name) for name in graphs), strict=True)
    narrow_outputs = [
        index
        for index, known in enumerate(types)
        if any(item is not None and item.elem_type == TensorProto.BFLOAT16 for item in known)
    ]
    if not narrow_inputs and not narrow_outputs:
        return
    inputs, outputs = list(context.node.input), list(context.node.output)
    for index in narrow_inputs:
        inputs[index] = cast(context, inputs[index], TensorProto.FLOAT)
    attributes: dict[str, Any] = {}
    for name in graphs:
        attributes[name] = _in_float(context, name, narrow_inputs, narrow_outputs)
    float_outputs = [(index - first_output, context.fresh("float")) for index in narrow_outputs]
    float_outputs = [
        (index, name) for index, name in float_outputs if outputs[index : index + 1] > [""]
    ]
    for index, name in float_outputs:
        context.state_type(name, _float_like(context, outputs[index]))
        outputs[index] = name
    context.replace(inputs=inputs, outputs=outputs, **attributes)
    for index, name in float_outputs:
        cast(context, name, TensorProto.BFLOAT16, [context.node.output[index]])


def _float_like(context: Context, name: str) -> ValueType:
    """Return the type of a float tensor with the dimensions of a value."""
    known = context.type(name)
    return tensor_type(TensorProto.FLOAT, None if known is None else known.dims)


def _in_float(
    context: Context, name: str, narrow_inputs: list[int], narrow_outputs: list[int]
) -> GraphProto:
    """Return a copy of a graph with some of its inputs and outputs in float."""
    attribute = context.attribute(name)
    assert attribute is not None
    graph = GraphProto()
    graph.CopyFrom(attribute.g)
    before = []
    for index in narrow_inputs:
        inner = graph.input[index].name
        outer = _turn_to_float(context, graph.input[index])
        before.append(_cast_node(outer, inner, TensorProto.BFLOAT16))
    after = []
    for index in narrow_outputs:
        inner = graph.output[index].name
        outer = _turn_to_float(context, graph.output[index])
        after.append(_cast_node(inner, outer, TensorProto.FLOAT))
    put_nodes_around(graph, before, after)
    return graph


def _turn_to_float(context: Context, info: ValueInfoProto) -> str:
    """Give an input or output of a graph another name and the dtype float; return the name."""
    info.name = context.fresh("float")
    if info.HasField("type"):
        info.type.tensor_type.elem_type = TensorProto.FLOAT
    return str(info.name)


def _cast_node(name: str, output: str, to: int) -> NodeProto:
    return helper.make_node("Cast", [name], [output], name=output, to=to)
