"""What no trial shows: weights on which no output depends, and branches that are never taken."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, numpy_helper

from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.graph.values import is_float, numpy_dtype
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.verification.compare.values import Tolerance, compare_values
from onnxreduce_cli.verification.errors import CannotRunError, RunFailedError
from onnxreduce_cli.verification.inputs.node_use import OF_SHAPES
from onnxreduce_cli.verification.inputs.random_arrays import RandomArrays
from onnxreduce_cli.verification.running.isolated import open_isolated
from onnxreduce_cli.verification.running.single_node import input_info
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.value_graph import ValueGraph

Array = npt.NDArray[Any]

#: Of a model with more weights none is tried, as each takes a run.
_MOST_WEIGHTS = 256

_EXACT = Tolerance(exact=True)


def idle_weights(
    source: ModelSource, executor: str, feeds: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> list[str]:
    """Return the weights on which no output depends: with others in their place, every bit agrees.

    A weight is an initializer of several floats, or integers of 8 bits, whose elements some node on
    the way to an output uses; of one element it may be a bound that no value comes near.

    Args:
        source: the model.
        executor: what runs it.
        feeds: the inputs of each trial.
        names: the outputs.
    """
    model = source.whole()
    idle = dict(_weights(source, model, names))
    if not 0 < len(idle) <= _MOST_WEIGHTS:
        return []
    declared = {value.name for value in model.graph.input}
    model.graph.input.extend(
        input_info(name, array) for name, array in idle.items() if name not in declared
    )
    # Older models take nothing in the place of an initializer.
    model.ir_version = max(model.ir_version, 4)
    variable = ModelSource(model, source.label, base_dir=source.base_dir, generated=True)
    try:
        runner = open_isolated(variable, executor)
        for inputs in feeds:
            usual = runner.run(inputs, names)
            for name, array in list(idle.items()):
                for other in _others(array):
                    try:
                        found = runner.run({**inputs, name: other}, names)
                    except RunFailedError:
                        del idle[name]
                        break
                    if not all(compare_values(usual[n], found[n], _EXACT).agree for n in names):
                        del idle[name]
                        break
    except (CannotRunError, RunFailedError):
        return []
    return list(idle)


def fixed_branches(source: ModelSource) -> set[str]:
    """Return the If nodes whose condition is a constant, by what the NumPy executor calls them."""
    found = scopes(source.skeleton)
    facts = Facts(source.skeleton, found)
    return {
        node.name or node.output[0]
        for scope in found
        for node in scope.nodes
        if node.op_type == "If" and facts.constant(scope, node.input[0]) is not None
    }


def _weights(
    source: ModelSource, model: ModelProto, names: Sequence[str]
) -> Iterator[tuple[str, Array]]:
    """Yield the weights whose elements are used, by name."""
    graph = ValueGraph(source)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    sizes = {name for node in graph.nodes if node.op_type in OF_SHAPES for name in node.output}
    ends = sizes | set(weights)
    used = {end for name in names for end in graph.sources(name, ends)}
    for name, tensor in weights.items():
        if name not in used or tensor.data_location == TensorProto.EXTERNAL:
            continue
        if tensor.data_type == TensorProto.STRING or math.prod(tensor.dims) <= 1:
            continue
        dtype = numpy_dtype(tensor.data_type)
        if is_float(dtype) or dtype in (np.int8, np.uint8):
            yield name, numpy_helper.to_array(tensor)


def _others(array: Array) -> Iterator[Array]:
    """Yield other values of a weight, on both sides of each element."""
    if not is_float(array.dtype):
        yield np.invert(array)
        return
    values = array.astype(np.float64)
    scale = float(np.max(np.abs(values), where=np.isfinite(values), initial=0.0)) or 1.0
    moved = RandomArrays(0).standard_normal(array.shape) * scale
    for other in (values + moved, values - moved):
        yield other.astype(array.dtype)
