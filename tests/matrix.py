"""The matrix of the Reduce and Softmax families: its cases, the models, what is right and allowed.

Cases are strata: every operator, every pair of its definitions, every way to give the axes and
every knowledge of the shape; within a stratum the rest is drawn with a fixed seed.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.executor import oracle
from tests.steps.checklist import newest_declared
from tests.support import least_ir_version

REDUCE = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
)
SOFTMAX = ("Softmax", "LogSoftmax", "Hardmax")
NEWEST = newest_declared()

#: How the axes reach the node. The first three where they are an attribute.
ATTRIBUTE_FORMS = ("attribute", "attribute in a branch", "attribute reference")
INPUT_FORMS = (
    "initializer",
    "Constant",
    "computed",
    "outer initializer",
    "outer Constant",
    "run time",
    "outer run time",
    "Constant in a function",
    "reference in a function",
    "argument of a function",
)
SHAPES = ((2, 3, 4), (2, 0, 3), (0, 2), (5,), (), (3, 1, 2), (1, 1))
KNOWLEDGE = ("known", "symbolic", "unknown")
VALUES = ("plain", "special", "zeros")

_DTYPES = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "int8": np.int8,
    "uint8": np.uint8,
    "int32": np.int32,
    "int64": np.int64,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "bool": np.bool_,
}


@dataclass(frozen=True)
class Case:
    """One model of one node, with what to feed it.

    Attributes:
        axes: None for none given; Softmax and its like have one axis or None.
        form: how the axes reach the node.
        knowledge: what the model tells of the data's shape.
    """

    op: str
    source: int
    target: int
    dtype: str
    shape: tuple[int, ...]
    values: str
    axes: tuple[int, ...] | None
    keepdims: int | None
    noop: int | None
    form: str
    knowledge: str

    @property
    def at_run_time(self) -> bool:
        return self.form in ("run time", "outer run time")


def versions(op: str) -> list[int]:
    return sorted(
        schema.since_version
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.name == op and schema.domain == "" and schema.since_version <= NEWEST
    )


def definition_pairs(op: str) -> Iterator[tuple[range, range]]:
    """Every ordered pair of definitions, each as the opsets that read it."""
    since = [*versions(op), NEWEST + 1]
    spans = [range(a, b) for a, b in itertools.pairwise(since)]
    return itertools.permutations(spans, 2)


def dtypes(op: str, opset: int) -> list[str]:
    allowed = onnx.defs.get_schema(op, opset).inputs[0].types
    return sorted(kind[len("tensor(") : -1] for kind in allowed)


def has_axes_input(op: str, opset: int) -> bool:
    return op in REDUCE and len(onnx.defs.get_schema(op, opset).inputs) > 1


def cases(op: str, per_stratum: int) -> Iterator[Case]:
    """The cases of one operator: `per_stratum` draws for each stratum, all different."""
    made: set[Case] = set()
    draw = random.Random(op)
    for sources, targets in definition_pairs(op):
        forms = INPUT_FORMS if has_axes_input(op, sources[0]) else ATTRIBUTE_FORMS
        if op in SOFTMAX:
            forms = ATTRIBUTE_FORMS
        for form, knowledge in itertools.product(forms, KNOWLEDGE):
            for _ in range(per_stratum):
                source = draw.choice(sources)
                case = Case(
                    op,
                    source,
                    draw.choice(targets),
                    draw.choice(dtypes(op, source)),
                    shape := draw.choice(SHAPES),
                    draw.choice(VALUES),
                    *(_softmax_axes if op in SOFTMAX else _reduce_axes)(
                        draw, shape, sources[0], form
                    ),
                    form=form,
                    knowledge=knowledge,
                )
                if case not in made and _is_valid(case):
                    made.add(case)
                    yield case


def _reduce_axes(draw: random.Random, shape: tuple[int, ...], since: int, form: str) -> Any:
    rank = len(shape)
    choices: list[tuple[int, ...] | None] = [()]
    if form in ("attribute", "attribute in a branch", "initializer", "run time"):
        choices.append(None)
    if rank:
        choices += [(rank - 1,), (0,), tuple(range(rank))]
        if since >= 11:
            choices += [(-1,), (-rank,), tuple(range(-rank, 0))]
    if rank > 2:
        choices += [(0, 2), (2, 0)]
        choices += [(0, -1), (-1, -3)] if since >= 11 else []
    has_noop = form in INPUT_FORMS
    return (
        draw.choice(choices),
        draw.choice((None, 0, 1)),
        draw.choice((None, 0, 1)) if (has_noop) else None,
    )


def _softmax_axes(draw: random.Random, shape: tuple[int, ...], since: int, form: str) -> Any:
    rank = len(shape)
    choices: list[tuple[int, ...] | None] = [(axis,) for axis in range(rank)]
    if since >= 11:
        choices += [(axis,) for axis in range(-rank, 0)]
    if form != "attribute reference":
        choices.append(None)
    return (draw.choice(choices) if choices else None), None, None


def _is_valid(case: Case) -> bool:
    """Whether there is such a model: an axis needs its dimension, an input its value."""
    if case.op in SOFTMAX:
        return len(case.shape) > (case.axes is None and case.source < 13)
    return case.axes is not None or not case.at_run_time


# Models


def data_of(case: Case) -> np.ndarray[Any, Any]:
    return _data(case.op, case.dtype, case.shape, case.values)


@functools.cache
def _data(op: str, dtype: str, shape: tuple[int, ...], values: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng([len(op), len(dtype), *shape])
    kind = np.dtype(_DTYPES[dtype])
    size = math.prod(shape)
    if kind.kind == "b":
        flat = rng.integers(0, 2, size).astype(bool)
    elif kind.kind in "iu":
        low = 0 if kind.kind == "u" or op in ("ReduceLogSum", "ReduceLogSumExp") else -9
        flat = rng.integers(low, 12, size).astype(kind)
        if values == "special" and op in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd"):
            info = np.iinfo(kind)
            flat = rng.integers(info.min, info.max, size, kind, endpoint=True)
    else:
        real = rng.normal(0, 2, size)
        if op == "ReduceLogSum":
            real = np.abs(real)  # The logarithm of a sum that cancels has no digits left.
        if op == "Hardmax":
            real = np.round(real)
        elif values == "special" and size > 1:
            real[rng.integers(0, size, 3)] = [-np.inf, np.inf, -0.0]
            if size > 4:
                real[rng.integers(0, size)] = np.nan
        flat = real.astype(kind)
    if values == "zeros":
        flat = np.zeros_like(flat)
    return np.asarray(flat.reshape(shape))


def build(case: Case) -> tuple[ModelProto, dict[str, np.ndarray[Any, Any]]]:
    """The case's model and its inputs."""
    data = data_of(case)
    feeds: dict[str, np.ndarray[Any, Any]] = {"x": data}
    shape, _ = expected(case)
    symbolic = case.knowledge != "known"
    dims = [f"d{i}" if symbolic and i != 1 else n for i, n in enumerate(case.shape)]
    elem_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    graph = onnx.GraphProto(name="graph")
    graph.input.append(helper.make_tensor_value_info("x", elem_type, dims))
    shown = [f"r{i}" for i, _ in enumerate(shape)] if symbolic or case.at_run_time else shape
    graph.output.append(helper.make_tensor_value_info("y", elem_type, shown))
    name = "x"
    if case.knowledge == "unknown":
        name = "of_some_rank"
        graph.initializer.append(numpy_helper.from_array(np.array(1, np.int64), "once"))
        graph.node.append(_through_loop(elem_type))
    functions: list[onnx.FunctionProto] = []
    if "function" in case.form or case.form == "attribute reference":
        functions.append(_function(case, graph, name))
    else:
        _inline(case, graph, name, feeds)
    if case.form.startswith("outer") or case.form == "attribute in a branch":
        graph.input.append(helper.make_tensor_value_info("condition", TensorProto.BOOL, []))
        feeds["condition"] = np.array(True)
    imports = [helper.make_opsetid("", case.source)]
    if functions:
        imports.append(helper.make_opsetid("local", 1))
    ir_version = max(8 if functions else 4, least_ir_version(case.source))
    model = helper.make_model(
        graph, opset_imports=imports, functions=functions, ir_version=ir_version
    )
    return model, feeds


