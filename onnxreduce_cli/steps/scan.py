"""Scan: 9 took the batch dimension away and added axes, 11 let these be negative.

It came with opset 8; what is to go below becomes a Loop where opset 9 is left, as long as there is
no batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, TensorProto, helper

from onnxreduce_cli.steps.axes import normalised
from onnxreduce_cli.steps.births import arange
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down, up


@down("Scan", 11, "negative axes made non-negative", blocks="a rank is not known")
def negative_axes(context: Context) -> None:
    """``Scan<scan_input_axes=[-1]>(x)``, x of rank 3, becomes ``Scan<scan_input_axes=[2]>(x)``."""
    scanned = context.value("num_scan_inputs")
    states = len(context.node.input) - scanned
    changes: dict[str, Any] = {}
    for attribute, names in (
        ("scan_input_axes", context.node.input[states:]),
        ("scan_output_axes", context.node.output[states:]),
    ):
        axes = context.value(attribute, ())
        if any(axis < 0 for axis in axes):
            changes[attribute] = [
                axis if axis >= 0 else _from_front(context, name, axis)
                for axis, name in zip(axes, names, strict=True)
            ]
    if changes:
        context.replace(**changes)


def _from_front(context: Context, name: str, axis: int) -> int:
    rank = context.need_rank(name, "before opset 11 axes may not be negative")
    return normalised((axis,), rank)[0]


@up(
    "Scan",
    9,
    "the batch dimension squeezed away; directions called scan_input_directions",
    blocks="it is not known to be 1, or sequence_lens is given",
)
def without_batch(context: Context) -> None:
    """``Scan<directions=[1]>("", s, x)`` with a batch of 1 becomes
    ``Unsqueeze(Scan<scan_input_directions=[1]>(Squeeze(s), Squeeze(x)))``.
    """
    names = context.node.input[1:]
    if context.input(0):
        raise Blocked(
            "its input sequence_lens went away with opset 9", "scan each sequence on its own"
        )
    known = [context.type(name) for name in names]
    if not any(item is not None and item.dims and item.dims[0] == 1 for item in known):
        raise Blocked(
            "its batch is not known to be 1, and from opset 9 on it has no batch dimension",
            "choose opset 8, or state the shapes of its inputs",
        )
    inputs = [context.emit("Squeeze", [name], "without_batch", axes=[0]) for name in names]
    outputs = [name and context.fresh("without_batch") for name in context.node.output]
    directions = context.value("directions")
    context.replace(
        inputs=inputs, outputs=outputs, drop=("directions",), scan_input_directions=directions
    )
    for given, output in zip(outputs, context.node.output, strict=True):
        if given:
            context.emit("Unsqueeze", [given], outputs=[output], axes=[0])


_NEWER = (
    "scan_input_axes",
    "scan_input_directions",
    "scan_output_axes",
    "scan_output_directions",
)


@down(
    "Scan",
    9,
    "a batch dimension of 1 added, axes done by Transpose; a Loop where opset 8 is left too",
    blocks="an output is written backwards, or the rank of one with an axis is not known",
)
def with_batch(context: Context) -> None:
    """``Scan<scan_input_axes=[1]>(s, x)`` becomes
    ``Squeeze(Scan("", Unsqueeze(s), Unsqueeze(Transpose(x))))``.
    """
    if context.target < 8:
        _as_loop(context)
        return
    if any(context.value("scan_output_directions", ())):
        raise Blocked(
            "it writes an output backwards (scan_output_directions), which came with opset 9",
            "choose opset 9 or later",
        )
    states = len(context.node.input) - context.value("num_scan_inputs")
    inputs = [""]
    for name, axis in zip(
        context.node.input,
        _axes(context, "scan_input_axes", states, context.node.input),
        strict=True,
    ):
        first = name
        if axis:
            rank = context.need_rank(name, f"it is scanned along axis {axis}")
            perm = [axis, *(index for index in range(rank) if index != axis)]
            first = context.emit("Transpose", [name], "scanned_first", perm=perm)
        inputs.append(context.emit("Unsqueeze", [first], "with_batch", axes=[0]))
    outputs = [name and context.fresh("with_batch") for name in context.node.output]
    directions = context.value("scan_input_directions")
    context.replace(inputs=inputs, outputs=outputs, drop=_NEWER, directions=directions)
    axes = _axes(context, "scan_output_axes", states, context.node.output)
    for given, output, axis in zip(outputs, context.node.output, axes, strict=True):
        if not given:
            continue
        if not axis:
            context.emit("Squeeze", [given], outputs=[output], axes=[0])
            continue
        rank = context.need_rank(output, f"it is written along axis {axis}")
        first = context.emit("Squeeze", [given], "written_first", axes=[0])
        perm = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
        context.emit("Transpose", [first], outputs=[output], perm=perm)


def _axes(context: Context, attribute: str, states: int, names: Sequence[str]) -> list[int]:
    """The axis of each input or output, 0 for states and where none is given."""
    axes = context.value(attribute) or [0] * (len(names) - states)
    return [0] * states + list(axes)


def _as_loop(context: Context) -> None:
    """``Scan<num_scan_inputs=1>(s, x)`` becomes ``Loop(Gather(Shape(x), 0), true, s)``, whose body
    begins with ``Gather(x, round)``.
    """
    names, outputs = list(context.node.input), list(context.node.output)
    scanned = context.value("num_scan_inputs")
    states = len(names) - scanned
    axes = _axes(context, "scan_input_axes", states, names)[states:]
    size = context.emit("Shape", [names[states]], "sizes")
    count = context.emit("Gather", [size, context.scalar(axes[0], "axis")], "count", axis=0)
    attribute = context.attribute("body")
    assert attribute is not None
    body, original = GraphProto(), attribute.g
    hints = ("round", "unfinished", "again")
    number, unfinished, again = (context.fresh(hint) for hint in hints)
    scalar = helper.make_tensor_value_info
    body.input.add().CopyFrom(scalar(number, TensorProto.INT64, []))
    body.input.add().CopyFrom(scalar(unfinished, TensorProto.BOOL, []))
    body.input.extend(original.input[:states])
    last = ""
    directions = context.value("scan_input_directions") or [0] * scanned
    given = zip(names[states:], original.input[states:], axes, directions, strict=True)
    for name, value, axis, backwards in given:
        at = number
        if backwards:
            last = last or context.emit("Sub", [count, context.scalar(1, "one")], "last")
            at = context.fresh("from_back")
            body.node.add(op_type="Sub", name=at, input=[last, number], output=[at])
        node = body.node.add(
            op_type="Gather", name=context.fresh("slice"), input=[name, at], output=[value.name]
        )
        node.attribute.add(name="axis", i=axis, type=AttributeProto.INT)
    body.MergeFrom(GraphProto(name=original.name, node=original.node))
    body.initializer.extend(original.initializer)
    body.value_info.extend(original.value_info)
    body.node.add(op_type="Identity", name=again, input=[unfinished], output=[again])
    body.output.add().CopyFrom(scalar(again, TensorProto.BOOL, []))
    body.output.extend(original.output)
    written = [*outputs]
    axes = _axes(context, "scan_output_axes", states, outputs)
    directions = context.value("scan_output_directions") or [0] * (len(outputs) - states)
    changes = [*zip(axes, [0] * states + list(directions), strict=True)]
    for index, change in enumerate(changes):
        if outputs[index] and change != (0, 0):
            written[index] = context.fresh("stacked")
    true = context.array(np.array(True), "true")
    context.replace("Loop", [count, true, *names[:states]], written, keep=(), body=body)
    for index, (axis, backwards) in enumerate(changes):
        if written[index] != outputs[index]:
            _unstack(context, written[index], outputs[index], axis, count if backwards else "")


def _unstack(context: Context, name: str, output: str, axis: int, count: str) -> None:
    """Bring what a Loop stacked to its axis; from the back if it has the number of rounds."""
    if count:
        length = context.emit("Reshape", [count, context.array([1], "one")], "length")
        last = context.emit("Sub", [length, context.array([1], "one")], "last")
        order = context.emit("Sub", [last, arange(context, length)], "order")
        target = [output] if not axis else None
        name = context.emit("Gather", [name, order], "turned", outputs=target, axis=0)
    if axis:
        rank = context.need_rank(output, f"it is written along axis {axis}")
        perm = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
        context.emit("Transpose", [name], outputs=[output], perm=perm)
