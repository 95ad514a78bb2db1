"""BatchNormalization (6, 7, 9, 14, 15), InstanceNormalization (6), GroupNormalization (21).

Of BatchNormalization only the form with one output, for inference, is taken across: what the others
of a training node hold was not written down before 14.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.model.values import dtype_name, numpy_dtype
from onnxreduce_cli.steps.casts import HALVES, cast
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down, up

_BOTH = ("BatchNormalization", "InstanceNormalization")


def _trains(context: Context) -> bool:
    return any(context.node.output[1:])


def _check_inference(context: Context) -> None:
    if _trains(context):
        raise Blocked(
            "it gives statistics for training, and what they hold was not written down before "
            "opset 14",
            "export the model for inference",
        )


# 6: consumed_inputs went, any rank came


@up(_BOTH, 6, "consumed_inputs dropped")
def without_consumed_inputs(context: Context) -> None:
    """``BatchNormalization<consumed_inputs=[0, 0, 0, 1, 1]>(x, ...)`` becomes
    ``BatchNormalization(x, ...)``.
    """
    if context.attribute("consumed_inputs") is not None:
        context.replace(drop=("consumed_inputs",))


@down(
    "BatchNormalization",
    6,
    "consumed_inputs written, the input made 4-D",
    blocks="its rank is unknown",
)
def batch_before_6(context: Context) -> None:
    """``BatchNormalization(x, ...)`` becomes
    ``BatchNormalization<consumed_inputs=[0, 0, 0, 1, 1]>(x, ...)``.
    """
    _with_rank_4(context, consumed_inputs=[0, 0, 0, 1, 1])


@down("InstanceNormalization", 6, "the input made 4-D", blocks="its rank is unknown")
def instance_before_6(context: Context) -> None:
    """``InstanceNormalization(x, ...)``, x of rank 3, becomes
    ``Squeeze(InstanceNormalization(Unsqueeze(x), ...))``.
    """
    if context.need_rank(context.input(0), "before opset 6 it must be 4") != 4:
        _with_rank_4(context)


def _with_rank_4(context: Context, **values: Any) -> None:
    """The node on its input with rank 4: dimensions of 1 added, or those from the third joined."""
    data, output = context.input(0), context.node.output[0]
    rank = context.need_rank(data, "before opset 6 it must be 4")
    if rank == 4:
        context.replace(**values)
    elif rank in (2, 3):
        axes = list(range(rank, 4))
        longer = context.emit("Unsqueeze", [data], "with_rank_4", axes=axes)
        inputs = [longer, *context.node.input[1:]]
        normal = context.replace(inputs=inputs, outputs=[context.fresh("normal")], **values)
        context.emit("Squeeze", [normal.output[0]], outputs=[output], axes=axes)
    else:
        shape = context.array([0, 0, -1, 1], "shape")
        joined = context.emit("Reshape", [data, shape], "with_rank_4")
        _restored(context, [joined, *context.node.input[1:]], **values)


def _restored(context: Context, inputs: Sequence[str], **values: Any) -> None:
    """The node on other inputs, and its output in the shape of what it read before."""
    normal = context.replace(inputs=inputs, outputs=[context.fresh("normal")], **values)
    shape = context.emit("Shape", [context.input(0)], "shape")
    context.emit("Reshape", [normal.output[0], shape], outputs=[context.node.output[0]])


# 7: is_test went


@up("BatchNormalization", 7, "is_test dropped", blocks="it trains, or has spatial=0")
def without_is_test(context: Context) -> None:
    """``BatchNormalization<is_test=1>(x, ...)`` becomes ``BatchNormalization(x, ...)``."""
    _check_inference(context)
    if not context.value("is_test", 0):
        raise Blocked(
            "it has one output, as for inference, but is_test=0, as for training",
            "set is_test=1 if it is for inference",
        )
    _check_spatial(context)
    context.replace(drop=("is_test",))


@down("BatchNormalization", 7, "is_test=1 written", blocks="it trains, or has spatial=0")
def with_is_test(context: Context) -> None:
    """``BatchNormalization(x, ...)`` becomes ``BatchNormalization<is_test=1>(x, ...)``."""
    _check_inference(context)
    _check_spatial(context)
    context.replace(is_test=1)


def _check_spatial(context: Context) -> None:
    if not context.value("spatial", 1):
        raise Blocked(
            "it has spatial=0, and the shape of its parameters, which this concerns, changed at "
            "opset 7",
            "flatten its input and parameters instead",
        )


# 9: spatial went, rank 1 came


@up("BatchNormalization", 9, "spatial dropped; with spatial=0 all is flattened", blocks="it trains")
def without_spatial(context: Context) -> None:
    """``BatchNormalization<spatial=0>(x, scale, ...)`` becomes
    ``Reshape(BatchNormalization(Reshape(x), Reshape(scale), ...), Shape(x))``.
    """
    if context.value("spatial", 1):
        if context.attribute("spatial") is not None:
            context.replace(drop=("spatial",))
        return
    _check_inference(context)
    flat = context.array([-1], "flat")
    inputs = [context.emit("Flatten", [context.input(0)], "flat", axis=1)]
    inputs += [context.emit("Reshape", [name, flat], "flat") for name in context.node.input[1:]]
    _restored(context, inputs, spatial=None)


@down("BatchNormalization", 9, "an input of rank 1 made rank 2", blocks="its rank is unknown")
def with_channels(context: Context) -> None:
    """``BatchNormalization(x, ...)``, x of rank 1, becomes
    ``Squeeze(BatchNormalization(Unsqueeze(x), ...))``.
    """
    scale = context.type(context.input(1))
    if scale is not None and scale.dims not in (None, (1,), (None,)):
        # More than one channel, or a name for their number: rank 1 stands for one channel.
        return
    data, output = context.input(0), context.node.output[0]
    if context.need_rank(data, "before opset 9 it must be 2 or more") > 1:
        return
    _check_inference(context)
    longer = context.emit("Unsqueeze", [data], "with_channels", axes=[1])
    inputs = [longer, *context.node.input[1:]]
    normal = context.replace(inputs=inputs, outputs=[context.fresh("normal")])
    context.emit("Squeeze", [normal.output[0]], outputs=[output], axes=[1])


# 14 and 15: training_mode, dtypes apart


@up("BatchNormalization", 14, "unchanged", blocks="it trains")
def inference_only(context: Context) -> None:
    """``y = BatchNormalization(x, ...)`` stays as it is."""
    _check_inference(context)


@down(
    "BatchNormalization",
    14,
    "training_mode=0 dropped, all inputs brought to one dtype",
    blocks="it trains, or its dtypes have none to be widened to",
)
def without_training_mode(context: Context) -> None:
    """``BatchNormalization<training_mode=0>(x, ...)`` becomes ``BatchNormalization(x, ...)``."""
    if context.value("training_mode", 0):
        raise Blocked(
            "it has training_mode=1, and what a training node gives was not written down before "
            "opset 14",
            "export the model for inference",
        )
    if not _widened(context, range(5)) and context.attribute("training_mode") is not None:
        context.replace(drop=("training_mode",))


@down(
    "BatchNormalization",
    15,
    "data, scale and bias brought to one dtype",
    blocks="it trains with several, or they have none to be widened to",
)
def one_dtype(context: Context) -> None:
    """``BatchNormalization(x, scale, ...)``, x of float16 and scale of float, becomes
    ``Cast<float16>(BatchNormalization(Cast<float>(x), scale, ...))``.
    """
    _widened(context, range(3))


def _widened(context: Context, indices: Iterable[int]) -> bool:
    """Bring inputs of several dtypes to float, and the output back; whether that was needed."""
    names = [context.input(index) for index in indices]
    given = [context.need_elem_type(name, "its inputs must have one dtype") for name in names]
    if len(set(given)) == 1:
        return False
    if not set(given) <= {*HALVES, TensorProto.FLOAT} or _trains(context):
        found = ", ".join(sorted({dtype_name(elem_type) for elem_type in given}))
        raise Blocked(
            f"its inputs have dtypes {found}, and opset {context.far} wants one",
            "cast them to one",
        )
    inputs = list(context.node.input)
    for index, name in enumerate(names):
        if given[index] != TensorProto.FLOAT:
            inputs[index] = cast(context, name, TensorProto.FLOAT)
    output = context.node.output[0]
    drop = ("training_mode",) if context.far < 14 else ()
    wide = [output if given[0] == TensorProto.FLOAT else context.fresh("float")]
    context.replace(inputs=inputs, outputs=wide, drop=drop)
    if wide[0] != output:
        cast(context, wide[0], given[0], [output])
    return True


# GroupNormalization


@up(
    "GroupNormalization",
    21,
    "scale and bias repeated for each channel of a group",
    blocks="the number of channels is not known",
)
def parameters_for_channels(context: Context) -> None:
    """``GroupNormalization<num_groups=2>(x, scale, bias)``, x with 4 channels, becomes the same of
    ``[s0, s0, s1, s1]`` and ``[b0, b0, b1, b1]``.
    """
    groups = context.value("num_groups")
    known = context.type(context.input(0))
    channels = None if known is None or known.dims is None else known.dims[1]
    if not isinstance(channels, int):
        raise Blocked(
            "the number of its channels is not known, and from opset 21 on each has a scale",
            "state its input's shape in the model's value_info",
        )
    times = channels // groups
    parameters = [_repeated(context, context.input(index), groups, times) for index in (1, 2)]
    elem_type = context.need_elem_type(context.input(0), "the older version computes in it")
    context.replace(inputs=[context.input(0), *parameters], stash_type=elem_type)


def _repeated(context: Context, name: str, groups: int, times: int) -> str:
    known = context.constant(name)
    if known is not None:
        return context.array(np.repeat(known, times), "for_channels")
    column = context.emit("Unsqueeze", [name, context.array([1], "axes")], "column")
    wide = context.emit("Expand", [column, context.array([groups, times], "shape")], "wide")
    return context.emit("Reshape", [wide, context.array([-1], "flat")], "for_channels")


@down(
    "GroupNormalization",
    21,
    "written with InstanceNormalization: the older version has a scale for each group only",
    blocks="the rank or the dtype is not known",
)
def with_instance_normalization(context: Context) -> None:
    """``GroupNormalization<num_groups=2>(x, scale, bias)`` becomes
    ``n * Unsqueeze(scale) + Unsqueeze(bias)`` with n =
    ``Reshape(InstanceNormalization(Reshape(x, [0, 2, -1]), 1, 0), Shape(x))``.
    """
    data = context.input(0)
    rank = context.need_rank(data, "its scales are spread along the channels")
    known = context.type(data)
    if known is not None and known.dims is not None and 0 in known.dims:
        context.replace("Identity", [data], keep=())  # Nothing to normalise.
        return
    given = context.need_elem_type(data, "it is normalised in a dtype of its own")
    working = context.value("stash_type", TensorProto.FLOAT)
    groups = context.value("num_groups")
    wide = data if working == given else cast(context, data, working)
    grouped = context.emit("Reshape", [wide, context.array([0, groups, -1], "shape")], "grouped")
    dtype = numpy_dtype(working)
    ones, zeros = (
        context.array(np.full(groups, value, dtype), hint)
        for value, hint in ((1, "ones"), (0, "zeros"))
    )
    normal = context.emit(
        "InstanceNormalization",
        [grouped, ones, zeros],
        "normal",
        epsilon=context.attribute("epsilon"),
    )
    normal = context.emit("Reshape", [normal, context.emit("Shape", [data], "shape")], "shaped")
    if working != given:
        normal = cast(context, normal, given)
    axes = context.array(list(range(1, rank - 1)), "axes")
    scale, bias = (
        context.emit("Unsqueeze", [context.input(index), axes], hint)
        if rank > 2
        else context.input(index)
        for index, hint in ((1, "scale"), (2, "bias"))
    )
    scaled = context.emit("Mul", [normal, scale], "scaled")
    context.replace("Add", [scaled, bias], keep=())