def _through_loop(elem_type: int) -> NodeProto:
    """A Loop of one round: shape inference does not look through it."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["still"]),
            helper.make_node("Identity", ["carried"], ["passed"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("round", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("carried", elem_type, None),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("passed", elem_type, None),
        ],
    )
    return helper.make_node("Loop", ["once", "", "x"], ["of_some_rank"], body=body)


def _node(case: Case, inputs: list[str], output: str, axes: Any = None) -> NodeProto:
    node = helper.make_node(case.op, inputs, [output], name="node")
    for name, value in (("keepdims", case.keepdims), ("noop_with_empty_axes", case.noop)):
        if value is not None:
            node.attribute.append(helper.make_attribute(name, value))
    if isinstance(axes, AttributeProto):
        node.attribute.append(axes)
    elif axes is not None and case.op in SOFTMAX:
        node.attribute.append(helper.make_attribute("axis", axes[0]))
    elif axes is not None:
        ints = AttributeProto.INTS
        node.attribute.append(helper.make_attribute("axes", list(axes), attr_type=ints))
    return node


def _inline(case: Case, graph: Any, name: str, feeds: dict[str, Any]) -> None:
    inputs = [name]
    attribute = None
    if case.form in ("attribute", "attribute in a branch"):
        attribute = case.axes
    elif case.axes is not None:
        inputs.append("axes")
        array = np.array(case.axes, np.int64)
        if case.at_run_time:
            # The length is told or not; both must do.
            length = len(case.axes) if case.keepdims == 1 else "length"
            graph.input.append(helper.make_tensor_value_info("axes", TensorProto.INT64, [length]))
            feeds["axes"] = array
        elif case.form in ("initializer", "outer initializer"):
            graph.initializer.append(numpy_helper.from_array(array, "axes"))
        elif case.form in ("Constant", "outer Constant"):
            graph.node.append(_constant(case, array))
        else:
            _computed(case, graph, array)
    if not (case.form.startswith("outer") or case.form == "attribute in a branch"):
        graph.node.append(_node(case, inputs, "y", attribute))
        return
    branches = {}
    for branch in ("then_branch", "else_branch"):
        inner = onnx.GraphProto(name=branch, node=[_node(case, inputs, "out", attribute)])
        inner.output.append(onnx.ValueInfoProto())
        inner.output[0].CopyFrom(graph.output[0])
        inner.output[0].name = "out"
        branches[branch] = inner
    graph.node.append(helper.make_node("If", ["condition"], ["y"], name="choice", **branches))


def _constant(case: Case, array: np.ndarray[Any, Any]) -> NodeProto:
    if case.keepdims == 0 and array.size:
        return helper.make_node("Constant", [], ["axes"], value_ints=array.tolist())
    return helper.make_node("Constant", [], ["axes"], value=numpy_helper.from_array(array))


def _computed(case: Case, graph: Any, array: np.ndarray[Any, Any]) -> None:
    """The axes through a chain of operators, one of several."""

    def add(name: str, value: Any) -> str:
        graph.initializer.append(numpy_helper.from_array(np.asarray(value, np.int64), name))
        return name

    nodes = graph.node
    # Constant by itself, but in two cases only where the shape is known.
    recipe = (len(case.shape) + len(case.axes or ()) + case.source) % 4
    if recipe == 0:
        twice = add("twice", array * 2)
        nodes.append(helper.make_node("Sub", [twice, add("once_more", array)], ["axes"]))
    elif recipe == 1:
        add("given", array)
        nodes.append(helper.make_node("Cast", ["given"], ["narrow"], to=TensorProto.INT32))
        nodes.append(helper.make_node("Identity", ["narrow"], ["same"]))
        nodes.append(helper.make_node("Cast", ["same"], ["axes"], to=TensorProto.INT64))
    elif recipe == 2 and array.size and np.all(np.diff(array) == 1):
        bounds = [add("start", array[0]), add("limit", array[-1] + 1), add("delta", 1)]
        nodes.append(helper.make_node("Range", bounds, ["axes"]))
    elif case.knowledge != "unknown" and array.size:
        # Counted from the rank, which is the length of the shape.
        nodes.append(helper.make_node("Shape", ["x"], ["shape"]))
        nodes.append(helper.make_node("Shape", ["shape"], ["rank"]))
        parts = []
        for index, axis in enumerate(array.tolist()):
            offset = add(f"offset_{index}", [axis % len(case.shape) - len(case.shape)])
            nodes.append(helper.make_node("Add", ["rank", offset], [f"part_{index}"]))
            parts.append(f"part_{index}")
        nodes.append(helper.make_node("Concat", parts, ["axes"], axis=0))
    else:
        add("given", array)
        nodes.append(helper.make_node("Identity", ["given"], ["axes"]))


def _function(case: Case, graph: Any, name: str) -> onnx.FunctionProto:
    function = onnx.FunctionProto(name="Apply", domain="local", input=["a"], output=["b"])
    function.opset_import.append(helper.make_opsetid("", case.source))
    call = helper.make_node("Apply", [name], ["y"], domain="local", name="call")
    array = np.array(case.axes if case.axes is not None else (), np.int64)
    softmax = case.op in SOFTMAX
    ints = AttributeProto.INTS
    if case.form == "attribute reference":
        field = "axis" if softmax else "axes"
        reference = AttributeProto(name=field, ref_attr_name="given")
        reference.type = AttributeProto.INT if softmax else ints
        function.attribute.append("given")
        function.node.append(_node(case, ["a"], "b", reference))
        given: Any = array.tolist()
        call.attribute.append(
            helper.make_attribute("given", given[0])
            if softmax
            else helper.make_attribute("given", given, attr_type=ints)
        )
    elif case.form == "Constant in a function":
        function.node.append(_constant(case, array))
        function.node.append(_node(case, ["a", "axes"], "b"))
    elif case.form == "reference in a function":
        constant = NodeProto(op_type="Constant", output=["axes"])
        constant.attribute.append(
            AttributeProto(name="value_ints", ref_attr_name="given", type=ints)
        )
        function.attribute.append("given")
        function.node.append(constant)
        function.node.append(_node(case, ["a", "axes"], "b"))
        call.attribute.append(helper.make_attribute("given", array.tolist(), attr_type=ints))
    else:
        function.input.append("axes")
        function.node.append(_node(case, ["a", "axes"], "b"))
        graph.initializer.append(numpy_helper.from_array(array, "axes"))
        call.input.append("axes")
    graph.node.append(call)
    return function


# What is right


def expected(case: Case) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of the result and its values, by the definitions' own words."""
    if case.op in SOFTMAX:
        axis = case.axes[0] if case.axes else (1 if case.source < 13 else -1)
        return _softmax(case.op, case.dtype, case.shape, case.values, axis, case.source < 13)
    keepdims = 1 if case.keepdims is None else case.keepdims
    return _reduce(
        case.op, case.dtype, case.shape, case.values, case.axes, keepdims, case.noop or 0
    )


