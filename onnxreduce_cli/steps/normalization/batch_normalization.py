"""BatchNormalization: 6, 7, 9, 14 and 15.

Up to 6 is_test says whether it trains, from 7 to 13 the number of outputs, from 14 training_mode.
Only from 14 on does the specification define all that training gives; the older texts agree with
it as far as they go.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import reduced, squeezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.emit.numbers import LazyTensor
from onnxreduce_cli.emit.shapes import product
from onnxreduce_cli.emit.sizes import END, sliced
from onnxreduce_cli.steps.normalization.instance_normalization import (
    with_output_reshaped,
    with_rank_4,
)
from onnxreduce_cli.steps.registry import down, up

#: The default, which is a float.
_MOMENTUM = float(np.float32(0.9))

_SAVED = (
    "its output saved_var is read, which is the variance of the batch, as the text says; runtimes "
    "give the inverse of the deviation"
)


def _trains(context: Context) -> bool:
    """Return whether a node of opset 7 to 13 trains: it has more outputs than one then."""
    return any(context.node.output[1:])


def _read_output(context: Context, index: int) -> str:
    """Return the name of an output, empty where nobody reads it."""
    outputs = context.node.output
    return outputs[index] if index < len(outputs) and context.is_read(outputs[index]) else ""


# 6: consumed_inputs removed, any rank allowed


@up("BatchNormalization", 6, "consumed_inputs dropped")
def batch_without_consumed_inputs(context: Context) -> None:
    """``BatchNormalization<consumed_inputs=[0, 0, 0, 1, 1]>(x, ...)`` becomes
    ``BatchNormalization(x, ...)``.
    """
    if context.attribute("consumed_inputs") is not None:
        context.replace(drop=("consumed_inputs",))


@down("BatchNormalization", 6, "consumed_inputs written, the input made 4-D")
def batch_before_6(context: Context) -> None:
    """``BatchNormalization(x, ...)`` becomes
    ``BatchNormalization<consumed_inputs=[0, 0, 0, 1, 1]>(x, ...)``.
    """
    with_rank_4(context, consumed_inputs=[0, 0, 0, 1, 1])


# 7: is_test went


@up(
    "BatchNormalization",
    7,
    "is_test dropped, and the outputs of training named where it is 0",
    blocks="outputs are used that have no meaning in test mode, or with spatial=0 the shape of "
    "its parameters is not known or does not fit its statistics",
)
def without_is_test(context: Context) -> None:
    """``BatchNormalization<is_test=1>(x, ...)`` becomes ``BatchNormalization(x, ...)``, and
    ``y = BatchNormalization(x, ...)`` becomes ``y, m, v, sm, sv = BatchNormalization(x, ...)``.
    """
    is_test = bool(context.value("is_test", 0))
    drop = ["is_test"]
    if not context.value("spatial", 1) and not _for_each_feature(context, is_test):
        drop.append("spatial")
    output, *others = context.node.output
    if is_test:
        for index in range(1, 5):
            if _read_output(context, index):
                raise Blocked(
                    f"its output {others[index - 1]!r} is used although is_test=1, and its "
                    "definition allows that in training only",
                    "remove what uses that output",
                )
        context.replace(outputs=[output], drop=drop)
        return
    if not any(others):
        context.warn(
            "its is_test is 0, so it normalises by the statistics of each batch, as for training; "
            "set is_test=1 if it is for inference"
        )
    # Two of the five outputs are gone at opset 14.
    named = _all_named(context, 3 if context.reaches(14) else 5)
    context.replace(outputs=[*named, *context.node.output[len(named) :]], drop=drop)


def _for_each_feature(context: Context, is_test: bool) -> bool:
    """Return whether a node with spatial=0 has parameters for features, not for channels."""
    rank = context.need_rank(context.input(1), "with spatial=0 it says what its parameters are for")
    if rank > 1:
        return True
    if not is_test and context.need_rank(context.input(0), "it says what is a feature") > 2:
        raise Blocked(
            "with spatial=0 it computes statistics for each feature, but its parameters are for "
            "each channel",
            "give it parameters of the shape of a feature map",
        )
    return False


@down("BatchNormalization", 7, "is_test written; with spatial=0 all is flattened")
def with_is_test(context: Context) -> None:
    """``BatchNormalization(x, ...)`` becomes ``BatchNormalization<is_test=1>(x, ...)``."""
    if context.value("spatial", 1):
        context.replace(is_test=int(not _trains(context)))
    else:
        _flattened(context)


# 9: spatial removed, rank 1 allowed


@up("BatchNormalization", 9, "spatial dropped; with spatial=0 all is flattened")
def without_spatial(context: Context) -> None:
    """``BatchNormalization<spatial=0>(x, scale, ...)`` becomes
    ``Reshape(BatchNormalization(Reshape(x), Reshape(scale), ...), Shape(x))``.
    """
    if not context.value("spatial", 1):
        _flattened(context)
    elif context.attribute("spatial") is not None:
        context.replace(drop=("spatial",))


def _flattened(context: Context) -> None:
    """Emit the node with every feature as a channel, and its statistics where it trains."""
    context = context.at(9)
    op = context.op
    inputs, elem_type = list(context.node.input), None
    if _trains(context):
        inputs, elem_type = _with_own_statistics(context, of_features=True)
    flat = context.array([-1], "flat")
    data = op.Flatten(*inputs[:1], axis=1)
    parameters = [op.Reshape(name, flat) for name in inputs[1:]]
    shape = op.Shape(context.input(0))
    normal = context.fresh("normal")
    context.replace(inputs=[data, *parameters], outputs=[normal], keep=("epsilon",))
    outputs = context.node.output[:1]
    if elem_type is None:
        op.Reshape(normal, shape, outputs=outputs)
    else:
        cast(context, op.Reshape(normal, shape), elem_type, outputs)


@down("BatchNormalization", 9, "an input of rank 1 made rank 2")
def with_channels(context: Context) -> None:
    """``BatchNormalization(x, ...)``, x of rank 1, becomes
    ``Squeeze(BatchNormalization(Unsqueeze(x), ...))``; of unknown rank it is made 3.
    """
    op = context.op
    scale = context.type(context.input(1))
    if scale is not None and scale.dims not in (None, (1,), (None,)):
        # More than one channel, or a name for their number: rank 1 stands for one channel.
        return
    data = context.input(0)
    rank = context.specialised_rank(data)
    if rank is None:
        with_output_reshaped(context, [_of_rank_3(context, data), *context.node.input[1:]])
    elif rank == 1:
        longer = op.Unsqueeze(data, axes=[1])
        output, *others = context.node.output
        outputs = [context.fresh("normal"), *others]
        context.replace(inputs=[longer, *context.node.input[1:]], outputs=outputs)
        op.Squeeze(*outputs[:1], outputs=[output], axes=[1])


def _of_rank_3(context: Context, data: str) -> Value:
    """Return data of any rank as [batch, channels, rest], with as many channels as parameters."""
    op = context.op
    shape = op.Shape(data)
    batch = op.Gather(shape, context.array([0], "first"), axis=0)
    channels = op.Shape(context.input(1))
    rest = product(context, sliced(context, shape, 2, END))
    shape = op.Concat(batch, channels, rest, axis=0)
    return op.Reshape(data, shape)


# 14 and 15: training_mode, dtypes apart


@up("BatchNormalization", 14, "training_mode=1 where it has the outputs of training")
def with_training_mode(context: Context) -> None:
    """``y, m, v, sm, sv = BatchNormalization(x, ...)`` becomes
    ``y, m, v = BatchNormalization<training_mode=1>(x, ...)``; see `_statistics` for the others.
    """
    if not _trains(context):
        return
    saved = [_read_output(context, index) for index in (3, 4)]
    if any(saved):
        data = context.input(0)
        elem_type = context.elem_type(data)
        if elem_type in HALVES:
            data = cast(context, data, TensorProto.FLOAT)
        for statistic, output in zip(_statistics(context, data), saved, strict=True):
            if output:
                _emit_output(
                    context, statistic.name, output, elem_type if elem_type in HALVES else None
                )
    if saved[1]:
        context.warn(_SAVED)
    context.replace(outputs=_all_named(context, 3), training_mode=1)


def _all_named(context: Context, count: int) -> list[str]:
    """Return the first outputs, named where they had no name: runtimes end where one is absent."""
    outputs = [*context.node.output[:count], *[""] * (count - len(context.node.output))]
    return [name or context.fresh("statistics") for name in outputs]


@down(
    "BatchNormalization",
    14,
    "training_mode=0 dropped, all inputs brought to one dtype; training: the statistics computed "
    "by ReduceMean",
    blocks="a dtype is not known",
)
def without_training_mode(context: Context) -> None:
    """``BatchNormalization<training_mode=0>(x, ...)`` becomes ``BatchNormalization(x, ...)``.

    ``y, rm, rv = BatchNormalization<training_mode=1>(x, scale, b, m, v)`` becomes
    ``BatchNormalization(x, scale, b, mean, variance)`` with ``mean = ReduceMean(x)``, ``variance =
    ReduceMean((x - mean) ** 2)``, and ``rm = m * momentum + mean * (1 - momentum)``; rv is computed
    like rm.
    """
    if context.value("training_mode", 0):
        inputs, elem_type = _with_own_statistics(context)
        output = context.node.output[0]
        normal = output if elem_type is None else context.fresh("normal")
        context.replace(inputs=inputs, outputs=[normal], keep=("epsilon",))
        if elem_type is not None:
            cast(context, normal, elem_type, [output])
    elif not _widened(context, range(5)) and context.attribute("training_mode") is not None:
        context.replace(drop=("training_mode",))


def _with_own_statistics(
    context: Context, *, of_features: bool = False
) -> tuple[list[str], int | None]:
    """Emit the outputs of training but the first, and return inputs that give that by inference.

    Returns:
        the inputs, and the dtype that their result is to be cast to, None where it has it.
    """
    op = context.op
    names = [context.input(index) for index in range(5)]
    elem_types = [context.need_elem_type(name, "it is computed in one dtype") for name in names]
    working = _wide(elem_types)
    wide = [
        name if elem_type == working else cast(context, name, working)
        for name, elem_type in zip(names, elem_types, strict=True)
    ]
    if of_features:
        own = [squeezed(context, each.name, [0]) for each in _moments(context, wide[0], [0])]
    else:
        own = [each.name for each in _statistics(context, wide[0])]
    back = None if elem_types[3] == working else elem_types[3]
    momentum = context.value("momentum", _MOMENTUM)
    factors = [context.scalar(n, "share", working) for n in (momentum, 1 - momentum)]
    for index in range(1, 5):
        output = _read_output(context, index)
        if not output:
            continue
        name = own[(index - 1) % 2]
        if index < 3:
            pairs = zip((wide[index + 2], name), factors, strict=True)
            parts = [op.Mul(*pair) for pair in pairs]
            name = op.Add(*parts)
        if index == 4:
            context.warn(_SAVED)
        _emit_output(context, name, output, back)
    return [*wide[:3], *own], None if elem_types[0] == working else elem_types[0]


def _emit_output(context: Context, name: str, output: str, elem_type: int | None) -> None:
    """Emit an output: a value, cast to `elem_type` unless that is None."""
    if elem_type is None:
        context.op.Identity(name, outputs=[output])
    else:
        cast(context, name, elem_type, [output])


def _statistics(context: Context, data: str) -> list[LazyTensor]:
    """Return mean and population variance of each channel, of shape [channels], in data's dtype."""
    rank = context.specialised_rank(data)
    if rank is None:
        data = _of_rank_3(context, data)
        rank = 3
    flat = context.array([-1], "flat")

    def of_rank_1(moment: LazyTensor) -> LazyTensor:
        return LazyTensor(lambda: context.op.Reshape(moment.name, flat))

    return [of_rank_1(moment) for moment in _moments(context, data, [0, *range(2, rank)])]


