"""RNN, GRU and LSTM: 3, 7 and 14.

- 3 gave GRU `linear_before_reset` and made its second output optional.
- 7 dropped `output_sequence`, which said whether the first output is there.
- 14 added `layout`, which puts the batch first.
"""

from __future__ import annotations

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import down, up

_OPERATORS = ("GRU", "LSTM", "RNN")

#: The inputs that `layout` concerns: X, initial_h and, of LSTM, initial_c.
_LAID_OUT = (0, 5, 6)


@down(_OPERATORS, 14, "layout=1 written as Transpose")
def sequence_first(context: Context) -> None:
    """``RNN<layout=1>(x, w, r)`` becomes ``Transpose(RNN(Transpose(x), w, r))``."""
    op = context.op
    if not context.value("layout", 0):
        if context.attribute("layout") is not None:
            context.replace(drop=("layout",))
        return
    inputs = list(context.node.input)
    for index in _LAID_OUT:
        if context.input(index):
            inputs[index] = op.Transpose(inputs[index], perm=[1, 0, 2])
    outputs = [name and context.fresh("sequence_first") for name in context.node.output]
    context.replace(inputs=inputs, outputs=outputs, drop=("layout",))
    for index, (name, output) in enumerate(zip(outputs, context.node.output, strict=True)):
        if name:
            perm = [1, 0, 2] if index else [2, 0, 1, 3]
            op.Transpose(name, outputs=[output], perm=perm)


@up(_OPERATORS, 7, "output_sequence dropped")
def without_output_sequence(context: Context) -> None:
    """``RNN<output_sequence=1>(x, w, r)`` becomes ``RNN(x, w, r)``."""
    if context.attribute("output_sequence") is not None:
        context.replace(drop=("output_sequence",))


@down(_OPERATORS, 7, "output_sequence=1 where the first output is in use")
def with_output_sequence(context: Context) -> None:
    """``y = RNN(x, w, r)`` becomes ``y = RNN<output_sequence=1>(x, w, r)``."""
    if context.node.output[0]:
        context.replace(output_sequence=1)


@down(
    "GRU",
    3,
    "linear_before_reset=0 dropped, direction written out, the second output named",
    blocks="linear_before_reset is not 0",
)
def gru_before_3(context: Context) -> None:
    """``y = GRU<linear_before_reset=0>(x, w, r)`` becomes
    ``y, last = GRU<direction="forward">(x, w, r)``.
    """
    if context.value("linear_before_reset", 0):
        raise Blocked(
            "its attribute linear_before_reset=1 came with opset 3: before it GRU resets the "
            "state before it multiplies it",
            "choose opset 3 or later",
        )
    outputs = list(context.node.output)
    last = outputs[1] if len(outputs) > 1 else ""
    context.replace(
        outputs=[outputs[0], last or context.fresh("last")],
        drop=("linear_before_reset",),
        direction=context.value("direction", "forward"),
    )
