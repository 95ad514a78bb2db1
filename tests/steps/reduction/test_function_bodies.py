"""Function bodies in place of operators: at every opset, and no less exact."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper

import onnxreduce_cli
from onnxreduce_cli.steps.reduction.function_bodies import BODIES
from tests.steps.checklist import newest_declared
from tests.support import blockers, converts, model, one_node, op_types, run

REDUCTIONS = tuple(op for op in BODIES if op.startswith("Reduce"))
NORMALISATIONS = ("Softmax", "LogSoftmax")
OPSETS = range(1, newest_declared() + 1)
X = np.random.default_rng(3).normal(0, 2, (2, 3, 4)).astype(np.float32)


def data(op_type: str, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return (np.abs(X) + 0.5 if op_type == "ReduceLogSum" else X).astype(dtype)


def reduction(op_type: str, opset: int, x: Any, axes: list[int] | None, **given: Any) -> ModelProto:
    if len(onnx.defs.get_schema(op_type, opset).inputs) > 1:
        inputs = {"x": x} | ({} if axes is None else {"axes": np.array(axes, np.int64)})
        return one_node(op_type, opset, inputs, initializers=("axes",), **given)
    return one_node(op_type, opset, {"x": x}, **given, **({} if axes is None else {"axes": axes}))


def test_there_is_a_body_for_each() -> None:
    assert set(BODIES) == {*REDUCTIONS, *NORMALISATIONS}
    assert len(REDUCTIONS) == 5


@pytest.mark.parametrize("op_type", REDUCTIONS)
@pytest.mark.parametrize("opset", OPSETS)
def test_reductions_at_every_opset(op_type: str, opset: int) -> None:
    x = data(op_type)
    for axes, keepdims in itertools.product(([1], [0, 2], None), (0, 1)):
        source = reduction(op_type, opset, x, axes, keepdims=keepdims)
        result = converts(source, opset, {"x": x}, expand=[op_type])
        assert op_type not in op_types(result)
        assert result.graph.node[-1].name == "node"


@pytest.mark.parametrize("op_type", NORMALISATIONS)
@pytest.mark.parametrize("opset", OPSETS)
def test_normalisations_at_every_opset(op_type: str, opset: int) -> None:
    for axis in (0, 1, 2, -1) if opset >= 11 else (0, 1, 2):
        source = one_node(op_type, opset, {"x": X}, axis=axis)
        result = converts(source, opset, {"x": X}, expand=[op_type])
        assert op_type not in op_types(result)
    converts(one_node(op_type, opset, {"x": X}), opset, {"x": X}, expand=[op_type])


@pytest.mark.parametrize("op_type", [*REDUCTIONS, *NORMALISATIONS])
@pytest.mark.parametrize("source", [1, 11, 13, 18])
@pytest.mark.parametrize("target", [1, 6, 7, 9, 12, 13, 17, 18, 21])
def test_on_the_way_to_another_opset(op_type: str, source: int, target: int) -> None:
    x = data(op_type)
    if op_type in REDUCTIONS:
        found = reduction(op_type, source, x, [1])
    else:
        found = one_node(op_type, source, {"x": x}, axis=1)
    result = converts(found, target, {"x": x}, expand=[op_type])
    assert op_type not in op_types(result)


@pytest.mark.parametrize("op_type", REDUCTIONS)
@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("axes", [None, [], [1]])
@pytest.mark.parametrize("target", [18, 17, 12, 10])
def test_noop_with_empty_axes(op_type: str, noop: int, axes: list[int] | None, target: int) -> None:
    x = data(op_type)
    source = reduction(op_type, 18, x, axes, noop_with_empty_axes=noop)
    result = converts(source, target, {"x": x}, expand=[op_type], in_numpy=True)
    assert op_type not in op_types(result)


@pytest.mark.parametrize("op_type", REDUCTIONS)
@pytest.mark.parametrize("noop", [0, 1])
def test_axes_at_run_time(op_type: str, noop: int) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3,4] x, int64[k] axes) => (float[a,b,c] y) {{
            y = {op_type}<noop_with_empty_axes = {noop}>(x, axes)
        }}""")
    x = data(op_type)
    feeds = [{"x": x, "axes": np.array(a, np.int64)} for a in ([], [1], [0, -1])]
    for target in (18, 13, 11, 9):
        result = converts(source, target, *feeds, expand=[op_type], in_numpy=True)
        assert f'"{op_type}"' not in str(result), "not in a branch either"


