"""Scan: 9 took the batch dimension away and added axes, 11 let these be negative.

It came with opset 8; what is to go below becomes a Loop where opset 9 is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from onnxreduce_cli.emit.axes import normalised
from onnxreduce_cli.emit.builder import Value, fill
from onnxreduce_cli.emit.context import Blocked, Context
from onnxreduce_cli.emit.loops import Nodes
from onnxreduce_cli.emit.numbers import NO_COUNTING, Number, arange, as_name, size_of
from onnxreduce_cli.model.values import ValueType, numpy_dtype
from onnxreduce_cli.steps.registry import down, up


@down("Scan", 11, "negative axes made non-negative, of the transpose where the rank is not known")
def negative_axes(context: Context) -> None:
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
    axes = _axes(context, "scan_input_axes", states, inputs)
    for index, axis in enumerate(axes):
        if axis >= 0:
            continue
        axes[index] = _from_front(context, inputs[index], axis)
        if context.rank(inputs[index]) is None:
            inputs[index] = op.Transpose(inputs[index])
            inner, outer = _renamed(context, body.input[index])
            before.append(helper.make_node("Transpose", [outer], [inner], name=outer))
    given = _axes(context, "scan_output_axes", states, outputs)
    for index, axis in enumerate(given):
        if axis >= 0:
            continue
        given[index] = _from_front(context, outputs[index], axis)
        if outputs[index] and context.rank(outputs[index]) is None:
            turned.append((context.fresh("turned"), outputs[index]))
            outputs[index] = turned[-1][0]
            inner, outer = _renamed(context, body.output[index])
            after.append(helper.make_node("Transpose", [inner], [outer], name=outer))
    changes: dict[str, Any] = {}
    if before or after:
        nodes = [*before, *body.node, *after]
        copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del body.node[:]
        body.node.extend(copies)
        changes["body"] = body
    for name, found in (("scan_input_axes", axes), ("scan_output_axes", given)):
        if any(axis < 0 for axis in context.value(name, ())):
            changes[name] = found[states:]
    if changes:
        context.replace(inputs=inputs, outputs=outputs if turned else None, **changes)
        for name, output in turned:
            op.Transpose(name, outputs=[output])


def _from_front(context: Context, name: str, axis: int) -> int:
    """A negative axis counted from the front, of the transpose where the rank is not known."""
    rank = context.rank(name)
    return -1 - axis if rank is None else normalised((axis,), rank)[0]


def _renamed(context: Context, info: ValueInfoProto) -> tuple[str, str]:
    """Give an input or output of a body another name, and no shape; the old name and the new."""
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
    ``Unsqueeze(Scan<scan_input_directions=[1]>(Squeeze(s), Squeeze(x)))``; else see `over_batch`.
    """
    op = context.op
    names = context.node.input[1:]
    known = [context.type(name) for name in names]
    one = any(item is not None and item.dims and item.dims[0] == 1 for item in known)
    if context.input(0) or not one:
        over_batch(context)
        return
    inputs = [op.Squeeze(name, axes=[0]) for name in names]
    outputs = [name and context.fresh("without_batch") for name in context.node.output]
    directions = context.value("directions")
    context.replace(
        inputs=inputs, outputs=outputs, drop=("directions",), scan_input_directions=directions
    )
    for given, output in zip(outputs, context.node.output, strict=True):
        if given:
            op.Unsqueeze(given, outputs=[output], axes=[0])


@down("Scan", 8, "a Loop over the batch, and one over each sequence")
def over_batch(context: Context) -> None:
    """``t, y = Scan<num_scan_inputs=1>("", s, x)`` becomes a Scan over the batch, without states,
    whose body is ``t1, y1 = Scan<num_scan_inputs=1>(s1, x1)``.

    With ``sequence_lens`` the inner one reads ``Gather(x1, [0, ..., length - 1])``, and what it
    gives is filled up with zeros, as ONNX Runtime does.
    """
    context = context.at(9)
    op = context.op
    attribute = context.attribute("body")
    assert attribute is not None
    body = GraphProto()
    body.CopyFrom(attribute.g)
    body.name = context.fresh("sequence")
    context.taken_over[body.name] = attribute.name
    lengths, names = context.input(0), list(context.node.input[1:])
    scanned = context.value("num_scan_inputs")
    states = len(names) - scanned
    inner = Nodes(context)
    each = [context.fresh("of_one") for _ in names]
    given = list(each)
    infos = [_entry(context, name, of_one) for name, of_one in zip(names, each, strict=True)]
    longest = ""
    if lengths:
        longest = op.Shape(names[-1])
        longest = op.Gather(longest, context.array([1], "one"), axis=0)
        length = context.fresh("length")
        infos.append(_entry(context, lengths, length))
        within = inner.Less(arange(context, longest), length)
        places = inner.Squeeze(inner.NonZero(within), axes=[0])
        given[states:] = [inner.Gather(x, places, axis=0) for x in each[states:]]
    scan = NodeProto(op_type="Scan", name=context.fresh("over_time"))
    fill(
        scan,
        given,
        {
            "body": body,
            "num_scan_inputs": scanned,
            "scan_input_directions": context.value("directions"),
        },
    )
    results = [context.fresh("result") for _ in body.output]
    scan.output.extend(results)
    inner.nodes.append(scan)
    if lengths:
        types = context.subgraph_types("body")
        for index, known in enumerate(types[states:], states):
            results[index] = _filled_up(context, inner, results[index], longest, known)
    graph = GraphProto(
        name=context.fresh("batch"),
        node=inner.nodes,
        input=infos,
        output=[ValueInfoProto(name=name) for name in results],
    )
    outputs = [*context.node.output, *[""] * len(results)][: len(results)]
    inputs = [*names, lengths] if lengths else names
    context.replace(
        inputs=inputs,
        outputs=[name or context.fresh("unused") for name in outputs],
        keep=(),
        body=graph,
        num_scan_inputs=len(inputs),
    )


