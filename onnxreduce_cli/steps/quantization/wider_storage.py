"""DequantizeLinear of dtypes that an opset lacks: the data is stored in a wider dtype.

Constants are converted, or unpacked at run time where they are large; what the model quantizes
itself is quantized to the wider dtype (`narrow_dtypes`).
"""

from __future__ import annotations

import math

from onnx import TensorProto, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import dtype_name, numpy_dtype
from onnxreduce_cli.steps.quantization.arithmetic import dequantize
from onnxreduce_cli.steps.quantization.narrow_dtypes import quantized_in_wider_dtype
from onnxreduce_cli.steps.quantization.scales import as_float

_BY_NAME = {
    "INT8": ("INT2", "INT4"),
    "UINT8": ("UINT2", "UINT4"),
    "FLOAT": (
        "FLOAT4E2M1",
        "FLOAT6E2M3",
        "FLOAT6E3M2",
        "FLOAT8E4M3FN",
        "FLOAT8E4M3FNUZ",
        "FLOAT8E5M2",
        "FLOAT8E5M2FNUZ",
        "FLOAT8E8M0",
    ),
}
_KNOWN = dict(TensorProto.DataType.items())
#: For each narrow dtype the one that stores it; an older onnx knows fewer.
STORAGE: dict[int, int] = {
    _KNOWN[name]: _KNOWN[storage]
    for storage, names in _BY_NAME.items()
    for name in names
    if name in _KNOWN
}
#: How many numbers there are in a byte of a tensor, if more than one.
_IN_A_BYTE: dict[int, int] = {
    _KNOWN[name]: count
    for name, count in (("INT2", 4), ("UINT2", 4), ("INT4", 2), ("UINT4", 2), ("FLOAT4E2M1", 2))
    if name in _KNOWN
}


def dequantize_in_wider_storage(context: Context) -> bool:
    """Dequantize data of a dtype that the next opset lacks; return whether it has such a dtype.

    ``DequantizeLinear(x, scale)`` with a constant x of int4 becomes the same with it in int8, read
    by the source opset; with one of float8 it becomes ``Mul(x, scale)`` with x in float.
    """
    allowed = schemas.allowed_types("DequantizeLinear", context.op.opset)
    inputs = list(context.node.input)
    for index, name in enumerate(inputs):
        lacks = name and context.kind(name) not in allowed[f"in{index}"]
        storage = STORAGE.get(context.elem_type(name) or 0)
        if lacks and storage is not None:
            inputs[index] = _stored(context, name, storage)
    if inputs == list(context.node.input):
        return False
    if context.elem_type(inputs[0]) == TensorProto.FLOAT:
        dequantize(context, inputs[0])
    else:
        context = context.at(max(context.op.opset, context.source_opset))
        context.replace(inputs=inputs)
    return True


def in_float(context: Context, name: str) -> str:
    """Return data in float; stored in a wider dtype first where the target opset lacks its own."""
    storage = STORAGE.get(context.elem_type(name) or 0)
    if storage is not None and context.kind(name) not in _castable(context):
        name = _stored(context, name, storage)
    return as_float(context, name)


def _castable(context: Context) -> frozenset[str]:
    return schemas.allowed_types("Cast", context.target_opset)["in0"]


def _stored(context: Context, name: str, storage: int) -> str:
    """Return a value of a narrow dtype in the dtype `storage`.

    Raises:
        Blocked: it is neither constant nor quantized in this graph.
    """
    known, large = context.constant(name), context.tensor(name)
    if known is not None:
        return context.array(known.astype(numpy_dtype(storage)), "stored")
    if large is not None:
        return _unpacked(context, large, storage)
    stored = quantized_in_wider_dtype(context, name, storage)
    if stored is None:
        narrow = dtype_name(context.elem_type(name) or 0)
        raise Blocked(
            f"{name!r} is computed, or given to the model, in {narrow}, which opset "
            f"{context.op.opset} does not have; only what is constant, or quantized here, can be "
            "held in another dtype",
            f"give the model a {dtype_name(storage)} in its place",
        )
    return stored


def _unpacked(context: Context, tensor: TensorProto, storage: int) -> Value:
    """Return ``Reshape(Gather(table, Cast<int32>(bytes)), dims)``: each byte's numbers, looked up.

    So large data stays in its file, and in its narrow dtype.
    """
    op = context.op
    each, size = _IN_A_BYTE.get(tensor.data_type, 1), math.prod(tensor.dims)
    every = TensorProto(data_type=tensor.data_type, raw_data=bytes(range(256)), dims=[256 * each])
    table = numpy_helper.to_array(every).astype(numpy_dtype(storage)).reshape(256, each)
    data = context.taken_for(tensor, TensorProto.UINT8, [-(-size // each)])
    whole = cast(context, data, TensorProto.INT32)
    values = op.Gather(context.array(table, "table"), whole, axis=0)
    if size % each:
        flat = op.Reshape(values, context.array([-1], "flat"))
        ends = [context.array([number], "end") for number in (0, size)]
        values = op.Slice(flat, *ends)
    return op.Reshape(values, context.array([*tensor.dims], "dims"))
