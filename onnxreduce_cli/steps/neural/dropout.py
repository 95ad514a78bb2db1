"""Dropout: 7 dropped is_test, 10 made mask bool, 12 made ratio an input and the mode explicit.

From 7 to 11 there is no mode for training: what drops at random is written out there.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.registry import down, up

_LEFT_OPEN = (
    "its mask is read, and before opset 12 it was left open what that holds where nothing is "
    "dropped; it is all true now"
)


def _read_mask(context: Context) -> str:
    """Return the name of the output mask; empty where nobody reads it."""
    outputs = context.node.output
    return outputs[1] if len(outputs) > 1 and context.is_read(outputs[1]) else ""


@up("Dropout", 7, "is_test: dropped; where it is 0, training_mode, or what that does written out")
def test_mode(context: Context) -> None:
    """``Dropout<is_test=1>(x)`` becomes ``Dropout(x)``, and ``Dropout<is_test=0>(x)`` becomes
    ``Dropout(x, 0.5, true)`` at opset 12 and later; before that see `_write_training_dropout`.
    """
    if context.value("is_test", 0):
        context.replace(drop=("is_test",))
        return
    data, mask = context.input(0), _read_mask(context)
    elem_type = context.need_elem_type(data, "its mask has it") if mask else 0
    number = float(context.value("ratio", 0.5))
    kept = context.fresh("kept") if mask else ""
    if context.reaches(12):
        context = context.at(12)
        inputs = [data, context.scalar(number, "ratio"), context.array(np.array(True), "true")]
        outputs = [context.node.output[0], *([kept] if mask else [])]
        context.replace(inputs=inputs, outputs=outputs, drop=("is_test", "ratio"))
    else:
        kept = _write_training_dropout(
            context, context.scalar(number, "ratio", _working_dtype(context)), kept
        )
    if mask:
        cast(context, kept, elem_type, [mask])


@down("Dropout", 7, "is_test=1 written; a mask that is read: all 1")
def is_test_written(context: Context) -> None:
    """``Dropout(x)`` becomes ``Dropout<is_test=1>(x)``."""
    mask = _read_mask(context)
    if mask:
        elem_type = context.need_elem_type(context.input(0), "its mask has it")
        _all_ones(context, mask, np.ones(1, numpy_dtype(elem_type)))
        context.replace("Identity", outputs=context.node.output[:1], keep=())
        return
    context.replace(outputs=context.node.output[:1], is_test=1)


def _all_ones(context: Context, output: str, one: np.ndarray) -> None:
    """Emit a mask of ones, of the dtype of `one` and the shape of the data, as an output."""
    context = context.at(max(context.op.opset, 9))
    op = context.op
    shape = op.Shape(context.input(0))
    value = numpy_helper.from_array(one)
    op.ConstantOfShape(shape, outputs=[output], value=value)


@up("Dropout", 10, "mask: cast to the dtype of the data where it is read")
def mask_to_floats(context: Context) -> None:
    """``y, mask = Dropout(x)`` becomes ``y, m = Dropout(x); mask = Cast<float>(m)``."""
    mask = _read_mask(context)
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
    mask = _read_mask(context)
    if not mask:
        if len(context.node.output) > 1:
            context.replace(outputs=context.node.output[:1])
        return
    node = context.replace(outputs=[context.node.output[0], context.fresh("mask")])
    cast(context, node.output[1], TensorProto.BOOL, [mask])


@up("Dropout", 12, "ratio: attribute to input")
def ratio_to_input(context: Context) -> None:
    """``Dropout<ratio=0.3>(x)`` becomes ``Dropout(x, 0.3)``."""
    if _read_mask(context):
        context.warn(_LEFT_OPEN)
    ratio = context.value("ratio")
    inputs = [context.input(0)]
    if ratio is not None:
        inputs.append(context.scalar(float(ratio), "ratio"))
    context.replace(inputs=inputs, drop=("ratio",))


@down(
    "Dropout",
    12,
    "ratio: input to attribute; a mask that is read: all true; in training random numbers are "
    "compared with the ratio",
)
def ratio_to_attribute(context: Context) -> None:
    """``Dropout(x, 0.3, false)`` becomes ``Dropout<ratio=0.3>(x)``.

    Outside of training the ratio has no effect, so that one that is not constant can go. Where the
    training mode is true, or only known at run time, see `_write_training_dropout`.
    """
    data, mask = context.input(0), _read_mask(context)
    ratio = context.constant(context.input(1)) if context.input(1) else None
    training = context.constant(context.input(2)) if context.input(2) else np.zeros(1, bool)
    drops = training is None or bool(training.any())
    if drops and (ratio is None or ratio.any()):
        _write_training_dropout(context, _effective_ratio(context, training is None), mask)
        return
    if mask:
        # Nothing is dropped, so the mask is true throughout.
        _all_ones(context, mask, np.array([True]))
    number = None if ratio is None else float(ratio.reshape(-1)[0])
    context.replace(inputs=[data], outputs=context.node.output[:1], drop=("seed",), ratio=number)


def _working_dtype(context: Context) -> int:
    """Return the dtype of the random numbers and of the scale: double for double, else float."""
    elem_type = context.need_elem_type(context.input(0), "it is multiplied by a factor of it")
    return TensorProto.DOUBLE if elem_type == TensorProto.DOUBLE else TensorProto.FLOAT


def _effective_ratio(context: Context, at_run_time: bool) -> Value:
    """Return the ratio, of shape [], in the dtype of `_working_dtype`; 0 if the mode is false."""
    name, working = context.input(1), _working_dtype(context)
    known = context.constant(name) if name else np.array(0.5)
    if known is None:
        ratio = _scalar_of_dtype(context, name, working)
    else:
        ratio = context.scalar(float(known.reshape(-1)[0]), "ratio", working)
    if not at_run_time:
        return ratio
    return context.op.Mul(ratio, _scalar_of_dtype(context, context.input(2), working))


def _scalar_of_dtype(context: Context, name: str, elem_type: int) -> Value:
    """Return the one element of a tensor in the dtype `elem_type` and in shape []."""
    wide = cast(context, name, elem_type)
    if context.rank(name) == 0:
        return wide
    return context.op.Reshape(wide, context.array([], "scalar"))


def _write_training_dropout(context: Context, ratio: str, mask: str) -> Value:
    """``Dropout(x, ratio, true)`` becomes ``x * (1 / (1 - ratio)) * mask`` with ``mask =
    Not(Less(RandomUniformLike(x), ratio))``; with a ratio of 0 that is x, and a mask all true.

    Returns:
        the mask, a bool; called `mask` if that is not empty.
    """
    op = context.op
    data, working = context.input(0), _working_dtype(context)
    elem_type = context.need_elem_type(data, "it is multiplied by a factor of it")
    seed = context.value("seed")
    seeded = None if seed is None else helper.make_attribute("seed", float(seed))
    drawn = op.RandomUniformLike(data, dtype=working, seed=seeded)
    dropped = op.Less(drawn, ratio)
    kept = op.Not(dropped, outputs=[mask] if mask else None)
    one = context.scalar(1, "one", working)
    scale = op.Div(one, op.Sub(one, ratio))
    if elem_type != working:
        scale = cast(context, scale, elem_type)
    scaled = op.Mul(data, scale)
    context.replace(
        "Mul", [scaled, cast(context, kept, elem_type)], context.node.output[:1], keep=()
    )
    return kept
