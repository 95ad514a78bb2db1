"""Sets of tensor dtypes, as `TensorProto.DataType`, that many operators distinguish."""

from __future__ import annotations

from onnx import TensorProto

SIGNED = frozenset({TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64})
UNSIGNED = frozenset(
    {TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}
)
#: The integers without those of 2 and 4 bits, in which no operator computes.
INTEGERS = SIGNED | UNSIGNED
INTEGERS_OF_64_BITS = frozenset({TensorProto.INT64, TensorProto.UINT64})
#: The floats of 16 bits.
HALVES = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})
#: The floats that operators take from their first opset on.
FLOATS = frozenset({TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE})
FLOATS_WITH_BFLOAT16 = FLOATS | HALVES
