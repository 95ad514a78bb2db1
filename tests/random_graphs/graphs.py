"""Draws whole models, with what to feed them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import ModelProto, helper

from tests.random_graphs import family
from tests.random_graphs.drawing import Array, Drawing, UnsuitableError, model_of
from tests.random_graphs.ordinary import ORDINARY, written_out
from tests.steps.checklist import newest_declared
from tests.support import least_ir_version

NEWEST = newest_declared()
#: Operators that are written out where that is wanted.
COMPOSITE = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "Softmax",
    "LogSoftmax", "LayerNormalization", "RMSNormalization", "Gelu", "HardSwish", "Mish", "Swish",
    "Celu",
)  # fmt: skip
#: The least opset at which what was written out is put together again here.
FIRST_CONTRACTED = 13
FAMILY = (family.reduction, family.reduction, family.softmax, family.in_function, written_out)


@dataclass(frozen=True)
class Case:
    """A model, what to feed it, and where to convert it.

    Attributes:
        model: a model.
        feeds: by the names of its inputs, and of the initializers that the caller overrides.
        target: the opset to reach; None for the one that is best for a runtime.
        check: whether to convert with the check of each site.
        sized: whether no value has a size of 0, of which ONNX Runtime gets some shapes wrong.
        options: more of what `convert` is told.
        largest: the largest number among its values; infinite where one is not finite.
    """

    model: ModelProto
    feeds: dict[str, Array]
    target: int | None
    check: bool
    sized: bool
    options: dict[str, Any]
    largest: float


def add_nodes(drawing: Drawing, count: int) -> None:
    """Draw so many nodes, or fewer where some do not suit; each second is of the family."""
    for _ in range(count):
        makers = FAMILY if drawing.chance() else ORDINARY
        before = (
            len(drawing.nodes),
            len(drawing.initializers),
            len(drawing.inputs),
            len(drawing.pool),
        )
        try:
            drawing.choose(makers)(drawing)
        except UnsuitableError:
            nodes, initializers, inputs, pool = before
            for item in drawing.inputs[inputs:]:
                drawing.feeds.pop(item.name, None)
            del drawing.nodes[nodes:], drawing.initializers[initializers:]
            del drawing.inputs[inputs:], drawing.pool[pool:]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Valid models of some nodes at any opset and IR version that goes with it."""
    opset = draw(st.integers(1, NEWEST))
    least = min(least_ir_version(opset), onnx.IR_VERSION)
    ir_version = draw(st.integers(3 if opset < 9 else least, onnx.IR_VERSION))
    drawing = Drawing(draw, opset, ir_version)
    add_nodes(drawing, draw(st.integers(1, 8)))
    target = draw(st.integers(1, NEWEST))
    sized = all(known.array.size for known in drawing.pool)
    check, options = draw(st.booleans()), _options(draw, drawing, target)
    largest = max((_largest(known.array) for known in drawing.pool), default=0.0)
    return Case(_model(drawing), drawing.feeds, target, check, sized, options, largest)


def _largest(array: Array) -> float:
    doubles = array.astype(np.float64)
    return float(np.abs(doubles).max(initial=0.0)) if np.isfinite(doubles).all() else math.inf


def _options(draw: st.DrawFn, drawing: Drawing, target: int) -> dict[str, Any]:
    """What of its own a model is to become: written out, or in place of what was written out."""
    options: dict[str, Any] = {"emulate": draw(st.sampled_from((True, True, True, False)))}
    there = {node.op_type for node in drawing.nodes}
    composite = [op_type for op_type in COMPOSITE if op_type in there]
    if composite and draw(st.booleans()):
        options["expand"] = [draw(st.sampled_from(composite))]
    if target >= FIRST_CONTRACTED and draw(st.booleans()):
        options["contract"] = ["all"]
    return options


def _model(drawing: Drawing) -> ModelProto:
    read = {name for node in drawing.nodes for name in node.input}
    given = {name for node in drawing.nodes for name in node.output}
    results = [known for known in drawing.pool if known.name in given and known.name not in read]
    outputs = [
        helper.make_tensor_value_info(
            known.name,
            helper.np_dtype_to_tensor_dtype(known.array.dtype),
            [f"d{index}_{axis}" for axis in range(known.array.ndim)],
        )
        for index, known in enumerate(results)
    ]
    graph = helper.make_graph(drawing.nodes, "graph", drawing.inputs, outputs, drawing.initializers)
    return model_of(graph, drawing.opset, drawing.functions, drawing.ir_version)
