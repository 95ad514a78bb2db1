"""TopK: 10 made K an input, 11 added `largest` and `sorted` and allowed the integers."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.steps.casts import INTEGERS, cast
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down, up


@up("TopK", 10, "k: attribute to input")
def number_to_input(context: Context) -> None:
    """``TopK<k=3>(x)`` becomes ``TopK(x, [3])``."""
    number = context.array([context.value("k")], "k")
    context.replace(inputs=[context.input(0), number], drop=("k",))


@down("TopK", 10, "K: input to attribute", blocks="it is only known at run time")
def number_to_attribute(context: Context) -> None:
    """``TopK(x, [3])`` becomes ``TopK<k=3>(x)``."""
    number = context.constant(context.input(1))
    if number is None:
        raise Blocked(
            f"its K {context.input(1)!r} is only known at run time, and before opset 10 it is an "
            "attribute",
            "make it a constant, or choose opset 10 or later",
        )
    context.replace(inputs=[context.input(0)], k=int(number.reshape(-1)[0]))


@down(
    "TopK",
    11,
    "largest=0: the largest of the negated; integers in a float type that holds them",
    blocks="they are 64-bit integers, or the axis is below -1 and the rank is not known",
)
def largest_of_floats(context: Context) -> None:
    """``TopK<largest=0>(x, k)`` becomes ``Neg(TopK(Neg(x), k))`` for the values.

    ``sorted=0`` leaves the order open, so it is dropped. The integers that came with opset 11 are
    computed in float or double, which order them alike; so is what is negated.
    """
    data = context.input(0)
    drop = ("largest", "sorted")
    smallest = not context.value("largest", 1)
    given = context.need_elem_type(data, "before opset 11 it takes floats only")
    working = _holding(given)
    axis = context.value("axis", -1)
    if axis < -1:
        rank = context.need_rank(data, "before opset 11 its axis may not be below -1")
        axis %= rank
    attributes = {"axis": axis} if context.attribute("axis") is not None else {}
    if not smallest and working == given:
        if any(context.attribute(name) is not None for name in drop) or axis != context.value(
            "axis", -1
        ):
            context.replace(drop=drop, **attributes)
        return
    inputs = [data, context.input(1)]
    if working != given:
        inputs[0] = cast(context, data, working)
    if smallest:
        inputs[0] = context.emit("Neg", [inputs[0]], "negated")
    values, *others = context.node.output
    found = context.fresh("values")
    context.replace(inputs=inputs, outputs=[found, *others], drop=drop, **attributes)
    if smallest and working != given:
        found = context.emit("Neg", [found], "smallest")
    if not values:
        return
    if working != given:
        cast(context, found, given, [values])
    else:
        context.emit("Neg", [found], "smallest", outputs=[values])


def _holding(elem_type: int) -> int:
    """The float type that TopK is computed in: it holds every number of the dtype."""
    if elem_type not in INTEGERS:
        return elem_type
    if elem_type in (TensorProto.INT64, TensorProto.UINT64):
        raise Blocked(
            "it orders 64-bit integers, which no float type holds; it takes floats only before "
            "opset 11",
            "choose opset 11 or later",
        )
    if elem_type in (TensorProto.INT32, TensorProto.UINT32):
        return TensorProto.DOUBLE
    return TensorProto.FLOAT