def _moments(context: Context, data: str, axes: list[int]) -> tuple[LazyTensor, LazyTensor]:
    """Return the mean and the variance over some axes, whose dims become 1, in the data's dtype."""
    op = context.op
    mean = LazyTensor(lambda: reduced(context, "ReduceMean", data, axes, keep=True))

    def variance() -> str:
        apart = op.Sub(data, mean.name)
        square = op.Mul(apart, apart)
        return reduced(context, "ReduceMean", square, axes, keep=True)

    return mean, LazyTensor(variance)


@down(
    "BatchNormalization",
    15,
    "data, scale and bias brought to one dtype",
    blocks="a dtype is not known",
)
def one_dtype(context: Context) -> None:
    """``BatchNormalization(x, scale, ...)``, x of float16 and scale of float, becomes
    ``Cast<float16>(BatchNormalization(Cast<float>(x), scale, ...))``.
    """
    _widened(context, range(3))


def _wide(elem_types: Iterable[int]) -> int:
    """Return double if it is among several floating-point dtypes, else float."""
    return TensorProto.DOUBLE if TensorProto.DOUBLE in elem_types else TensorProto.FLOAT


def _widened(context: Context, indices: Iterable[int]) -> bool:
    """Bring inputs of several dtypes to one, and the output back; return whether they differ."""
    names = [context.input(index) for index in indices]
    elem_types = [context.need_elem_type(name, "its inputs must have one dtype") for name in names]
    if len(set(elem_types)) == 1:
        return False
    working = _wide(elem_types)
    inputs = list(context.node.input)
    for index, name in enumerate(names):
        if elem_types[index] != working:
            inputs[index] = cast(context, name, working)
    output, *others = context.node.output
    drop = ("training_mode",) if context.op.opset < 14 else ()
    wide = output if elem_types[0] == working else context.fresh("wide")
    context.replace(inputs=inputs, outputs=[wide, *others], drop=drop)
    if wide != output:
        cast(context, wide, elem_types[0], [output])
    return True