@pytest.mark.parametrize("op_type", REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.int64, np.uint32])
@pytest.mark.parametrize("target", [18, 13, 9, 8])
def test_dtypes(op_type: str, dtype: Any, target: int) -> None:
    x = np.abs(data(op_type)) + 1 if np.dtype(dtype).kind in "u" else data(op_type)
    if np.dtype(dtype).kind in "iu" and "Log" in op_type:
        x = np.abs(x) + 1
    x = x.astype(dtype)
    source = reduction(op_type, 18, x, [1])
    converts(source, target, {"x": x}, expand=[op_type], in_numpy=True)


@pytest.mark.parametrize("op_type", [*REDUCTIONS, *NORMALISATIONS])
@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 3), (1, 1), (4,)])
def test_sizes_of_zero_and_one(op_type: str, shape: tuple[int, ...]) -> None:
    x = np.full(shape, 0.75, np.float32)
    for target in (18, 13, 9):
        if op_type in REDUCTIONS:
            source = reduction(op_type, 18, x, [0])
        else:
            source = one_node(op_type, 18, {"x": x}, axis=0)
        # Nothing to reduce has no largest; the body may only say so where the operator does.
        if op_type == "ReduceLogSumExp" or 0 not in shape or op_type in REDUCTIONS:
            converts(source, target, {"x": x}, expand=[op_type], in_numpy=True)


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"])
def test_rank_zero(op_type: str) -> None:
    x = np.array(2.5, np.float32)
    for noop in (0, 1):
        source = reduction(op_type, 18, x, None, noop_with_empty_axes=noop)
        converts(source, 18, {"x": x}, expand=[op_type], in_numpy=True)


def test_doubles_are_computed_in_double() -> None:
    """In float the sum of squares would be wrong from the eighth digit on, or infinite."""
    x = np.array([[1.0 + 1e-12, 2.0, 3.0], [1e30, 1e30, 1e-30]])
    source = reduction("ReduceL2", 18, x, [1])
    for target in (18, 13, 9):
        result = onnxreduce_cli.convert(source, target, expand=["ReduceL2"])
        y = run(result, {"x": x}, in_numpy=True)["y0"]
        np.testing.assert_allclose(y, np.sqrt((x * x).sum(1, keepdims=True)), rtol=1e-15)
        assert not any(node.op_type == "Cast" for node in result.graph.node)


@pytest.mark.parametrize("opset", [1, 6, 9, 12, 13, 18])
def test_large_numbers_do_not_overflow(opset: int) -> None:
    x = np.array([[1000.0, 1000.0, 999.0], [-2000.0, -2000.0, -2001.0]], np.float32)
    shifted = x.astype(np.float64) - x.max(1, keepdims=True)
    expected = np.log(np.exp(shifted).sum(1, keepdims=True)) + x.max(1, keepdims=True)
    for op_type in ("ReduceLogSumExp", *NORMALISATIONS):
        if op_type in REDUCTIONS:
            source = reduction(op_type, opset, x, [1])
        else:
            source = one_node(op_type, opset, {"x": x}, axis=1)
        result = onnxreduce_cli.convert(source, opset, expand=[op_type])
        y = run(result, {"x": x})["y0"]
        wanted = {
            "ReduceLogSumExp": expected,
            "LogSoftmax": x - expected,
            "Softmax": np.exp(x - expected),
        }[op_type]
        np.testing.assert_allclose(y, wanted, rtol=2e-6, atol=1e-7)


def test_infinities_and_nan() -> None:
    inf = np.inf
    x = np.array(
        [[-inf, -inf, -inf], [-inf, 1, 2], [inf, 1, 2], [inf, -inf, 0], [np.nan, 1, 2]], np.float32
    )
    for op_type in BODIES:
        if op_type in REDUCTIONS:
            source = reduction(op_type, 18, x, [1])
        else:
            source = one_node(op_type, 18, {"x": x}, axis=1)
        for target in (18, 13, 9):
            converts(source, target, {"x": x}, expand=[op_type], in_numpy=True)


