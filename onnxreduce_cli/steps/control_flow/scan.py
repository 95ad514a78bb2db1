"""Scan: 9 took the batch dimension away and added axes, 11 let these be negative.

It was introduced with opset 8, below which it becomes a Loop.
"""

from __future__ import annotations

from typing import Any

from onnx import GraphProto, NodeProto, ValueInfoProto, helper

from onnxreduce_cli.emit.axes import non_negative_axes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import put_nodes_around
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.sizes import size_of
from onnxreduce_cli.steps.control_flow.scan_as_loop import as_scan_over_batch, scan_as_loop
from onnxreduce_cli.steps.control_flow.scan_axes import for_each_value, unstack
from onnxreduce_cli.steps.registry import down, up


@down("Scan", 11, "negative axes made non-negative, of the transpose where the rank is not known")
def scan_axes_from_front(context: Context) -> None:
    """``Scan<scan_input_axes=[-1]>(x)``, x of rank 3, becomes ``Scan<scan_input_axes=[2]>(x)``.

    Where the rank is not known it becomes ``Scan<scan_input_axes=[0]>(Transpose(x))``, whose body
    begins with a Transpose that turns the slice back; outputs likewise.
    """
    op = context.op
    inputs, outputs = list(context.node.input), list(context.node.output)
    states = len(inputs) - context.value("num_scan_inputs")
    attribute = context.attribute("body")
    assert attribute is not None
    body = GraphProto()
    body.CopyFrom(attribute.g)
    turned: list[tuple[str, str]] = []
    before: list[NodeProto] = []
    after: list[NodeProto] = []
    axes = for_each_value(context, "scan_input_axes", states, inputs)
    for index, axis in enumerate(axes):
        if axis >= 0:
            continue
        axes[index] = _from_front(context, inputs[index], axis)
        if context.rank(inputs[index]) is None:
            inputs[index] = op.Transpose(inputs[index])
            inner, outer = _renamed(context, body.input[index])
            before.append(helper.make_node("Transpose", [outer], [inner], name=outer))
    output_axes = for_each_value(context, "scan_output_axes", states, outputs)
    for index, axis in enumerate(output_axes):
        if axis >= 0:
            continue
        output_axes[index] = _from_front(context, outputs[index], axis)
        if outputs[index] and context.rank(outputs[index]) is None:
            turned.append((context.fresh("turned"), outputs[index]))
            outputs[index] = turned[-1][0]
            inner, outer = _renamed(context, body.output[index])
            after.append(helper.make_node("Transpose", [inner], [outer], name=outer))
    changes: dict[str, Any] = {}
    if before or after:
        put_nodes_around(body, before, after)
        changes["body"] = body
    for name, counted_from_front in (("scan_input_axes", axes), ("scan_output_axes", output_axes)):
        if any(axis < 0 for axis in context.value(name, ())):
            changes[name] = counted_from_front[states:]
    if changes:
        context.replace(inputs=inputs, outputs=outputs if turned else None, **changes)
        for name, output in turned:
            op.Transpose(name, outputs=[output])


def _from_front(context: Context, name: str, axis: int) -> int:
    """Return a negative axis counted from the front, of the transpose where the rank is unknown."""
    rank = context.rank(name)
    return -1 - axis if rank is None else non_negative_axes((axis,), rank)[0]


def _renamed(context: Context, info: ValueInfoProto) -> tuple[str, str]:
    """Give an input or output of a body another name, and no shape; return the old and the new."""
    name = info.name
    info.name = context.fresh("turned")
    if info.HasField("type"):
        info.type.tensor_type.ClearField("shape")
    return name, info.name


@up(
    "Scan",
    9,
    "the batch dimension squeezed away, or a Scan over it around; directions called "
    "scan_input_directions",
)
def without_batch(context: Context) -> None:
    """``Scan<directions=[1]>("", s, x)`` with a batch of 1 becomes
    ``Unsqueeze(Scan<scan_input_directions=[1]>(Squeeze(s), Squeeze(x)))``; for another batch see
    `as_scan_over_batch`.
    """
    op = context.op
    names = context.node.input[1:]
    known = [context.type(name) for name in names]
    one = any(item is not None and item.dims and item.dims[0] == 1 for item in known)
    if context.input(0) or not one:
        as_scan_over_batch(context)
        return
    inputs = [op.Squeeze(name, axes=[0]) for name in names]
    outputs = [name and context.fresh("without_batch") for name in context.node.output]
    directions = context.value("directions")
    context.replace(
        inputs=inputs, outputs=outputs, drop=("directions",), scan_input_directions=directions
    )
    for result, output in zip(outputs, context.node.output, strict=True):
        if result:
            op.Unsqueeze(result, outputs=[output], axes=[0])


@down("Scan", 8, "a Loop over the batch, and one over each sequence")
def over_batch(context: Context) -> None:
    """``Scan("", s, x)`` becomes a Scan of opset 9 over the batch, which becomes a Loop there."""
    as_scan_over_batch(context)


_SINCE_9 = (
    "scan_input_axes",
    "scan_input_directions",
    "scan_output_axes",
    "scan_output_directions",
)


@down(
    "Scan",
    9,
    "a batch dimension of 1 added, axes done by Transpose; a Loop where opset 8 is left too, or "
    "the rank of an input with an axis is not known",
    blocks="the rank of an output with an axis is not known, or it scans from the end and leads "
    f"below opset 6, or {NO_COUNTING}",
)
def with_batch(context: Context) -> None:
    """``Scan<scan_input_axes=[1]>(s, x)`` becomes
    ``Squeeze(Scan("", Unsqueeze(s), Unsqueeze(Transpose(x))))``.
    """
    op = context.op
    states = len(context.node.input) - context.value("num_scan_inputs")
    scanned_along = for_each_value(context, "scan_input_axes", states, context.node.input)
    read = list(zip(context.node.input, scanned_along, strict=True))
    if not context.reaches(8) or any(axis and context.rank(name) is None for name, axis in read):
        scan_as_loop(context)
        return
    inputs = [""]
    for name, axis in read:
        first = name
        if axis:
            rank = context.need_rank(name, f"it is scanned along axis {axis}")
            perm = [axis, *(index for index in range(rank) if index != axis)]
            first = op.Transpose(name, perm=perm)
        inputs.append(op.Unsqueeze(first, axes=[0]))
    outputs = [name and context.fresh("with_batch") for name in context.node.output]
    directions = context.value("scan_input_directions")
    context.replace(inputs=inputs, outputs=outputs, drop=_SINCE_9, directions=directions)
    changes = zip(
        for_each_value(context, "scan_output_axes", states, context.node.output),
        for_each_value(context, "scan_output_directions", states, context.node.output),
        strict=True,
    )
    for result, output, (axis, backwards) in zip(
        outputs, context.node.output, changes, strict=True
    ):
        if not result:
            continue
        if not axis and not backwards:
            op.Squeeze(result, outputs=[output], axes=[0])
            continue
        stacked = op.Squeeze(result, axes=[0])
        name, along = context.node.input[states], scanned_along[states]
        rounds = size_of(context, name, along) if backwards else None
        unstack(context, stacked, output, axis, rounds)