@functools.cache
def _reduce(
    op: str,
    dtype: str,
    shape: tuple[int, ...],
    values: str,
    axes: tuple[int, ...] | None,
    keepdims: int,
    noop: int,
) -> tuple[tuple[int, ...], list[Any]]:
    with np.errstate(all="ignore"):
        return oracle.reduce(op, _data(op, dtype, shape, values), axes, keepdims, noop)


@functools.cache
def _softmax(
    op: str, dtype: str, shape: tuple[int, ...], values: str, axis: int, coerce: bool
) -> tuple[tuple[int, ...], list[Any]]:
    with np.errstate(all="ignore"):
        return shape, oracle.normalise(op, _data(op, dtype, shape, values), axis, coerce)


def mismatch(case: Case, result: Any) -> str:
    """What is wrong with a result; empty if nothing is."""
    shape, values = expected(case)
    dtype = np.dtype(_DTYPES[case.dtype])
    if not isinstance(result, np.ndarray) or result.dtype != dtype or result.shape != shape:
        return f"{getattr(result, 'dtype', None)}{getattr(result, 'shape', None)} not {shape}"
    for got, right in zip(result.reshape(-1), values, strict=True):
        if right is None:
            continue
        if dtype.kind in "iub":
            same = int(got) == int(right)
        else:
            same = _close(case, float(got), float(right), dtype)
        if not same:
            return f"{got} instead of {right}"
    return ""