def test_halves_are_computed_in_float() -> None:
    x = np.full((1, 3000), 0.1, np.float16)
    for op_type in ("ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"):
        converts(reduction(op_type, 18, x, [1]), 18, {"x": x}, expand=[op_type], in_numpy=True)


def test_in_branches_and_functions() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[2,3,4] x, bool c) => (float[p,q,r] y) {
            y = If (c) <
                then_branch = t () => (float[i,j,k] o) { [n] o = ReduceL2<axes = [1]>(x) },
                else_branch = e () => (float[i,j,k] o) { o = local.F<dims = [0, 2]>(x) }
            >
        }
        <domain: "local", opset_import: ["" : 17]>
        F <dims> (a) => (b) {
            s = ReduceLogSumExp<axes : ints = @dims>(a)
            b = LogSoftmax(s)
        }""")
    feeds = [{"x": X, "c": np.array(flag)} for flag in (True, False)]
    expand = ["ReduceL2", "ReduceLogSumExp", "LogSoftmax"]
    for target in (17, 18, 13, 11):
        result = converts(source, target, *feeds, expand=expand)
        text = str(result)
        assert not any(f'"{op_type}"' in text for op_type in expand)


def test_only_what_is_asked_for_is_expanded() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3,4] x) => (float[2,3,4] y) { a = Softmax(x) y = LogSoftmax(a) }""")
    result = converts(source, 18, {"x": X}, expand=["LogSoftmax"])
    assert op_types(result)[0] == "Softmax"
    assert "LogSoftmax" not in op_types(result)
    with pytest.raises(ValueError, match="Relu cannot be written in other operators"):
        onnxreduce_cli.convert(source, 18, expand=["Relu"])


def test_before_13_the_rank_must_be_known() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 12]>
        g (float[2,3,4] x, int64[k] s) => (float[a,b] y) {
            r = Reshape(x, s)
            [n] y = Softmax(r)
        }""")
    (blocker,) = blockers(source, 12, expand=["Softmax"])
    assert blocker.reason == (
        "it cannot be expanded: the rank of 'r' is not known, and at opset 12 all dimensions from "
        "axis 1 on count"
    )


@pytest.mark.parametrize(("op_type", "missing"), [("ReduceL1", "Abs"), ("ReduceSumSquare", "Mul")])
def test_integers_block_where_there_is_no_arithmetic_of_them(op_type: str, missing: str) -> None:
    x = np.array([[1, -2, 3], [2**14, -(2**14), 7]], np.int32)
    converts(reduction(op_type, 6, x, [1]), 6, {"x": x}, expand=BODIES)
    (blocker,) = blockers(reduction(op_type, 5, x, [1]), 5, expand=BODIES)
    assert blocker.reason == (
        f"what takes its place needs {missing} of tensor(int32), which came with opset 6"
    )


def test_doubles_before_opset_8() -> None:
    """The limits that make an infinite maximum finite are double's own, not float's."""
    x = np.array([[-np.inf, -np.inf], [np.inf, 1.0], [1e300, -1e300], [800.0, 799.0]])
    source = reduction("ReduceLogSumExp", 7, x, [1])
    for opset in (7, 6):
        result = converts(source, opset, {"x": x}, expand=["ReduceLogSumExp"])
        assert ("Transpose" in op_types(result)) == (opset == 6)


def test_the_node_in_the_end_keeps_what_was_the_nodes() -> None:
    source = reduction("ReduceL2", 18, X, [1])
    source.graph.node[0].doc_string = "a norm"
    source.ir_version = 10
    source.graph.node[0].metadata_props.append(onnx.StringStringEntryProto(key="k", value="v"))
    last = onnxreduce_cli.convert(source, 18, expand=["ReduceL2"]).graph.node[-1]
    assert (last.op_type, last.name, last.doc_string) == ("Sqrt", "node", "a norm")
    assert [(p.key, p.value) for p in last.metadata_props] == [("k", "v")]
    assert helper.printable_node(last)