def _entry(context: Context, name: str, of_one: str) -> ValueInfoProto:
    """What a Scan's body gets of a value of which it gets one entry after the other."""
    known = context.type(name)
    if known is None or not known.elem_type:
        return ValueInfoProto(name=of_one)
    dims = known.dims and known.dims[1:]
    return helper.make_tensor_value_info(of_one, known.elem_type, dims)


def _filled_up(
    context: Context, inner: Nodes, name: str, longest: str, known: ValueType | None
) -> Value:
    """What a Scan gave for each step of one sequence, with zeros for those after its end."""
    if known is None or not known.elem_type:
        raise Blocked(
            f"the dtype of {name!r} is not known, and zeros follow it where a sequence is short",
            "state the types of what its body gives",
        )
    sizes = inner.Shape(name)
    length = inner.Slice(sizes, starts=[0], ends=[1])
    rest = inner.Slice(sizes, starts=[1], ends=[np.iinfo(np.int32).max])
    missing = inner.Sub(longest, length)
    shape = inner.Concat(missing, rest, axis=0)
    zero = numpy_helper.from_array(np.zeros(1, numpy_dtype(known.elem_type)))
    zeros = inner.ConstantOfShape(shape, value=zero)
    return inner.Concat(name, zeros, axis=0)


_NEWER = (
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
    scanned_along = _axes(context, "scan_input_axes", states, context.node.input)
    read = list(zip(context.node.input, scanned_along, strict=True))
    if context.target_opset < 8 or any(axis and context.rank(name) is None for name, axis in read):
        _as_loop(context)
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
    context.replace(inputs=inputs, outputs=outputs, drop=_NEWER, directions=directions)
    changes = zip(
        _axes(context, "scan_output_axes", states, context.node.output),
        _axes(context, "scan_output_directions", states, context.node.output),
        strict=True,
    )
    for given, output, (axis, backwards) in zip(outputs, context.node.output, changes, strict=True):
        if not given:
            continue
        if not axis and not backwards:
            op.Squeeze(given, outputs=[output], axes=[0])
            continue
        stacked = op.Squeeze(given, axes=[0])
        name, along = context.node.input[states], scanned_along[states]
        rounds = size_of(context, name, along) if backwards else None
        _unstack(context, stacked, output, axis, rounds)


def _axes(context: Context, attribute: str, states: int, names: Sequence[str]) -> list[int]:
    """The axis or direction of each input or output, 0 for states and where none is given."""
    axes = context.value(attribute) or [0] * (len(names) - states)
    return [0] * states + list(axes)


def _as_loop(context: Context) -> None:
    """``Scan<num_scan_inputs=1>(s, x)`` becomes ``Loop(Gather(Shape(x), 0), true, s)``, whose body
    begins with ``Gather(x, round)``.
    """
    op = context.op
    names, outputs = list(context.node.input), list(context.node.output)
    scanned = context.value("num_scan_inputs")
    states = len(names) - scanned
    if not states:
        context = context.at(11)  # Before, a Loop must carry something; its own step sees to that.
        op = context.op
    axes = _axes(context, "scan_input_axes", states, names)[states:]
    scanned_along = axes[0]
    size = op.Shape(names[states])
    count = op.Gather(size, context.scalar(scanned_along, "axis"), axis=0)
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
    if any(directions) and context.target_opset < 6:
        raise Blocked(
            "it scans an input from its end, and before opset 6 Sub takes floats only",
            "choose opset 6 or later",
        )
    given = zip(names[states:], original.input[states:], axes, directions, strict=True)
    for name, value, axis, backwards in given:
        at = number
        if backwards:
            last = last or op.Sub(count, context.scalar(1, "one"))
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
    changes = [
        *zip(
            _axes(context, "scan_output_axes", states, outputs),
            _axes(context, "scan_output_directions", states, outputs),
            strict=True,
        )
    ]
    for index, change in enumerate(changes):
        if outputs[index] and change != (0, 0):
            written[index] = context.fresh("stacked")
    true = context.array(np.array(True), "true")
    context.replace("Loop", [count, true, *names[:states]], written, keep=(), body=body)
    for index, (axis, backwards) in enumerate(changes):
        if written[index] != outputs[index]:
            rounds = size_of(context, names[states], scanned_along) if backwards else None
            _unstack(context, written[index], outputs[index], axis, rounds)


def _unstack(context: Context, name: str, output: str, axis: int, rounds: Number | None) -> None:
    """Bring what was stacked to its axis; from the back if it has the number of rounds."""
    op = context.op
    if rounds is not None:
        last = op.Sub(as_name(context, rounds), context.array([1], "one"))
        order = op.Sub(last, arange(context, rounds))
        target = [output] if not axis else None
        name = op.Gather(name, order, outputs=target, axis=0)
    if axis:
        rank = context.need_rank(output, f"it is written along axis {axis}")
        perm = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
        op.Transpose(name, outputs=[output], perm=perm)
