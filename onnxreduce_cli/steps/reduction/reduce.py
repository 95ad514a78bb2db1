"""The Reduce family: 1, 11, 12, 13, 18, 20 and 28.

- 11 allowed negative axes.
- 12 added int8 and uint8, 20 bool (ReduceMax and ReduceMin); 13 added bfloat16.
- 13 made the axes of ReduceSum an input, 18 those of the others, with `noop_with_empty_axes`.
- 28 took the integers from ReduceLogSum and ReduceLogSumExp.
"""

from __future__ import annotations

from onnx import AttributeProto, TensorProto

from onnxreduce_cli.emit.axes import (
    attribute_to_input,
    known_axes,
    normalised,
    unsqueezed,
)
from onnxreduce_cli.emit.casts import INTEGERS, cast, there_and_back
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LOOPS_FROM, NO_RANK
from onnxreduce_cli.emit.reversed_dims import mirrored_axes, replace_mirrored
from onnxreduce_cli.steps.reduction.emulated_reduce_axes import reduce_at_run_time
from onnxreduce_cli.steps.reduction.emulated_reduce_rank import reduce_rows
from onnxreduce_cli.steps.registry import down, up

#: All but ReduceSum, whose axes became an input five opsets earlier.
NINE = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)
REDUCE = (*NINE, "ReduceSum")
EXTREMES = ("ReduceMax", "ReduceMin")
LOGARITHMS = ("ReduceLogSum", "ReduceLogSumExp")

_AT_RUN_TIME = f"the axes are only known at run time and it leads below opset {LOOPS_FROM}"


@down(
    REDUCE,
    11,
    "negative axes made non-negative; of unknown rank, those of the mirrored tensor",
    blocks=f"axes are counted from both ends, and {NO_RANK}",
)
def negative_axes(context: Context) -> None:
    """``ReduceMean<axes=[-1]>(x)`` with x of rank 3 becomes ``ReduceMean<axes=[2]>(x)``, of
    unknown rank ``Transpose(ReduceMean<axes=[0]>(Transpose(x)))``.

    Where only some axes are negative then, they all become the columns of a matrix.
    """
    possible = context.possible_values("axes", ())
    if all(axis >= 0 for axes in possible for axis in axes):
        return
    axes, rank = context.value("axes"), context.settled_rank(context.input(0))
    if rank is not None:
        context.replace(axes=normalised(axes, rank))
    elif max(axes) < 0:
        replace_mirrored(context, axes=mirrored_axes(axes))
    else:
        reduce_rows(context, context.array(list(axes), "axes"), noop=False)


@down(EXTREMES, 12, "int8 and uint8 computed in float, which holds them exactly")
def small_integers(context: Context) -> None:
    """``ReduceMax(x)`` of int8 becomes ``Cast<int8>(Clip(ReduceMax(Cast<float>(x))))``.

    The Clip is there for the empty set: its maximum is -inf in float, the lowest value in int8.
    """
    bounds: dict[int, tuple[float, float]] = {
        TensorProto.INT8: (-128.0, 127.0),
        TensorProto.UINT8: (0.0, 255.0),
    }
    elem_type = context.elem_type(context.input(0))
    if elem_type is None or elem_type not in bounds:
        return
    low, high = bounds[elem_type]
    output = context.node.output[0]
    wide = cast(context, context.input(0), TensorProto.FLOAT)
    reduced = context.replace(
        inputs=[wide, *context.node.input[1:]], outputs=[context.fresh("float")]
    ).output[0]
    if may_be_empty(context, context.input(0)):
        reduced = context.op.Clip(reduced, context.scalar(low, "low"), context.scalar(high, "high"))
    cast(context, reduced, elem_type, [output])


def may_be_empty(context: Context, name: str) -> bool:
    """Whether a dimension of the value may be zero, as far as is known."""
    known = context.type(name)
    if known is None or known.dims is None:
        return True
    return not all(isinstance(dim, int) and dim > 0 for dim in known.dims)


@down(EXTREMES, 20, "bool computed in uint8")
def booleans(context: Context) -> None:
    """``ReduceMax(x)`` of bool becomes ``Cast<bool>(ReduceMax(Cast<uint8>(x)))``."""
    if context.elem_type(context.input(0)) == TensorProto.BOOL:
        there_and_back(context, TensorProto.UINT8)


@up("ReduceSum", 13, "axes: attribute to input")
@up(NINE, 18, "axes: attribute to input")
def axes_to_input(context: Context) -> None:
    """``ReduceSum<axes=[1]>(x)`` becomes ``ReduceSum(x, axes)``."""
    attribute_to_input(context)


@down("ReduceSum", 13, "axes: input to attribute", blocks=_AT_RUN_TIME)
@down(NINE, 18, "axes: input to attribute", blocks=_AT_RUN_TIME)
def axes_to_attribute(context: Context) -> None:
    """``ReduceSum(x, axes)`` with constant axes becomes ``ReduceSum<axes=[1]>(x)``.

    ``noop_with_empty_axes`` goes: with axes it says nothing, and where it holds, only the
    element-wise part of the operator is left.
    """
    axes = known_axes(context)
    noop = bool(context.value("noop_with_empty_axes", 0))
    if isinstance(axes, AttributeProto) and noop:
        # Whether the list is empty decides what the node does, so its value is needed.
        array = context.constant(context.input(1))
        axes = None if array is None else tuple(array.tolist())
    if axes is None:
        reduce_at_run_time(context, noop)
    elif noop and axes == ():
        elementwise(context)
    else:
        context.replace(
            inputs=[context.input(0)], drop=("noop_with_empty_axes",), axes=axes or None
        )


def elementwise(context: Context) -> None:
    """What is left of a reduction over no axes: ``ReduceSumSquare(x)`` becomes ``Mul(x, x)``."""
    data = context.input(0)
    op_type = context.node.op_type
    part = {
        "ReduceL1": "Abs",
        "ReduceL2": "Abs",
        "ReduceSumSquare": "Mul",
        "ReduceLogSum": "Log",
    }.get(op_type, "Identity")
    elem_type = None if part == "Identity" else context.elem_type(data)
    integer = elem_type is None or elem_type in INTEGERS
    if integer and (part == "Log" or (part != "Identity" and context.target_opset < 6)):
        # Log takes floats only, Abs and Mul did before opset 6: the operator itself does it.
        context.replace(inputs=[unsqueezed(context)], keep=(), keepdims=0, axes=[0])
        return
    inputs = [data, data] if part == "Mul" else [data]
    context.replace(part, inputs, keep=())


@up(LOGARITHMS, 28, "integers computed in double, which the newer version takes")
def integer_logarithms(context: Context) -> None:
    """``ReduceLogSum(x)`` of int32 becomes ``Cast<int32>(ReduceLogSum(Cast<double>(x)))``."""
    if context.elem_type(context.input(0)) in INTEGERS:
        there_and_back(context, TensorProto.DOUBLE)
