"""If and Loop: 11 allowed branches of different shapes, and a Loop that carries nothing."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, TensorProto, helper

from onnxreduce_cli.model.values import Dims
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down


@down("If", 11, "unchanged", blocks="the branches give different shapes")
def one_shape(context: Context) -> None:
    """An If stays as it is where its branches give one shape, as far as is known.

    Where a shape is not known the node passes with a warning: the older wording asks for equal
    shapes, but nothing that runs it insists on that.
    """
    branches = [context.subgraph_outputs(name) for name in ("then_branch", "else_branch")]
    for index, (first, second) in enumerate(zip(*branches, strict=True)):
        if first is None or second is None or not _concrete(first, second):
            context.warn(
                "before opset 11 the branches of an If must give the same shape, which is not "
                f"known of output {index}"
            )
        elif first != second:
            raise Blocked(
                f"its branches give output {index} different shapes, {first} and {second}, which "
                "opset 11 allowed",
                "choose opset 11 or later",
            )


def _concrete(first: Dims, second: Dims) -> bool:
    """Whether two shapes are known well enough to say that they are equal or that they differ."""
    if len(first) != len(second):
        return True
    return all(
        a == b if a is not None and b is not None else False
        for a, b in zip(first, second, strict=True)
        if not (isinstance(a, int) and isinstance(b, int))
    )


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
