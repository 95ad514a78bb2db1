"""Draws options that change a model as a whole: a runtime, dtypes, dimensions, operators."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, helper

from onnxreduce_cli import schemas
from onnxreduce_cli.idioms.registry import IDIOMS
from onnxreduce_cli.model.graph.scope import with_inner
from onnxreduce_cli.model.graph.values import dtype_name, numpy_dtype, parse_dtype
from tests.idioms.written import X, plain_patterns, written
from tests.random_graphs.graphs import COMPOSITE, NEWEST, Case, cases

#: Runtimes that differ most in what they take.
RUNTIMES = ("onnxruntime==1.8.1", "opencv==4.6.0", "openvino==2022.1")

#: Changes of a dtype; a narrower one only for values that it can hold.
_WIDER = {"float": "double"}
_NARROWER = ({"double": "float"}, {"float": "float16"}, {"float": "bfloat16"})
_LARGEST_NARROWED = 1000.0

#: Dtypes of inputs and outputs alone, by their own.
_OUTER = {
    "float": ("double", "float16"),
    "double": ("float",),
    "int64": ("int32", "int8", "float"),
    "int32": ("int64",),
    "bool": ("uint8",),
}

_KINDS = (
    "runtime",
    "dtypes",
    "int32",
    "io_dtypes",
    "dims",
    "fold",
    "allow_ops",
    "contract",
    "expand",
)

_PATTERNS = [pattern for idiom in IDIOMS for pattern in plain_patterns(idiom)]


@st.composite
def whole_model_cases(draw: st.DrawFn) -> Case:
    """Random models, each with one option that changes more than an opset."""
    if draw(st.integers(0, 4)) == 0:
        return draw(near_misses())
    case = draw(cases())
    options: dict[str, Any] = {"emulate": True}
    target: int | None = case.target
    kind = draw(st.sampled_from(_KINDS))
    if kind == "runtime":
        options["runtime"], target = draw(st.sampled_from(RUNTIMES)), None
    elif kind == "dtypes" and math.isfinite(case.largest):
        narrower = _NARROWER if case.largest <= _LARGEST_NARROWED else ()
        options["dtypes"] = draw(st.sampled_from((_WIDER, *narrower)))
        options["keep_interface"] = draw(st.booleans())
        own = sorted({node.op_type for node in with_inner(case.model.graph.node)})
        if own:
            options["keep_dtype"] = draw(st.lists(st.sampled_from(own), max_size=2, unique=True))
        target = own_opset(case.model)
    elif kind == "int32":
        options["dtypes"] = {"int64": "int32"}
        options["keep_interface"] = draw(st.booleans())
        options["assume_ranges"] = _ranges(case)
        target = own_opset(case.model)
    elif kind == "io_dtypes":
        options["io_dtypes"] = _outer_dtypes(draw, case)
        case = dataclasses.replace(case, feeds=_fitting(case.feeds, options["io_dtypes"]))
    elif kind == "dims":
        options["dims"] = _dims(draw, case)
    elif kind == "fold":
        options["fold"] = True
    elif kind == "allow_ops":
        assert target is not None
        options["allow_ops"] = _allowed(draw, case.model, target)
    elif kind == "contract":
        options["contract"], target = ["all"], draw(st.integers(13, NEWEST))
    else:
        options["expand"] = draw(st.lists(st.sampled_from(COMPOSITE), min_size=1, unique=True))
    return dataclasses.replace(case, target=target, options=options)


def own_opset(model: ModelProto) -> int:
    """The opset of the default domain that a drawn model imports."""
    version: int = model.opset_import[0].version
    return version


def _outer_dtypes(draw: st.DrawFn, case: Case) -> dict[str, str]:
    """Other dtypes of some inputs and outputs; no default of an input can change."""
    graph = case.model.graph
    defaults = {tensor.name for tensor in graph.initializer}
    found = {}
    for item in (*graph.input, *graph.output):
        known = _OUTER.get(dtype_name(item.type.tensor_type.elem_type), ())
        if known and item.name not in defaults and draw(st.booleans()):
            found[item.name] = draw(st.sampled_from(known))
    return found


def _ranges(case: Case) -> dict[str, tuple[int, int]]:
    """The ranges of what is fed in int64."""
    fed = {n: array for n, array in case.feeds.items() if array.dtype == np.int64 and array.size}
    return {name: (int(array.min()), int(array.max())) for name, array in fed.items()}


def _fitting(feeds: dict[str, Any], dtypes: Mapping[str, str]) -> dict[str, Any]:
    """What is fed, as far as it can be fed in other dtypes."""
    with np.errstate(all="ignore"):
        return {
            name: array.astype(numpy_dtype(parse_dtype(dtypes[name]))).astype(array.dtype)
            if name in dtypes
            else array
            for name, array in feeds.items()
        }


def _dims(draw: st.DrawFn, case: Case) -> dict[str, int]:
    """Sizes of some of the inputs' open dimensions, as they are fed."""
    found = {}
    for item in case.model.graph.input:
        fed = case.feeds.get(item.name)
        for axis, dim in enumerate(item.type.tensor_type.shape.dim):
            open_ = fed is not None and fed.shape[axis] and not dim.HasField("dim_value")
            if fed is not None and open_ and draw(st.booleans()):
                found[dim.dim_param or f"{item.name}[{axis}]"] = fed.shape[axis]
    return found


