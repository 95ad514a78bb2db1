"""Scan as another Scan or as a Loop, where the definitions on both sides of a boundary differ much.

- Scan of opset 8 has a batch dimension: it becomes a Scan of opset 9 over a Scan of opset 9.
- Scan of opset 9 becomes a Loop where opset 8 is left too, or where a Transpose of unknown rank
  would be needed.
"""

from __future__ import annotations

from collections.abc import Sequence

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

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value, fill
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import Nodes
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.model.values import ValueType, numpy_dtype
from onnxreduce_cli.steps.control_flow.scan_axes import for_each_value, unstack


def as_scan_over_batch(context: Context) -> None:
    """``t, y = Scan<num_scan_inputs=1>("", s, x)`` becomes a Scan over the batch, without states,
    whose body is ``t1, y1 = Scan<num_scan_inputs=1>(s1, x1)``.

    With ``sequence_lens`` the inner one reads ``Gather(x1, [0, ..., length - 1])``, and what it
    gives is filled up with zeros, as ONNX Runtime does.
    """
    context = context.at(9)
    op = context.op
    lengths, names = context.input(0), list(context.node.input[1:])
    states = len(names) - context.value("num_scan_inputs")
    inner = Nodes(context)
    entries = [context.fresh("of_one") for _ in names]
    inner_inputs: list[str] = list(entries)
    infos = [_entry(context, name, entry) for name, entry in zip(names, entries, strict=True)]
    longest = ""
    if lengths:
        longest = op.Gather(op.Shape(names[-1]), context.array([1], "one"), axis=0)
        length = context.fresh("length")
        infos.append(_entry(context, lengths, length))
        within = inner.Less(arange(context, longest), length)
        steps = inner.Squeeze(inner.NonZero(within), axes=[0])
        inner_inputs[states:] = [inner.Gather(entry, steps, axis=0) for entry in entries[states:]]
    results = _inner_scan(context, inner, inner_inputs)
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


def _inner_scan(context: Context, inner: Nodes, inputs: Sequence[str]) -> list[str]:
    """Add the Scan over one sequence, with the node's body; return the names of its outputs."""
    attribute = context.attribute("body")
    assert attribute is not None
    body = GraphProto()
    body.CopyFrom(attribute.g)
    body.name = context.fresh("sequence")
    context.taken_over[body.name] = attribute.name
    scan = NodeProto(op_type="Scan", name=context.fresh("over_time"))
    attributes = {
        "body": body,
        "num_scan_inputs": context.value("num_scan_inputs"),
        "scan_input_directions": context.value("directions"),
    }
    fill(scan, inputs, attributes)
    results: list[str] = [context.fresh("result") for _ in body.output]
    scan.output.extend(results)
    inner.nodes.append(scan)
    return results


def _entry(context: Context, name: str, entry: str) -> ValueInfoProto:
    """Return the input `entry` of a Scan's body that scans a value along its first axis."""
    known = context.type(name)
    if known is None or not known.elem_type:
        return ValueInfoProto(name=entry)
    dims = known.dims and known.dims[1:]
    return helper.make_tensor_value_info(entry, known.elem_type, dims)


def _filled_up(
    context: Context, inner: Nodes, name: str, longest: str, known: ValueType | None
) -> Value:
    """Return the outputs of a Scan for each step of a sequence, padded with zeros to the longest.

    Args:
        context: the node.
        inner: the nodes of the body that the Scan is in.
        name: the outputs, of shape [length, ...].
        longest: the length of the longest sequence, an int64 of shape [1].
        known: the type of one step, as far as it is known.
    """
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


def as_loop(context: Context) -> None:
    """``Scan<num_scan_inputs=1>(s, x)`` becomes ``Loop(Gather(Shape(x), 0), true, s)``, whose body
    begins with ``Gather(x, round)``.
    """
    names, outputs = list(context.node.input), list(context.node.output)
    states = len(names) - context.value("num_scan_inputs")
    if not states:
        context = context.at(11)  # Before, a Loop must carry something; its own step sees to that.
    op = context.op
    axes = for_each_value(context, "scan_input_axes", states, names)[states:]
    size = op.Shape(names[states])
    count = op.Gather(size, context.scalar(axes[0], "axis"), axis=0)
    body = _loop_body(context, states, axes, count)
    stacked = list(outputs)
    changes = [
        *zip(
            for_each_value(context, "scan_output_axes", states, outputs),
            for_each_value(context, "scan_output_directions", states, outputs),
            strict=True,
        )
    ]
    for index, change in enumerate(changes):
        if outputs[index] and change != (0, 0):
            stacked[index] = context.fresh("stacked")
    true = context.array(np.array(True), "true")
    context.replace("Loop", [count, true, *names[:states]], stacked, keep=(), body=body)
    for index, (axis, backwards) in enumerate(changes):
        if stacked[index] != outputs[index]:
            rounds = size_of(context, names[states], axes[0]) if backwards else None
            unstack(context, stacked[index], outputs[index], axis, rounds)


def _loop_body(context: Context, states: int, axes: Sequence[int], count: str) -> GraphProto:
    """Return the body of the Loop: that of the Scan, after a Gather for each input that it scans.

    Args:
        context: the Scan.
        states: how many of its inputs are states.
        axes: along which each of the others is scanned.
        count: the number of rounds, an int64 of rank 0.
    """
    attribute = context.attribute("body")
    assert attribute is not None
    body, original = GraphProto(), attribute.g
    hints = ("round", "unfinished", "again")
    number, unfinished, again = (context.fresh(hint) for hint in hints)
    scalar = helper.make_tensor_value_info
    body.input.add().CopyFrom(scalar(number, TensorProto.INT64, []))
    body.input.add().CopyFrom(scalar(unfinished, TensorProto.BOOL, []))
    body.input.extend(original.input[:states])
    _add_slices(context, body, original.input[states:], axes, count)
    body.MergeFrom(GraphProto(name=original.name, node=original.node))
    body.initializer.extend(original.initializer)
    body.value_info.extend(original.value_info)
    body.node.add(op_type="Identity", name=again, input=[unfinished], output=[again])
    body.output.add().CopyFrom(scalar(again, TensorProto.BOOL, []))
    body.output.extend(original.output)
    return body


def _add_slices(
    context: Context,
    body: GraphProto,
    slices: Sequence[ValueInfoProto],
    axes: Sequence[int],
    count: str,
) -> None:
    """Add a Gather to a Loop's body for each of the `slices` that a round of the Scan reads."""
    names = context.node.input[len(context.node.input) - len(slices) :]
    directions = context.value("scan_input_directions") or [0] * len(slices)
    if any(directions) and context.target_opset < 6:
        raise Blocked(
            "it scans an input from its end, and before opset 6 Sub takes floats only",
            "choose opset 6 or later",
        )
    number, last = body.input[0].name, ""
    for name, value, axis, backwards in zip(names, slices, axes, directions, strict=True):
        at: str = number
        if backwards:
            last = last or context.op.Sub(count, context.scalar(1, "one"))
            at = context.fresh("from_back")
            body.node.add(op_type="Sub", name=at, input=[last, number], output=[at])
        node = body.node.add(
            op_type="Gather", name=context.fresh("slice"), input=[name, at], output=[value.name]
        )
        node.attribute.add(name="axis", i=axis, type=AttributeProto.INT)
