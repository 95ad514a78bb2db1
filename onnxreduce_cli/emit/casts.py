"""Casts to another dtype, and operators computed in a wider one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES, INTEGERS
from onnxreduce_cli.model.graph.values import dtype_name, tensor_type


def cast(context: Context, name: str, to: int, outputs: Sequence[str] | None = None) -> Value:
    """Emit a Cast of a tensor to the dtype `to`; its shape stays.

    Args:
        context: where it is emitted.
        name: the tensor, of any dtype that Cast takes.
        to: the `TensorProto.DataType` of the result.
        outputs: the name of the result; by default a new one.
    """
    op = context.op
    if op.opset >= 6:
        return op.Cast(name, outputs=outputs, to=to)
    # Before opset 6 the dtype is named, and shape inference knows nothing of Cast.
    known = context.type(name)
    like = tensor_type(to, None if known is None else known.dims)
    # Of a value of the model more may be known.
    stated = outputs is not None and context.kind(outputs[0]) is not None
    number = TensorProto.DataType.Name(to)
    return op.Cast(name, outputs=outputs, like=None if stated else like, to=number)


def computed_in(context: Context, wide: int) -> tuple[NodeProto, int]:
    """``Op(x)`` becomes ``Cast(Op(Cast(x)))``, which computes in the dtype `wide`.

    Only the first input and the first output have the narrow dtype.

    Returns:
        the node in the middle, and the narrow dtype.
    """
    data, output = context.node.input[0], context.node.output[0]
    narrow = context.need_elem_type(data, "it must be cast back to it")
    inputs = [cast(context, data, wide), *context.node.input[1:]]
    middle = context.replace(inputs=inputs, outputs=[context.fresh(dtype_name(wide))])
    cast(context, middle.output[0], narrow, [output])
    return middle, narrow


def in_dtype(context: Context, name: Value, working: int) -> Value:
    """Return a value in the dtype `working`; empty where it is absent."""
    if not name or context.elem_type(name) == working:
        return name
    return cast(context, name, working)


def working_dtypes(context: Context, index: int = 0) -> tuple[int, int]:
    """Return the dtype of an input, and the one to compute in: float for float16 and bfloat16."""
    given = context.need_elem_type(context.input(index), "the dtype to compute in depends on it")
    return given, TensorProto.FLOAT if given in HALVES else given


def widened(context: Context, integers: int) -> tuple[str, int, int]:
    """Return the node's first input cast to the dtype to compute in.

    Float16 and bfloat16 are computed in float, integers in the dtype `integers` (0 for their own),
    all others in their own.

    Returns:
        the name of the value, its dtype before, the dtype to compute in.
    """
    given, working = working_dtypes(context)
    if given in INTEGERS and integers:
        working = integers
    return in_dtype(context, context.input(0), working), given, working


def replace_and_cast_back(
    context: Context, op_type: str, inputs: Sequence[str], given: int, working: int, **values: Any
) -> None:
    """Emit the last node of a replacement, computed in `working`, and a Cast back to `given`."""
    if working == given:
        context.replace(op_type, inputs, keep=(), **values)
    else:
        context.replace("Cast", [context.op.emit(op_type, *inputs, **values)], keep=(), to=given)
