"""Bernoulli and Multinomial below the opset they came with: uniform draws, compared."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from onnxreduce_cli.steps.births import born, reduced, unsqueezed
from onnxreduce_cli.steps.casts import HALVES, cast
from onnxreduce_cli.steps.context import Context


def _uniform(context: Context, shaped: str, elem_type: int) -> str:
    """Random numbers in [0, 1) in the shape of a tensor, with the node's seed."""
    seed = context.value("seed")
    seeded = None if seed is None else helper.make_attribute("seed", float(seed))
    return context.emit("RandomUniformLike", [shaped], "drawn", dtype=elem_type, seed=seeded)


def _wide(context: Context) -> tuple[str, int]:
    """The node's input in a dtype to draw in, and that dtype."""
    data = context.input(0)
    given = context.need_elem_type(data, "random numbers are drawn in it")
    if given in HALVES:
        return cast(context, data, TensorProto.FLOAT), TensorProto.FLOAT
    return data, given


@born("Bernoulli", 15, "uniform random numbers that are less than the probabilities")
def bernoulli(context: Context) -> None:
    """``Bernoulli(p)`` becomes ``Cast(Less(RandomUniformLike(p), p))``."""
    given = context.need_elem_type(context.input(0), "the result has it")
    data, working = _wide(context)
    hits = context.emit("Less", [_uniform(context, data, working), data], "hits")
    to = context.value("dtype") or given
    if to == TensorProto.BOOL:
        context.replace("Identity", [hits], keep=())
    else:
        context.replace("Cast", [hits], keep=(), to=to)


@born("Multinomial", 7, "uniform random numbers, and how many cumulated probabilities they reach")
def multinomial(context: Context) -> None:
    """``Multinomial<sample_size=n>(x)`` becomes a count of the classes but the last whose
    ``CumSum(Softmax(x))`` is not above a random number, for n numbers in each row.
    """
    context.far = 13
    data, working = _wide(context)
    samples = context.value("sample_size", 1)
    shares = context.emit("Softmax", [data], "shares", axis=1)
    upto = context.emit("CumSum", [shares, context.array(np.array(1), "axis")], "upto")
    bounds = [context.array([n], "bound") for n in (0, -1, 1)]
    upto = unsqueezed(context, context.emit("Slice", [upto, *bounds], "limits"), [1])
    first = context.array(np.zeros(samples, np.int64), "first")
    shaped = context.emit("Gather", [data, first], "shaped", axis=1)
    drawn = unsqueezed(context, _uniform(context, shaped, working), [2])
    below = context.emit("Less", [drawn, upto], "below")
    reached = cast(context, context.emit("Not", [below], "reached"), TensorProto.FLOAT)
    count = reduced(context, "ReduceSum", reached, [2], keep=False)
    context.replace("Cast", [count], keep=(), to=context.value("dtype", TensorProto.INT32))
