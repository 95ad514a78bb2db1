"""Dropout: 7 dropped is_test, 10 made mask bool, 12 made ratio an input and the mode explicit."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.steps.casts import cast
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down, up


def _mask(context: Context) -> str:
    """The output mask; empty where nobody reads it."""
    outputs = context.node.output
    return outputs[1] if len(outputs) > 1 and context.is_read(outputs[1]) else ""


@up("Dropout", 7, "is_test: dropped", blocks="it is 0: the node is for training")
def test_mode(context: Context) -> None:
    """``Dropout<is_test=1>(x)`` becomes ``Dropout(x)``."""
    if not context.value("is_test", 0):
        raise Blocked(
            "its is_test is 0, so that it drops at random, and from opset 7 to 11 Dropout has no "
            "mode for training",
            "set is_test=1 if the model is for inference",
        )
    context.replace(drop=("is_test",))


@down("Dropout", 7, "is_test=1 written", blocks="the mask is read")
def is_test_written(context: Context) -> None:
    """``Dropout(x)`` becomes ``Dropout<is_test=1>(x)``."""
    if _mask(context):
        raise Blocked(
            "its mask is read, which before opset 7 is not filled in test mode", "do without it"
        )
    context.replace(outputs=context.node.output[:1], is_test=1)


@up("Dropout", 10, "mask: cast to the dtype of the data where it is read")
def mask_to_floats(context: Context) -> None:
    """``y, mask = Dropout(x)`` becomes ``y, m = Dropout(x); mask = Cast<float>(m)``."""
    mask = _mask(context)
    if not mask:
        if len(context.node.output) > 1:
            context.replace(outputs=context.node.output[:1])
        return
    elem_type = context.need_elem_type(context.input(0), "its mask had the same before opset 10")
    node = context.replace(outputs=[context.node.output[0], context.fresh("mask")])
    cast(context, node.output[1], elem_type, [mask])


@down("Dropout", 10, "mask: cast to bool where it is read")
def mask_to_bool(context: Context) -> None:
    """``y, mask = Dropout(x)`` becomes ``y, m = Dropout(x); mask = Cast<bool>(m)``."""
    mask = _mask(context)
    if not mask:
        if len(context.node.output) > 1:
            context.replace(outputs=context.node.output[:1])
        return
    node = context.replace(outputs=[context.node.output[0], context.fresh("mask")])
    cast(context, node.output[1], TensorProto.BOOL, [mask])


@up("Dropout", 12, "ratio: attribute to input", blocks="the mask is read")
def ratio_to_input(context: Context) -> None:
    """``Dropout<ratio=0.3>(x)`` becomes ``Dropout(x, 0.3)``."""
    if _mask(context):
        raise Blocked(
            "its mask is read, and what it holds in test mode was left open before opset 12",
            "do without it",
        )
    ratio = context.value("ratio")
    inputs = [context.input(0)]
    if ratio is not None:
        inputs.append(context.scalar(float(ratio), "ratio"))
    context.replace(inputs=inputs, drop=("ratio",))


@down(
    "Dropout",
    12,
    "ratio: input to attribute; a mask that is read: all true",
    blocks="training_mode is true or only known at run time",
)
def ratio_to_attribute(context: Context) -> None:
    """``Dropout(x, 0.3, false)`` becomes ``Dropout<ratio=0.3>(x)``.

    Outside of training the ratio has no effect, so that one that is not constant can go.
    """
    mode = context.input(2)
    if mode:
        training = context.constant(mode)
        if training is None or training.any():
            raise Blocked(
                f"its training_mode {mode!r} is not known to be false, and from opset 7 to 11 "
                "Dropout has no mode for training",
                "export the model for inference",
            )
    data, ratio = context.input(0), None
    if context.input(1):
        constant = context.constant(context.input(1))
        ratio = None if constant is None else float(constant.reshape(-1)[0])
    mask = _mask(context)
    if mask:
        # Without training nothing is dropped, so the mask is true throughout.
        shape = context.emit("Shape", [data], "shape")
        yes = numpy_helper.from_array(np.array([True]))
        context.emit("ConstantOfShape", [shape], "mask", outputs=[mask], value=yes)
    context.replace(inputs=[data], outputs=context.node.output[:1], drop=("seed",), ratio=ratio)
