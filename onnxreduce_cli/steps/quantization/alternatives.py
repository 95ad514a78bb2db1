"""Alternatives to forms of quantization that some runtimes refuse.

An alternative means the same at the same opset. Which runtime refuses what is in `targets/`.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.registry import instead


@instead(
    ("QuantizeLinear", "DequantizeLinear"),
    {"axis beyond rank"},
    "written with an axis that its data has",
)
def with_first_axis(context: Context) -> None:
    """``DequantizeLinear(x, scale)``, x of rank 1 and one scale, becomes
    ``DequantizeLinear<axis=0>(x, scale)``: its axis, 1 by default, is ignored.
    """
    context.replace(axis=0)


@instead(
    ("QuantizeLinear", "DequantizeLinear"), {"no zero point"}, "written with its zero point of 0"
)
def with_zero_point(context: Context) -> None:
    """``QuantizeLinear(x, scale)`` becomes ``QuantizeLinear(x, scale, zero_point)``, that is 0 of
    uint8 unless the node says another dtype, in the shape of the scale.
    """
    scale, node = context.input(1), context.node
    dims = scale.dims or ()
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if scale.dims is None or len(sizes) < len(dims):
        raise Blocked("the shape of its scale is not known")
    quantized = node.output[0] if node.op_type == "QuantizeLinear" else node.input[0]
    elem_type = context.elem_type(quantized) or TensorProto.UINT8
    zero = context.array(np.zeros(sizes, numpy_dtype(elem_type)), "zero_point")
    context.replace(inputs=[*node.input[:2], zero])
