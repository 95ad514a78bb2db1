"""If and Loop: 11 allowed branches of different shapes, and a Loop that carries nothing."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, TensorProto, ValueInfoProto, helper

from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import of_one_round
from onnxreduce_cli.model.values import ValueType, tensor_type, zeros
from onnxreduce_cli.steps.registry import down

_BRANCHES = ("then_branch", "else_branch")


@down("If", 11, "unchanged; where its branches may give different shapes a Loop for each of them")
def one_shape(context: Context) -> None:
    """An If stays as it is where its branches are known to give one shape; else see `_as_loops`.

    The older wording asks for equal shapes, and what runs it takes those of one branch, as far as
    it sees them, for those of the other. Where not even a dtype is known the node passes with a
    warning.
    """
    given = [context.subgraph_types(name) for name in _BRANCHES]
    unlike = [
        index for index, pair in enumerate(zip(*given, strict=True)) if not _of_one_shape(*pair)
    ]
    if unlike and all(item is not None for types in given for item in types):
        _as_loops(context, given)
        return
    for index in unlike:
        context.warn(
            "before opset 11 the branches of an If must give the same shape, which is not "
            f"known of output {index}"
        )


def _of_one_shape(first: ValueType | None, second: ValueType | None) -> bool:
    """Whether two values are known to have one shape."""
    if first is None or second is None or first.dims is None:
        return False
    return first.dims == second.dims and None not in first.dims


def _as_loops(context: Context, given: list[list[ValueType | None]]) -> None:
    """``y = If<then_branch, else_branch>(c)`` becomes
    ``y = Loop<else_branch>(Cast(Not(c)), "", Loop<then_branch>(Cast(c), "", 0))``.

    Each makes one round or none, and what a Loop carries may change its shape.
    """
    op = context.op
    condition = op.Reshape(context.input(0), context.array([], "scalar"))
    outputs = [name or context.fresh("unused") for name in context.node.output]
    types = []
    for name, pair in zip(outputs, zip(*given, strict=True), strict=True):
        known = next((item for item in pair if item is not None), None)
        elem_type = known.elem_type if known is not None else 0
        types.append(elem_type or context.need_elem_type(name, "it is carried through a Loop"))
    values = [context.array(zeros(elem_type), "nothing") for elem_type in types]
    for name in _BRANCHES:
        attribute = context.attribute(name)
        assert attribute is not None
        taken = condition if name == _BRANCHES[0] else op.Not(condition)
        count = cast(context, taken, TensorProto.INT64)
        body = GraphProto()
        body.CopyFrom(attribute.g)
        body.name = context.fresh(name)
        context.taken_over[body.name] = name
        carried = []
        for output, elem_type in zip(body.output, types, strict=True):
            proto = tensor_type(elem_type, None).to_proto()
            output.type.CopyFrom(proto)
            carried.append(ValueInfoProto(name=context.fresh("carried"), type=proto))
        inputs = [count, "", *values]
        of_one_round(context, body, carried)
        if name == _BRANCHES[0]:
            values = [context.fresh("chosen") for _ in outputs]
            op.Loop(*inputs, outputs=values, body=body)
            for value, elem_type in zip(values, types, strict=True):
                context.state_type(value, tensor_type(elem_type, None))
        else:
            context.replace("Loop", inputs, outputs, keep=(), body=body)


@down("Loop", 11, "a value is carried through unused where none is carried")
def carries_something(context: Context) -> None:
    """``s = Loop(n, c)`` becomes ``unused, s = Loop(n, c, true)``, whose body gives what it gets.

    A Loop that carries a value stays as it is.
    """
    if len(context.node.input) > 2:
        return
    body = GraphProto()
    body.CopyFrom(next(item.g for item in context.node.attribute if item.name == "body"))
    carried = helper.make_tensor_value_info(context.fresh("carried"), TensorProto.BOOL, [])
    kept = helper.make_tensor_value_info(context.fresh("kept"), TensorProto.BOOL, [])
    scanned = list(body.output)[1:]
    body.input.append(carried)
    del body.output[1:]
    body.output.extend([kept, *scanned])
    body.node.add(op_type="Identity", name=kept.name, input=[carried.name], output=[kept.name])
    true = context.array(np.array(True), "true")
    inputs = [*context.node.input, "", ""][:2]
    outputs = [context.fresh("unused"), *context.node.output]
    context.replace(inputs=[*inputs, true], outputs=outputs, body=body)
