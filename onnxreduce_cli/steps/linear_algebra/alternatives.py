"""What else to write for products of matrices, for runtimes that get a form of it wrong.

It means the same at the same opset. Which runtime gets what wrong is in `targets/`.
"""

from __future__ import annotations

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.steps.registry import instead

#: From this opset on a Gemm may have no C.
_WITHOUT_C = 11


@instead("Gemm", {"alpha or beta", "computed C"}, "written as Gemm, Mul and Add")
def in_parts(context: Context) -> None:
    """``Gemm<alpha=2.0, beta=3.0>(a, b, c)`` becomes
    ``Add(Mul(Gemm(a, b), 2.0), Mul(c, 3.0))``.
    """
    context = context.at(max(context.op.opset, _WITHOUT_C))
    elem_type = context.need_elem_type(context.input(0), "alpha and beta are of the same")

    def scaled(value: Value, name: str) -> Value:
        factor = context.value(name, 1)
        if factor == 1:
            return value
        array = context.constant(value)
        if array is not None:
            return context.array((array * factor).astype(numpy_dtype(elem_type)), name)
        return context.op.Mul(value, context.scalar(factor, name, elem_type))

    inputs, output = [context.input(0), context.input(1)], context.node.output[0]
    made = context.replace(
        inputs=inputs, outputs=[context.fresh("product")], drop=("alpha", "beta")
    )
    product = scaled(Value(made.output[0], context), "alpha")
    if context.input(2):
        context.op.Add(product, scaled(context.input(2), "beta"), outputs=[output])
    else:
        context.op.Identity(product, outputs=[output])