def _close(case: Case, got: float, right: float, dtype: np.dtype[Any]) -> bool:
    with np.errstate(all="ignore"):
        rounded = float(np.asarray(right).astype(dtype))
    if not math.isfinite(rounded):
        return got == rounded or (math.isnan(got) and math.isnan(rounded))
    # A few roundings; where terms cancel, of the terms' size.
    size = abs(right)
    if case.op in ("ReduceSum", "ReduceMean", "ReduceLogSumExp", "LogSoftmax"):
        size = max(size, 20.0)
    elif case.op == "ReduceLogSum":
        size = max(size, 2.0)
    return abs(got - right) <= 4 * float(ml_dtypes.finfo(dtype).eps) * size


# What is allowed


def may_block(case: Case) -> str:
    """Why this case may be blocked; empty where it must be converted."""
    if case.dtype == "bfloat16" and case.target < 13:
        return "bfloat16 below 13"
    if case.target < 7 and case.at_run_time:
        return "axes at run time below 7"
    if case.target < 7 and case.knowledge == "unknown":
        if case.op in SOFTMAX and case.source >= 11:
            return "Softmax of unknown rank below 7"
        signs = {axis < 0 for axis in case.axes or ()}
        if len(signs) > 1:
            return "axes from both ends of unknown rank below 7"
    return ""
