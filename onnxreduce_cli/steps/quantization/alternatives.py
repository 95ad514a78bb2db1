"""Alternatives to forms of quantization that some runtimes refuse.

An alternative means the same at the same opset. Which runtime refuses what is in `targets/`.
"""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
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
