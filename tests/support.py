"""Running models before and after a conversion, for all tests."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    TensorProto,
    TypeProto,
    helper,
    parser,
)

import onnxreduce_cli
from onnxreduce_cli import executor, schemas
from onnxreduce_cli.api.file_conversion import Converted
from onnxreduce_cli.emit.builder import fill
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.executor import ExecutionError
from onnxreduce_cli.model.types.facts import admit

ort.set_default_logger_severity(4)

#: Relative tolerance by dtype, for steps that compute in another order than before.
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-13}


class CannotRunError(Exception):
    """No executor has a kernel for some node of the model."""


def model(text: str) -> ModelProto:
    """A model from ONNX's textual form, checked in full."""
    found = parser.parse_model(text)
    onnx.checker.check_model(found, full_check=True)
    return found


def without_times(found: Any) -> Any:
    """The data of a report without what differs from one run to the next."""
    if isinstance(found, Mapping):
        return {key: without_times(item) for key, item in found.items() if key != "seconds"}
    return [without_times(item) for item in found] if isinstance(found, list) else found


def as_converted(plan: onnxreduce_cli.Plan) -> Converted:
    """A plan as the conversion of a file whose checks did not run, for what is printed of it."""
    return Converted("m.onnx", "m.onnx", plan)


def conversions(found: ModelProto) -> list[Conversion]:
    """The conversion of a model to each opset from 1 on, none applied; they share its facts."""
    facts = admit(found)
    opsets = range(1, schemas.newest_opset() + 1)
    return [Conversion(found, opset, facts=facts) for opset in opsets]


