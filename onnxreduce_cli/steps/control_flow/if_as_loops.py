"""If before opset 11 whose branches give different shapes, as Loops."""

from __future__ import annotations

from onnx import GraphProto, TensorProto, ValueInfoProto

from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import turn_into_loop_body
from onnxreduce_cli.model.graph.values import ValueType, tensor_type, zeros

BRANCHES = ("then_branch", "else_branch")


def as_loops(context: Context, types_of_branches: list[list[ValueType | None]]) -> None:
    """``y = If<then_branch, else_branch>(c)`` becomes
    ``y = Loop<else_branch>(Cast(Not(c)), "", Loop<then_branch>(Cast(c), "", 0))``.

    Each makes one round or none, and what a Loop carries may change its shape.

    Args:
        context: the If.
        types_of_branches: for each branch the types of its outputs, as far as they are known.
    """
    op = context.op
    condition = op.Reshape(context.input(0), context.array([], "scalar"))
    outputs = [name or context.fresh("unused") for name in context.node.output]
    types = []
    for name, pair in zip(outputs, zip(*types_of_branches, strict=True), strict=True):
        known = next((item for item in pair if item is not None), None)
        elem_type = known.elem_type if known is not None else 0
        types.append(elem_type or context.need_elem_type(name, "it is carried through a Loop"))
    values = [context.array(zeros(elem_type), "nothing") for elem_type in types]
    for name in BRANCHES:
        attribute = context.attribute(name)
        assert attribute is not None
        taken = condition if name == BRANCHES[0] else op.Not(condition)
        count = cast(context, taken, TensorProto.INT64)
        # Its nodes follow when the plan is applied: Ifs may nest, and nobody asks for them before.
        body = GraphProto(name=context.fresh(name), output=attribute.g.output)
        context.taken_over[body.name] = name
        carried = []
        for output, elem_type in zip(body.output, types, strict=True):
            proto = tensor_type(elem_type, None).to_proto()
            output.type.CopyFrom(proto)
            carried.append(ValueInfoProto(name=context.fresh("carried"), type=proto))
        inputs = [count, "", *values]
        turn_into_loop_body(context, body, carried)
        if name == BRANCHES[0]:
            values = [*op.Loop(*inputs, outputs=len(outputs), body=body)]
            for value, elem_type in zip(values, types, strict=True):
                context.state_type(value, tensor_type(elem_type, None))
        else:
            context.replace("Loop", inputs, outputs, keep=(), body=body)
