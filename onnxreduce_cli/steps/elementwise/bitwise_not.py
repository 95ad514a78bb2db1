"""BitwiseNot below opset 18, which introduced it, by a subtraction."""

from __future__ import annotations

import numpy as np

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import iinfo, numpy_dtype
from onnxreduce_cli.steps.registry import introduced


@introduced("BitwiseNot", 18, "-1 - x, of unsigned integers their highest number less x")
def bitwise_not(context: Context) -> None:
    """``BitwiseNot(x)`` becomes ``Sub(-1, x)``, of uint8 ``Sub(255, x)``."""
    data = context.input(0)
    elem_type = context.need_elem_type(data, "it decides what x is taken from")
    dtype = numpy_dtype(elem_type)
    highest = -1 if np.issubdtype(dtype, np.signedinteger) else iinfo(dtype).max
    context.replace("Sub", [context.array(np.array(highest, dtype), "all_bits"), data], keep=())
