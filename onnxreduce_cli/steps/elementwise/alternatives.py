"""What else to write for arithmetic, for runtimes that get a form of it wrong.

It means the same at the same opset. Which runtime gets what wrong is in `targets/`.
"""

from __future__ import annotations

import math

import numpy as np

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import UNSIGNED
from onnxreduce_cli.steps.registry import instead

#: Elements of a constant that is made as large as what it meets: 4 MB of float.
_MOST = 2**20


@instead("Pow", {"any", "scaled next"}, "written as products")
def as_products(context: Context) -> None:
    """``Pow(x, 3)`` becomes ``Mul(Mul(x, x), x)``, and ``Pow(x, 2)`` ``Mul(x, x)``."""
    base, exponent = context.input(0), context.constant(context.input(1))
    if exponent is None or exponent.size != 1 or exponent.ndim > (base.rank or 0):
        raise Blocked("its exponent is not one number that is known")
    power = exponent.reshape(()).item()
    if power not in (2, 3):
        raise Blocked("its exponent is neither 2 nor 3")
    factor = base if power == 2 else context.op.Mul(base, base)
    context.replace("Mul", [factor, base], keep=())


@instead("HardSigmoid", {"default beta"}, "written without its beta, which is the default")
def without_beta(context: Context) -> None:
    """``HardSigmoid<alpha=0.1667, beta=0.5>(x)`` becomes ``HardSigmoid<alpha=0.1667>(x)``."""
    context.replace(drop=("beta",))


@instead(
    ("Add", "Sub", "Equal", "Greater", "Less", "Max", "Min"),
    {"broadcast"},
    "written with the dimensions that it broadcasts last, between Transposes",
)
def broadcasting_last(context: Context) -> None:
    """``Add(x, z)`` of shapes [2, 3, 4] and [2, 1, 4] becomes
    ``Transpose(Add(Transpose(x), Transpose(z)))`` of shapes [2, 4, 3] and [2, 4, 1].
    """
    operands = [context.input(index) for index in range(len(context.node.input))]
    shapes = [operand.dims for operand in operands]
    first = shapes[0]
    if first is None or any(dims is None or len(dims) != len(first) for dims in shapes):
        raise Blocked("the ranks of the operands are not known, or not the same")
    rank = len(first)
    last = [
        axis for axis in range(rank) if any((dims or ())[axis] != first[axis] for dims in shapes)
    ]
    perm = [axis for axis in range(rank) if axis not in last] + last
    if perm == list(range(rank)) or rank - len(last) < 2:
        raise Blocked("there is nothing to transpose")
    turned = [context.op.Transpose(operand, perm=perm) for operand in operands]
    made = context.replace(inputs=turned, outputs=[context.fresh("last")])
    inverse = [perm.index(axis) for axis in range(rank)]
    context.op.Transpose(made.output[0], outputs=[context.node.output[0]], perm=inverse)


@instead("Sub", {"smaller first"}, "written with the larger operand first")
def larger_first(context: Context) -> None:
    """``Sub(x, y)`` becomes ``Add(Neg(y), x)``, which rounds to the same."""
    first, second = context.input(0), context.input(1)
    if second.elem_type is None or second.elem_type in UNSIGNED:
        raise Blocked("its dtype has no negative numbers, or is not known")
    context.replace("Add", [context.op.Neg(second), first])


@instead(
    ("Add", "Sub", "Mul", "Div"), {"smaller constant"}, "its constant made as large as the result"
)
def with_whole_constant(context: Context) -> None:
    """``Mul(x, [5.0, 6.0])``, x of shape [2, 2], becomes ``Mul(x, [[5.0, 6.0], [5.0, 6.0]])``."""
    result = context.type(context.node.output[0])
    dims = None if result is None else result.dims
    known = [dim for dim in dims or () if isinstance(dim, int)]
    if dims is None or len(known) < len(dims) or math.prod(known) > _MOST:
        raise Blocked("the shape of the result is not known, or large")
    inputs = []
    for name in (context.input(0), context.input(1)):
        array = context.constant(name)
        if array is None or array.size == 1 or list(array.shape) == known:
            inputs.append(name)
        else:
            inputs.append(context.array(np.broadcast_to(array, known).copy(), "whole"))
    context.replace(inputs=inputs)
