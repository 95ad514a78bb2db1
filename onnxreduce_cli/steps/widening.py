"""Widening: an operator computed in a wider dtype, by Casts, where its definition lacks a dtype.

It is done where the results are exactly the same: for operators that move or sort elements, for
comparisons, and for arithmetic that rounds or wraps as the narrow dtype does. It is also done where
a definition gives a real number and leaves open how to round it to 16 bits: here it is rounded
once.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.values import dtype_name, numpy_dtype

#: Operators whose results are elements of their inputs.
_MOVE_ELEMENTS = frozenset(
    {
        "Compress",
        "Concat",
        "ConstantOfShape",
        "DepthToSpace",
        "Dropout",
        "Expand",
        "EyeLike",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "Max",
        "Min",
        "OneHot",
        "Pad",
        "Relu",
        "Reshape",
        "ReverseSequence",
        "Scatter",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "TopK",
        "Transpose",
        "Unique",
        "Unsqueeze",
        "Where",
    }
)
#: Operators whose results depend only on how elements compare, or on how many there are.
_COMPARE_ELEMENTS = frozenset(
    {
        "ArgMax",
        "ArgMin",
        "Equal",
        "Greater",
        "GreaterOrEqual",
        "IsInf",
        "IsNaN",
        "Less",
        "LessOrEqual",
        "NonZero",
        "Shape",
        "Sign",
        "Size",
    }
)
#: Operators that give whole numbers, and leave whole numbers as they are.
_ROUNDING = frozenset({"Ceil", "Floor", "Round"})
#: Rounding to float and then to a half type is rounding once, as float has more than twice the
#: digits; integers wrap, and a Cast to fewer bits cuts off what had wrapped.
_ARITHMETIC = frozenset({"Add", "Div", "Mul", "Sub"})
#: Functions of real numbers, or draws of them, rounded to 16 bits.
_REAL = frozenset(
    {
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "AveragePool",
        "Bernoulli",
        "Celu",
        "Conv",
        "ConvTranspose",
        "Cos",
        "Cosh",
        "CumSum",
        "DeformConv",
        "Det",
        "Einsum",
        "Elu",
        "GRU",
        "GlobalAveragePool",
        "GlobalLpPool",
        "GlobalMaxPool",
        "GridSample",
        "HardSigmoid",
        "HardSwish",
        "InstanceNormalization",
        "LSTM",
        "LeakyRelu",
        "LpNormalization",
        "LpPool",
        "MaxPool",
        "MaxRoiPool",
        "MaxUnpool",
        "Mish",
        "Multinomial",
        "NegativeLogLikelihoodLoss",
        "PRelu",
        "Pow",
        "RNN",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "RoiAlign",
        "Selu",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Tan",
        "ThresholdedRelu",
    }
)

_FLOAT8 = (
    TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2,
    TensorProto.FLOAT8E5M2FNUZ,
)

#: For each dtype the dtypes that represent all its numbers, the best first.
_EXACT_IN: dict[int, tuple[int, ...]] = {
    TensorProto.BOOL: (TensorProto.UINT8, TensorProto.INT32, TensorProto.FLOAT),
    TensorProto.INT8: (TensorProto.INT32, TensorProto.FLOAT),
    TensorProto.INT16: (TensorProto.INT32, TensorProto.FLOAT),
    TensorProto.UINT8: (TensorProto.INT32, TensorProto.FLOAT),
    TensorProto.UINT16: (TensorProto.INT32, TensorProto.FLOAT),
    TensorProto.INT32: (TensorProto.INT64, TensorProto.DOUBLE),
    TensorProto.UINT32: (TensorProto.INT64, TensorProto.DOUBLE),
    **dict.fromkeys((*HALVES, *_FLOAT8), (TensorProto.FLOAT,)),
}
#: The same for arithmetic, where integers must wrap: of the same sign, and with room for products.
_WRAPS_LIKE: dict[int, tuple[int, ...]] = {
    TensorProto.INT8: (TensorProto.INT32,),
    TensorProto.INT16: (TensorProto.INT32,),
    TensorProto.UINT8: (TensorProto.UINT32,),
    TensorProto.UINT16: (TensorProto.UINT32,),
    **dict.fromkeys(HALVES, (TensorProto.FLOAT,)),
}


def wider_dtype(op_type: str, narrow: int, allowed: frozenset[str], opset: int) -> int | None:
    """Return the dtype in which an operator gives the same results as in `narrow`, if there is one.

    Args:
        op_type: the operator.
        narrow: the dtype that it lacks.
        allowed: the types that it takes.
        opset: the opset at which it lacks the dtype, and at which Cast must take it.
    """
    if f"tensor({dtype_name(narrow)})" not in schemas.allowed_types("Cast", opset)["in0"]:
        return None
    if op_type == "Equal" and narrow == TensorProto.UINT64:
        return TensorProto.INT64  # What wraps does so one to one.
    if op_type in _MOVE_ELEMENTS or op_type in _COMPARE_ELEMENTS:
        dtypes = _EXACT_IN
    elif op_type in _ARITHMETIC:
        dtypes = _WRAPS_LIKE
    elif op_type in _ROUNDING | _REAL and narrow in HALVES:
        dtypes = _EXACT_IN
    else:
        return None
    candidates = dtypes.get(narrow, ())
    return next((wide for wide in candidates if f"tensor({dtype_name(wide)})" in allowed), None)


def compute_wider(context: Context, node: NodeProto, wide: Mapping[str, int]) -> None:
    """``Op(x)`` becomes ``Cast(Op(Cast(x)))``, at the same place among the emitted nodes.

    Args:
        context: the context that emitted `node`, or whose own node it is.
        node: the node.
        wide: for each of the operator's type variables to widen, the dtype.
    """
    schema = schemas.schema(node.op_type, context.op.opset)
    position = next(
        (at for at, (emitted, _) in enumerate(context.emitted) if emitted is node),
        len(context.emitted),
    )
    rest = context.emitted[position + 1 :]
    del context.emitted[position:]
    inputs = []
    for index, name in enumerate(node.input):
        variable = schema.inputs[min(index, len(schema.inputs) - 1)].type_str
        if name and variable in wide:
            name = _cast_input(context, name, wide[variable])
        inputs.append(name)
    back = []
    outputs: list[str] = []
    for index, name in enumerate(node.output):
        variable = schema.outputs[min(index, len(schema.outputs) - 1)].type_str
        if name and variable in wide:
            narrow = context.need_elem_type(name, "it is cast back to it")
            outputs.append(context.fresh(dtype_name(wide[variable])))
            back.append((outputs[-1], narrow, name))
        else:
            outputs.append(name)
    again = context.again(node, inputs, outputs)
    elem_type = context.elem_type(node.output[0])
    if elem_type is not None:
        _set_dtype_attribute(again, wide.get(schema.outputs[0].type_str, elem_type))
    for widened, narrow, name in back:
        if narrow in _FLOAT8:
            # The values were float8 before: only their infinities could saturate.
            context.op.Cast(widened, outputs=[name], to=narrow, saturate=0)
        else:
            cast(context, widened, narrow, [name])
    context.emitted.extend(rest)


def _set_dtype_attribute(node: NodeProto, elem_type: int) -> None:
    """Set the attribute of a node that says which dtype it gives, if it has one."""
    value = attributes.find(node, "value")
    if node.op_type == "ConstantOfShape" and value is not None:
        array = numpy_helper.to_array(value.t).astype(numpy_dtype(elem_type))
        value.t.CopyFrom(numpy_helper.from_array(array))
    elif "dtype" in schemas.schema(node.op_type, schemas.newest_opset()).attributes:
        attributes.drop(node, ("dtype",))
        node.attribute.append(helper.make_attribute("dtype", elem_type))


def _cast_input(context: Context, name: str, wide: int) -> Value:
    """Return a value in the dtype `wide`; a constant is cast here."""
    constant = context.constant(name)
    if constant is not None:
        return context.array(constant.astype(numpy_dtype(wide)), "constant")
    return cast(context, name, wide)