def several_times(found: ModelProto, times: int) -> ModelProto:
    """A model with each node of its graph so many times side by side, of the same inputs.

    All values and nodes have names of their own.
    """
    made = {name for node in found.graph.node for name in node.output} - {""}
    copy = ModelProto()
    copy.CopyFrom(found)
    for number in range(1, times):
        graph = GraphProto(
            node=found.graph.node, value_info=found.graph.value_info, output=found.graph.output
        )
        _rename(graph, {name: f"{name}:{number}" for name in made})
        for node in graph.node:
            if node.name:
                node.name += f":{number}"
        copy.graph.node.extend(graph.node)
        copy.graph.value_info.extend([info for info in graph.value_info if ":" in info.name])
        copy.graph.output.extend([info for info in graph.output if ":" in info.name])
    return copy


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    for info in (*graph.value_info, *graph.output):
        info.name = names.get(info.name, info.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _rename(attribute.g, names)


def run(found: ModelProto, inputs: Mapping[str, Any], *, in_numpy: bool = False) -> dict[str, Any]:
    """Run a model: in ONNX Runtime, optimisations off, or else in the NumPy executor.

    Args:
        found: the model.
        inputs: by name; those that the model does not have are left out.
        in_numpy: use the NumPy executor at once: for what ONNX Runtime's older versions get wrong,
            such as reductions over no axes and of nothing.
    """
    outputs = None if in_numpy else _in_ort(found, inputs)
    if outputs is not None:
        return outputs
    known = {value.name for value in found.graph.input}
    return executor.run(found, {name: value for name, value in inputs.items() if name in known})


class Expected:
    """What a model gives on some inputs, for others to be compared with in the same executor.

    Between executors the last bits differ, and from one processor to another; what a deep model
    makes of that is not the conversion's doing.
    """

    def __init__(self, source: ModelProto, inputs: Mapping[str, Any]) -> None:
        """Run the source; raises `ExecutorError` where neither executor can."""
        self._source = source
        self._inputs = inputs
        self._in_ort = _in_ort(source, inputs)
        if self._in_ort is None:
            assert self._in_numpy is not None

    @functools.cached_property
    def _in_numpy(self) -> dict[str, Any]:
        try:
            return run(self._source, self._inputs, in_numpy=True)
        except ExecutionError:
            if self._in_ort is None:
                raise
            # Older definitions forbid some of what ONNX Runtime takes, such as negative axes.
            return self._in_ort

    def beside(self, result: ModelProto) -> Iterator[tuple[str, Any, Any]]:
        """For each output its name, what the source gives, and what another model gives."""
        expected, actual = self._in_ort, None
        if expected is not None:
            actual = _in_ort(result, self._inputs)
        if actual is None:
            expected, actual = self._in_numpy, run(result, self._inputs, in_numpy=True)
        assert list(expected) == list(actual)
        for name in expected:
            yield name, expected[name], actual[name]


def _in_ort(found: ModelProto, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """What ONNX Runtime gives by name; None where it lacks a kernel."""
    names = [output.name for output in found.graph.output]
    try:
        return dict(zip(names, run_ort(found, inputs), strict=True))
    except CannotRunError:
        return None


def run_ort(found: ModelProto, inputs: Mapping[str, Any]) -> list[Any]:
    """Run a model in ONNX Runtime; raises `CannotRunError` where it lacks a kernel."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(
            found.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        wanted = {value.name for value in session.get_inputs()}
        wanted |= {value.name for value in session.get_overridable_initializers()}
        feeds = {name: value for name, value in inputs.items() if name in wanted}
        return session.run(None, feeds)
    except Exception as error:
        if any(text in str(error) for text in _UNSUPPORTED):
            raise CannotRunError(str(error)) from error
        raise


#: What ONNX Runtime says where it lacks something, or where what it puts in itself is wrong.
_UNSUPPORTED = (
    "NOT_IMPLEMENTED",
    "Could not find an implementation",
    "is under development",
    "Unsupported model IR version",
    "is not a registered function/op",
    "Opset ",
    "is not defined for empty set",
    "Failed to construct locale",
    "_inlfunc_",
    "InsertedPrecisionFreeCast",
    "No corresponding Numpy type",
    "can't be converted to MLDataType",
)


def converts(
    source: ModelProto,
    opset: int,
    inputs: Mapping[str, Any],
    *more: Mapping[str, Any],
    exact: bool = False,
    in_numpy: bool = False,
    **options: Any,
) -> ModelProto:
    """Convert a model, check it in full, run it before and after, compare; the result.

    Args:
        source: the model.
        opset: the opset to reach.
        inputs: a set of inputs; further ones in `more`.
        exact: every bit must agree; else floats may differ by rounding.
        in_numpy: run both in the NumPy executor; see `run`.
        options: for `onnxreduce_cli.convert`; emulations are wanted by default.
    """
    before = source.SerializeToString()
    # Not by its own check too: whoever runs both models here needs none.
    result = onnxreduce_cli.convert(source, opset, **{"check": False, "emulate": True, **options})
    assert source.SerializeToString() == before, "the caller's model was touched"
    assert result.opset_import[0].version == opset
    onnx.checker.check_model(result, full_check=True)
    for feeds in (inputs, *more):
        expected = None if in_numpy else _in_ort(source, feeds)
        # What ONNX Runtime makes of the result tells nothing of a source that it does not take.
        actual = run(result, feeds, in_numpy=expected is None)
        if expected is None:
            expected = run(source, feeds, in_numpy=True)
        assert list(expected) == list(actual)
        for name in expected:
            assert_same(expected[name], actual[name], name, exact=exact)
    return result


def converts_from_9(
    source: ModelProto, opset: int, *feeds: Mapping[str, Any], **options: Any
) -> None:
    """Convert as `converts` does; below opset 9 it blocks, as it would count up to a size.

    Args:
        source: the model, with sizes or ranks that are only known at run time.
        opset: the opset to reach.
        feeds: sets of inputs.
        options: as for `converts`.
    """
    if opset >= 9:
        converts(source, opset, *feeds, **options)
        return
    _must_count(source, opset)


def converts_or_counts(
    source: ModelProto, opset: int, *feeds: Mapping[str, Any], **options: Any
) -> ModelProto | None:
    """Convert as `converts` does; below opset 9 it may block, as it would count up to a size.

    Args:
        source: the model.
        opset: the opset to reach.
        feeds: sets of inputs.
        options: as for `converts`.
    """
    if opset < 9 and onnxreduce_cli.plan(source, opset, emulate=True).blockers:
        _must_count(source, opset)
        return None
    return converts(source, opset, *feeds, **options)


def _must_count(source: ModelProto, opset: int) -> None:
    """A conversion below opset 9 blocks at sizes or ranks that are only known at run time."""
    for blocker in blockers(source, opset):
        counts = "before opset 9 only a Loop counts" in blocker.reason
        assert counts or "before opset 8 only a Loop gives both one rank" in blocker.reason
        assert re.match(r"choose opset [89] or later(, or state the shapes|$)", blocker.advice)


def assert_same(expected: Any, actual: Any, name: str = "", *, exact: bool = False) -> None:
    """Two outputs agree in kind, dtype, shape and value; NaN equals NaN."""
    if isinstance(expected, list):
        assert isinstance(actual, list), name
        assert len(expected) == len(actual), name
        for a, b in zip(expected, actual, strict=True):
            assert_same(a, b, name, exact=exact)
        return
    if not isinstance(expected, np.ndarray):
        assert expected == actual, name
        return
    assert isinstance(actual, np.ndarray), name
    assert expected.dtype == actual.dtype, f"{name}: {expected.dtype} became {actual.dtype}"
    assert expected.shape == actual.shape, f"{name}: {expected.shape} became {actual.shape}"
    tolerance = TOLERANCE.get(expected.dtype.name)
    if exact or tolerance is None:
        equal_nan = tolerance is not None
        assert np.array_equal(expected, actual, equal_nan=equal_nan), (
            f"{name}: {expected!r} became {actual!r}"
        )
        return
    np.testing.assert_allclose(
        actual.astype(np.float64),
        expected.astype(np.float64),
        rtol=tolerance,
        atol=tolerance,
        err_msg=name,
    )


def blockers(source: ModelProto, opset: int, **options: Any) -> tuple[Blocker, ...]:
    """The blockers of a conversion that must fail, emulations wanted; nothing is touched."""
    before = source.SerializeToString()
    with pytest.raises(onnxreduce_cli.ConversionError) as caught:
        onnxreduce_cli.convert(source, opset, in_place=True, **{"emulate": True, **options})
    assert caught.value.blockers
    assert source.SerializeToString() == before, "a blocked conversion touched the model"
    return caught.value.blockers


def op_types(found: ModelProto) -> list[str]:
    """The operators of the main graph, in order."""
    return [node.op_type for node in found.graph.node]


def one_node(
    op_type: str,
    opset: int,
    inputs: Mapping[str, np.ndarray | None],
    *,
    outputs: int = 1,
    initializers: tuple[str, ...] = (),
    shapes: Mapping[str, Any] | None = None,
    output_shapes: Sequence[Sequence[int | str | None]] = (),
    hidden: Sequence[str] = (),
    **attributes: Any,
) -> ModelProto:
    """A model of one node; its inputs are graph inputs, or initializers where named so.

    Args:
        op_type: the operator.
        opset: the model's opset.
        inputs: by name, an array with dtype and shape (None for an absent input).
        outputs: how many outputs.
        initializers: inputs that are initializers of the model.
        shapes: by input name, the shape to declare instead of the array's: a list of ints,
            names and None, or None for an unknown rank.
        output_shapes: the shapes to declare for the outputs where they cannot be inferred: the
            checker wants a rank for what a graph gives.
        hidden: inputs whose rank the node cannot know; see `_hide_rank`.
        attributes: the node's attributes.
    """
    names = ["" if array is None else name for name, array in inputs.items()]
    node = helper.make_node(op_type, names, [f"y{i}" for i in range(outputs)], name="node")
    fill(node, (), attributes)
    shapes = shapes or {}
    declared, tensors = [], []
    for name, array in inputs.items():
        if array is None:
            continue
        if name in initializers:
            tensors.append(onnx.numpy_helper.from_array(array, name))
            continue
        elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        shape = shapes[name] if name in shapes else list(array.shape)
        declared.append(helper.make_tensor_value_info(name, elem_type, shape))
    graph = helper.make_graph(
        [node],
        "graph",
        declared,
        [_output(node, index, opset, declared, tensors, output_shapes) for index in range(outputs)],
        tensors,
    )
    for name in hidden:
        _hide_rank(graph, name)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=least_ir_version(opset)
    )


def of_unknown_rank(
    source: ModelProto, feeds: Mapping[str, Any], *names: str
) -> tuple[ModelProto, dict[str, Any]]:
    """The model and its inputs, of which it does not know the rank of those named.

    Each is reshaped to a shape that is an input too, from opset 5 on.
    """
    found, fed = ModelProto(), dict(feeds)
    found.CopyFrom(source)
    graph = found.graph
    for node in graph.node:
        node.input[:] = [f"{name}_reshaped" if name in names else name for name in node.input]
    for name in names:
        shape = f"{name}_shape"
        inputs = [name, shape]
        graph.node.insert(0, helper.make_node("Reshape", inputs, [f"{name}_reshaped"]))
        rank = f"{name}_rank"
        graph.input.append(helper.make_tensor_value_info(shape, onnx.TensorProto.INT64, [rank]))
        fed[shape] = np.array(np.shape(feeds[name]), np.int64)
    return found, fed


def without_ranks(source: ModelProto, names: Sequence[str]) -> ModelProto:
    """The model with some inputs of its last node of a rank that only further inputs tell.

    An input x goes through a Reshape to the shape that the further input x_dims gives.
    """
    for name in names:
        dims, shaped = f"{name}_dims", f"{name}_shaped"
        source.graph.input.append(helper.make_tensor_value_info(dims, TensorProto.INT64, ["r"]))
        source.graph.node.insert(0, helper.make_node("Reshape", [name, dims], [shaped]))
        node = source.graph.node[-1]
        node.input[list(node.input).index(name)] = shaped
    return source


def dims_of(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What `without_ranks` makes further inputs of."""
    return {f"{name}_dims": np.array(x.shape, np.int64) for name, x in inputs.items()}


@functools.cache
def least_ir_version(opset: int) -> int:
    # By the table of releases: the helper for this knows only opsets that were the newest of one.
    found = [row[1] for row in helper.VERSION_TABLE if row[2] >= opset]
    return max(4, min(found, default=onnx.IR_VERSION))


def _hide_rank(graph: onnx.GraphProto, name: str) -> None:
    """Let an input of the graph go through a Loop of one round, through which inference can't see.

    The graph tells none of the input's sizes, nor of those of what it gives, but for the ranks.
    """
    tensor = next(value.type.tensor_type for value in graph.input if value.name == name)
    for node in graph.node:
        node.input[:] = ["hidden" + n if n == name else n for n in node.input]
    for value in (*graph.input, *graph.output):
        if value.name == name or value in graph.output:
            for dim in value.type.tensor_type.shape.dim:
                dim.Clear()
    body = parser.parse_graph(
        "body (int64 round, bool going, float carried) => (bool still, float passed) "
        "{ still = Identity(going) passed = Identity(carried) }"
    )
    for value in (body.input[2], body.output[1]):
        value.type.tensor_type.CopyFrom(TypeProto.Tensor(elem_type=tensor.elem_type))
    if not any(item.name == "once" for item in graph.initializer):
        graph.initializer.append(onnx.numpy_helper.from_array(np.array(1), "once"))
    graph.node.insert(0, helper.make_node("Loop", ["once", "", name], ["hidden" + name], body=body))


def _output(
    node: onnx.NodeProto,
    index: int,
    opset: int,
    declared: list[Any],
    tensors: list[Any],
    output_shapes: Sequence[Sequence[int | str | None]],
) -> onnx.ValueInfoProto:
    """The output's value info: inferred, but for the shape where one is given."""
    types = {value.name: value.type for value in declared}
    for tensor in tensors:
        types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    inferred = onnx.shape_inference.infer_node_outputs(
        onnx.defs.get_schema(node.op_type, opset),
        node,
        {name: types[name] for name in node.input if name},
        {tensor.name: tensor for tensor in tensors},
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=least_ir_version(opset),
    )
    name = node.output[index]
    found = TypeProto()
    if name in inferred:
        found.CopyFrom(inferred[name])
    else:
        found.tensor_type.elem_type = types[node.input[0]].tensor_type.elem_type
    if index < len(output_shapes):
        shape = list(output_shapes[index])
        return helper.make_tensor_value_info(name, found.tensor_type.elem_type, shape)
    return helper.make_value_info(name, found)
