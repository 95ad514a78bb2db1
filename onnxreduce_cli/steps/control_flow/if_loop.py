"""If and Loop: 11 allowed branches of different shapes, and a Loop without carried values."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, TensorProto, helper

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.values import ValueType
from onnxreduce_cli.steps.control_flow.if_as_loops import BRANCHES, as_loops
from onnxreduce_cli.steps.registry import down


@down("If", 11, "unchanged; where its branches may give different shapes a Loop for each of them")
def if_branches_of_one_shape(context: Context) -> None:
    """An If stays as it is where its branches are known to give one shape; else see `as_loops`.

    The older definition requires equal shapes, and runtimes take the shapes inferred of one branch
    for those of the other. Where not even a dtype is known the node passes with a
    warning.
    """
    types_of_branches = [context.subgraph_types(name) for name in BRANCHES]
    unlike = [
        index
        for index, pair in enumerate(zip(*types_of_branches, strict=True))
        if not _of_one_shape(*pair)
    ]
    if unlike and all(item is not None for types in types_of_branches for item in types):
        as_loops(context, types_of_branches)
        return
    for index in unlike:
        context.warn(
            "before opset 11 the branches of an If must give the same shape, which is not "
            f"known of output {index}"
        )


def _of_one_shape(first: ValueType | None, second: ValueType | None) -> bool:
    """Return whether two values are known to have one shape."""
    if first is None or second is None or first.dims is None:
        return False
    return first.dims == second.dims and None not in first.dims


@down("Loop", 11, "a value is carried through unused where none is carried")
def loop_carries_a_value(context: Context) -> None:
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
