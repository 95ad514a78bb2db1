"""Bernoulli below opset 15, which introduced it: uniform draws, compared."""

from __future__ import annotations

from onnx import TensorProto, helper

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.steps.registry import introduced


def _uniform(context: Context, shaped: str, elem_type: int) -> Value:
    """Return random numbers in [0, 1), drawn with the node's seed.

    Args:
        context: the context of the node.
        shaped: a tensor of the shape that they get.
        elem_type: their dtype.
    """
    seed = context.value("seed")
    seeded = None if seed is None else helper.make_attribute("seed", float(seed))
    return context.op.RandomUniformLike(shaped, dtype=elem_type, seed=seeded)


def _probabilities(context: Context) -> tuple[str, int]:
    """Return the node's input in the dtype to draw in, and that dtype: float for half types."""
    data = context.input(0)
    elem_type = context.need_elem_type(data, "random numbers are drawn in it")
    if elem_type in HALVES:
        return cast(context, data, TensorProto.FLOAT), TensorProto.FLOAT
    return data, elem_type


@introduced("Bernoulli", 15, "uniform random numbers that are less than the probabilities")
def bernoulli(context: Context) -> None:
    """``Bernoulli(p)`` becomes ``Cast(Less(RandomUniformLike(p), p))``."""
    elem_type = context.need_elem_type(context.input(0), "the result has it")
    data, working = _probabilities(context)
    hits = context.op.Less(_uniform(context, data, working), data)
    to = context.value("dtype") or elem_type
    if to == TensorProto.BOOL:
        context.replace("Identity", [hits], keep=())
    else:
        context.replace("Cast", [hits], keep=(), to=to)
