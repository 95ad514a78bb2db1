"""STFT below opset 17, which it came with: the DFT of its frames."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, widened
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_name, is_small
from onnxreduce_cli.emit.refusals import NO_COUNTING
from onnxreduce_cli.emit.shapes import scalar_input
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.steps.registry import introduced


@introduced("STFT", 17, "the frames gathered, and their DFT", blocks=NO_COUNTING)
def stft(context: Context) -> None:
    """``STFT(x, step, window)`` becomes ``DFT<axis=2, onesided=1>(Mul(Gather<axis=1>(x, places),
    Unsqueeze(window)))`` with ``places = step * [[0], [1], ...] + [0, 1, ...]``.

    There are as many frames as fit into the signal. One of rank 2 is of real numbers: runtimes take
    it, though the definition wants a last dimension of 1.
    """
    context = context.at(17)  # DFT came with the same opset; its own step goes on.
    op = context.op
    window, output = context.input(2), context.node.output[0]
    step = scalar_input(context, context.input(1))
    signal_length = size_of(context, context.input(0), 1)
    length = signal_length
    if context.input(3):
        length = scalar_input(context, context.input(3))
    elif window:
        length = size_of(context, window, 0)
    data, given, working = widened(context, TensorProto.FLOAT)
    if context.rank(context.input(0)) == 2:
        data = unsqueezed(context, data, [2])
    frames = (signal_length - length) // step + 1
    data = op.Gather(data, _frame_indices(context, frames, step, length), axis=1)
    if window:
        if working != given:
            window = cast(context, window, working)
        data = op.Mul(data, unsqueezed(context, window, [1]))
    outputs = [output if working == given else context.fresh("transform")]
    onesided = context.value("onesided", 1)
    context.replace("DFT", [data], outputs, keep=(), axis=2, onesided=onesided)
    if working != given:
        cast(context, outputs[0], given, [output])


def _frame_indices(context: Context, frames: Number, step: Number, length: Number) -> Value:
    """Return the indices of the elements of the signal that each frame has: int64 of shape [frames,
    length].
    """
    op = context.op
    if (
        isinstance(frames, int)
        and isinstance(step, int)
        and isinstance(length, int)
        and is_small(frames, step, length)
    ):
        first = np.arange(frames, dtype=np.int64)[:, None] * step
        return context.array(first + np.arange(length, dtype=np.int64), "places")
    starts = op.Mul(arange(context, frames), as_name(context, step))
    return op.Add(unsqueezed(context, starts, [1]), arange(context, length))
