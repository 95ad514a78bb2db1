"""Scan as another Scan or as a Loop, where the definitions on both sides of a boundary differ much.

- Scan of opset 8 has a batch dimension: it becomes a Scan of opset 9 over a Scan of opset 9.
- Scan of opset 9 becomes a Loop where opset 8 is left too, or where a Transpose of unknown rank
  would be needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, TensorProto, numpy_helper

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import (
    LoopBody,
    LoopValue,
    SubgraphBuilder,
    loop,
    scan_body,
    turn_into_loop_body,
)
from onnxreduce_cli.emit.numbers import sizes
from onnxreduce_cli.emit.refusals import COUNTING_FROM
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.model.graph.values import ValueType, numpy_dtype
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
    inputs = [*names, lengths] if lengths else names
    longest = ""
    if lengths:
        longest = op.Gather(op.Shape(names[-1]), context.array([1], "one"), axis=0)

    def write(inner: SubgraphBuilder, values: list[Value]) -> list[LoopValue]:
        if lengths:
            *values, length = values
            places = _write_counting_loop(context, inner, length, longest)
            values[states:] = [inner.Gather(value, places, axis=0) for value in values[states:]]
        results = _inner_scan(context, inner, values)
        if lengths:
            types = context.subgraph_types("body")
            for index, known in enumerate(types[states:], states):
                results[index] = _filled_up(context, inner, results[index], longest, known)
        return [LoopValue(name, 0, None) for name in results]

    graph = scan_body(context, [_batch_entry(context, name) for name in inputs], write)
    number = len(graph.output)
    outputs = [*context.node.output, *[""] * number][:number]
    context.replace(
        inputs=inputs,
        outputs=[name or context.fresh("unused") for name in outputs],
        keep=(),
        body=graph,
        num_scan_inputs=len(inputs),
    )


def _write_counting_loop(
    context: Context, inner: SubgraphBuilder, length: str, longest: str
) -> Value:
    """Return the numbers from 0 to before the length of a sequence, int64 of shape [length].

    Before NonZero a Loop counts them.

    Args:
        context: the Scan.
        inner: the nodes of the body that is given the length.
        length: the length, an int64 of rank 0.
        longest: the length of the longest sequence, an int64 of shape [1].
    """
    if context.reaches(COUNTING_FROM):
        within = inner.Less(arange(context, sizes(context, longest)), length)
        return inner.Squeeze(inner.NonZero(within), axes=[0])
    nothing = context.scalar(0, "nothing")

    def write(body: LoopBody) -> tuple[list[str], list[LoopValue]]:
        return [*body.values], [LoopValue(body.round, TensorProto.INT64, ())]

    # Something must be carried from round to round.
    carried = [LoopValue(nothing, TensorProto.INT64, ())]
    (_, *others), graph = loop(context, nothing, carried, write, "that counts")
    return inner.Loop(length, *others, outputs=2, body=graph)[1]


def _inner_scan(context: Context, inner: SubgraphBuilder, inputs: Sequence[str]) -> list[Value]:
    """Add the Scan over one sequence, with the node's body, and return its outputs.

    They have the dtypes and shapes of the node's own outputs, without the batch dimension.
    """
    attribute = context.attribute("body")
    assert attribute is not None
    body = GraphProto()
    body.CopyFrom(attribute.g)
    body.name = context.fresh("sequence")
    context.taken_over[body.name] = attribute.name
    results = inner.Scan(
        *inputs,
        outputs=len(body.output),
        body=body,
        num_scan_inputs=context.value("num_scan_inputs"),
        scan_input_directions=context.value("directions"),
    )
    return list(results)


def _batch_entry(context: Context, name: str) -> LoopValue:
    """Return what a Scan's body gets of a value that is scanned along its first axis."""
    known = context.type(name)
    if known is None or not known.elem_type:
        return LoopValue(name, 0, None)
    return LoopValue(name, known.elem_type, known.dims and known.dims[1:])


def _filled_up(
    context: Context, inner: SubgraphBuilder, name: str, longest: str, known: ValueType | None
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
            f"the dtype of {name!r} is not known, and zeros of it fill up the shorter sequences",
            "state the types of the outputs of its body",
        )
    sizes = inner.Shape(name)
    length = inner.Slice(sizes, starts=[0], ends=[1])
    rest = inner.Slice(sizes, starts=[1], ends=[np.iinfo(np.int32).max])
    missing = inner.Sub(longest, length)
    shape = inner.Concat(missing, rest, axis=0)
    zero = numpy_helper.from_array(np.zeros(1, numpy_dtype(known.elem_type)))
    zeros = inner.ConstantOfShape(shape, value=zero)
    return inner.Concat(name, zeros, axis=0)


def scan_as_loop(context: Context) -> None:
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
    slices = LoopBody(context, ())
    given = [value.name for value in attribute.g.input[states:]]
    _add_slices(context, slices, given, axes, count)
    body = GraphProto(node=slices.nodes)
    body.MergeFrom(attribute.g)
    del body.input[:]
    turn_into_loop_body(context, body, attribute.g.input[:states], slices.round)
    return body


def _add_slices(
    context: Context, body: LoopBody, slices: Sequence[str], axes: Sequence[int], count: str
) -> None:
    """Add a Gather to a Loop's body for each of the `slices` that a round of the Scan reads."""
    names = context.node.input[len(context.node.input) - len(slices) :]
    directions = context.value("scan_input_directions") or [0] * len(slices)
    if any(directions) and not context.reaches(6):
        raise Blocked(
            "it scans an input from its end, and before opset 6 Sub takes floats only",
            "choose opset 6 or later",
        )
    last = ""
    for name, given, axis, backwards in zip(names, slices, axes, directions, strict=True):
        at = body.round
        if backwards:
            last = last or context.op.Sub(count, context.scalar(1, "one"))
            at = body.Sub(last, body.round)
        body.Gather(name, at, outputs=[given], axis=axis)