def _allowed(draw: st.DrawFn, model: ModelProto, opset: int) -> list[str]:
    """All operators of an opset, but for one or two of the model's."""
    there = {item for item in schemas.operators() if schemas.exists(item, opset)}
    own = sorted(there & {node.op_type for node in with_inner(model.graph.node)})
    left_out = draw(st.lists(st.sampled_from(own), max_size=2)) if own else []
    return sorted(there - {*left_out})


@st.composite
def near_misses(draw: st.DrawFn) -> Case:
    """An idiom as exporters write it, with up to two differences, which may make it another one."""
    pattern = draw(st.sampled_from(_PATTERNS))
    model = written(pattern, keepdims=draw(st.integers(0, 1)))
    for _ in range(draw(st.integers(0, 2))):
        _alter(draw, model)
    model = _with_output_types(model)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    feeds = {
        item.name: np.asarray(rng.normal(size=_shape(item)), np.float32)
        for item in model.graph.input
    }
    options = {"emulate": True, "contract": ["all"]}
    target = draw(st.integers(13, NEWEST))
    largest = float(np.abs(X).max())
    return Case(model, feeds, target, draw(st.booleans()), True, options, largest)


def _with_output_types(model: ModelProto) -> ModelProto:
    """The model with the types of its outputs, as far as they can be inferred."""
    outputs = [item.name for item in model.graph.output]
    for item in model.graph.output:
        item.ClearField("type")
    inferred = onnx.shape_inference.infer_shapes(model)
    assert outputs == [item.name for item in inferred.graph.output]
    return inferred


def _shape(item: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value for dim in item.type.tensor_type.shape.dim]


def _alter(draw: st.DrawFn, model: ModelProto) -> None:
    """Change a constant, an attribute, an edge, the operator of a node, or what is an output."""
    graph = model.graph
    node: NodeProto = draw(st.sampled_from(list(graph.node)))
    kind = draw(st.sampled_from(("constant", "attribute", "edge", "swap", "operator", "output")))
    if kind == "constant" and graph.initializer:
        tensor = draw(st.sampled_from(list(graph.initializer)))
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.int64:
            changed = np.array(draw(st.sampled_from(([0], [1], [-2], [1, 2]))), np.int64)
        else:
            factor = draw(st.sampled_from((-1.0, 0.0, 0.5, 1.01, 2.0)))
            changed = np.asarray(array * np.float32(factor), np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(changed, tensor.name))
    elif kind == "attribute" and node.attribute:
        attribute = draw(st.sampled_from(list(node.attribute)))
        if attribute.type == onnx.AttributeProto.INT:
            attribute.i += draw(st.sampled_from((-1, 1)))
        elif attribute.type == onnx.AttributeProto.FLOAT:
            attribute.f *= draw(st.sampled_from((0.5, -1.0, 1.01)))
    elif kind == "edge" and node.input:
        place = draw(st.integers(0, len(node.input) - 1))
        node.input[place] = draw(st.sampled_from(_before(graph, node)))
    elif kind == "swap" and len(node.input) > 1:
        first, second = node.input[:2]
        node.input[0], node.input[1] = second, first
    elif kind == "operator":
        node.op_type = draw(st.sampled_from(_siblings(node.op_type)))
    elif kind == "output" and node.output[0] not in {item.name for item in graph.output}:
        graph.output.append(helper.make_tensor_value_info(node.output[0], 1, None))


def _before(graph: onnx.GraphProto, node: NodeProto) -> list[str]:
    """The values that a node may read."""
    found = [item.name for item in (*graph.input, *graph.initializer)]
    for item in graph.node:
        if item.output[0] == node.output[0]:
            break
        found += item.output
    return found


def _siblings(op_type: str) -> Sequence[str]:
    """Operators that are easily taken for one."""
    groups = (
        ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"),
        ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL1", "ReduceL2", "ReduceSumSquare"),
        ("Exp", "Log", "Sqrt", "Abs", "Neg", "Erf", "Tanh", "Sigmoid", "Reciprocal", "Softplus"),
        ("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"),
    )
    return next((group for group in groups if op_type in group), (op_type,))
