"""Inputs without flags: shapes, dtypes, ranges, value profiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, TypeProto

from onnxreduce_cli.executor import Executor
from onnxreduce_cli.verification.errors import InputError
from onnxreduce_cli.verification.inputs.drawing import Drawer, ShapeChoice
from onnxreduce_cli.verification.inputs.profiles import (
    LARGE,
    NEAR_CONSTANTS,
    ORDINARY,
    SMALL,
    SPECIAL,
    ZEROS,
    draw_array,
)
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.equivalence import verify
from tests.support import model


def source(text: str, opset: int = 13) -> ModelProto:
    return model(f'<ir_version: 8, opset_import: ["": {opset}]>' + text)


def drawn(found: ModelProto, trial: int = 0, dims: dict[str, int] | None = None) -> dict[str, Any]:
    drawer = Drawer(ModelSource(found, "m"), dims)
    rng = np.random.default_rng(trial)
    return drawer.draw(next(drawer.choices(trial, rng)), ORDINARY, rng)


TWO = (
    "g (float[batch,seq] x, float[batch,7] z) => (float[batch] y) "
    "{ y = ReduceMax<keepdims=0,axes=[1]>(x) }"
)


def test_symbolic_dimensions_are_drawn_by_name_over_trials() -> None:
    sizes: dict[str, set[int]] = {"batch": set(), "seq": set()}
    for trial in range(3):
        feeds = drawn(source(TWO), trial)
        assert feeds["x"].shape[0] == feeds["z"].shape[0]
        assert feeds["z"].shape[1] == 7
        assert feeds["x"].shape[0] != feeds["x"].shape[1]
        sizes["batch"].add(feeds["x"].shape[0])
        sizes["seq"].add(feeds["x"].shape[1])
    for seen in sizes.values():
        assert {1, 2} < seen
        assert max(seen) in (3, 5, 7)


def test_a_dimension_can_be_fixed() -> None:
    assert drawn(source(TWO), dims={"batch": 4})["z"].shape == (4, 7)
    unnamed = source("g (float[?,?] x) => (float[?,?] y) { y = Relu(x) }".replace("?", "A", 0))
    assert drawn(unnamed, dims={"x[1]": 9})["x"].shape[1] == 9


def test_given_inputs_fix_the_dimensions_of_the_others() -> None:
    report = verify(source(TWO), inputs={"x": np.ones((6, 2), np.float32)}, trials=2)
    assert [trial.shapes["z"] for trial in report.trials] == [(6, 7), (6, 7)]


INDEXING = {
    "Gather": "g (int64[N] i) => (float[N,2] y) <float[5,2] t = {0,1,2,3,4,5,6,7,8,9}> "
    "{ y = Gather(t, i) }",
    "through Cast, Unsqueeze and Reshape": "g (int32[N] i) => (float[A,B,C] y) "
    "<float[2,2] t = {0,1,2,3}, int64[1] a = {0}, int64[2] s = {-1,1}> "
    "{ c = Cast<to=7>(i) \n u = Unsqueeze(c, a) \n r = Reshape(u, s) \n y = Gather(t, r) }",
    "floats that are cast": "g (float[N] i) => (float[N] y) <float[2] t = {0,1}> "
    "{ c = Cast<to=7>(i) \n y = Gather(t, c) }",
    "GatherElements": "g (int64[2,2] i) => (float[2,2] y) <float[2,3] t = {0,1,2,3,4,5}> "
    "{ y = GatherElements<axis=1>(t, i) }",
    "GatherND": "g (int64[N,2] i) => (float[N] y) <float[2,3] t = {0,1,2,3,4,5}> "
    "{ y = GatherND(t, i) }",
    "ScatterElements": "g (int64[2,2] i, float[2,2] u) => (float[2,3] y) "
    "<float[2,3] t = {0,1,2,3,4,5}> { y = ScatterElements<axis=1>(t, i, u) }",
    "ScatterND": "g (int64[1,1] i, float[1,3] u) => (float[2,3] y) "
    "<float[2,3] t = {0,1,2,3,4,5}> { y = ScatterND(t, i, u) }",
    "OneHot": "g (int64[N] i) => (float[N,3] y) <int64 d = {3}, float[2] v = {0,1}> "
    "{ y = OneHot(i, d, v) }",
    "data's own dimension": "g (float[N,M] x, int64[K] i) => (float[K,M] y) { y = Gather(x, i) }",
    "in a subgraph": "g (int64[N] i, bool c) => (float[N] y) <float[2] t = {0,1}> "
    "{ y = If(c) <then_branch = a () => (float[N] p) { p = Gather(t, i) }, "
    "else_branch = b () => (float[N] q) { q = Gather(t, i) }> }",
}


@pytest.mark.parametrize("case", INDEXING)
def test_indices_are_drawn_inside_their_range(case: str) -> None:
    report = verify(source(INDEXING[case]), trials=6)
    assert report.exit_code == 0
    assert not any(trial.void for trial in report.trials)
    assert all(run.trials == 6 for run in report.runs)


def test_a_shape_as_input() -> None:
    text = "g (float[2,6] x, int64[3] s) => (float[A,B,C] y) { y = Reshape(x, s) }"
    assert drawn(source(text))["s"].tolist() == [-1, 1, 1]
    assert verify(source(text)).exit_code == 0


def test_indices_use_their_whole_range() -> None:
    feeds = [drawn(source(INDEXING["Gather"]), trial, {"N": 50})["i"] for trial in range(2)]
    assert set(np.concatenate(feeds)) == {0, 1, 2, 3, 4}


def test_indices_through_a_function() -> None:
    found = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13, "f": 1]>'
        "g (int64[N] i) => (float[N] y) <float[2] t = {0,1}> { y = f.pick(t, i) }"
        '<domain: "f", opset_import: ["": 13]> pick (a, b) => (c) { c = Gather(a, b) }'
    )
    assert set(drawn(found, dims={"N": 40})["i"]) == {0, 1}


def test_axes_as_inputs() -> None:
    found = source(
        "g (float[N,M] x, int64[2] a) => (float[A,B] y) { y = ReduceMax(x, a) }", opset=18
    )
    for trial in range(4):
        assert sorted(drawn(found, trial)["a"]) == [0, 1]
    assert verify(found).exit_code == 0


#: Models of inputs that mean something, each with its opset.
MEANT = [
    (13, "g (float[1,1,1] x, int64[2] a) => (float[A] y) { y = Squeeze(x, a) }"),
    (13, "g (float[2,3] x, int64[3] a) => (float[A,B,C,D,E] y) { y = Unsqueeze(x, a) }"),
    (
        13,
        "g (float[2,3] x, int64[k] s, int64[1] a) => (float[A,B] y) "
        "{ r = Reshape(x, s)  y = Unsqueeze(r, a) }",
    ),
    (18, "g (float[4,3] x, int64[4] p, int64[2] a) => (float[A,B] y) { y = Pad(x, p, , a) }"),
    (13, "g (float[5,4] x, int64[2] s, int64[2] e, int64[2] a) => (float[A,B] y) "
         "{ y = Slice(x, s, e, a) }"),
    (14, "g (float[4] x, int64 a) => (float[4] y) { y = CumSum(x, a) }"),
    pytest.param(
        26, "g (float[4] x, int64 a) => (float[4] y) { y = CumProd(x, a) }",
        marks=pytest.mark.newest,
    ),
    (10, "g (float[2,3] x, int64[3] l) => (float[2,3] y) { y = ReverseSequence(x, l) }"),
    (
        10,
        "g (float[4,2] x, int64[4] l) => (float[4,2] y) "
        "{ y = ReverseSequence<batch_axis = 0, time_axis = 1>(x, l) }",
    ),
    (20, "g (float[2,4,1] x, int64 a) => (float[A,B,C] y) { y = DFT(x, , a) }"),
    (13, "g (float[N,M] x, int64[K,2] i) => (float[K] y) { y = GatherND(x, i) }"),
    (13, "g (float[2,1] x, int64[2,1] i) => (float[2] y) { y = GatherND<batch_dims = 1>(x, i) }"),
    (
        13,
        "g (int64[N] i, int64 d) => (float[N,D] y) <float[2] v = {0, 1}> { y = OneHot(i, d, v) }",
    ),
    (13, "g (float[3] x, float r) => (float[3] y) { y = Dropout(x, r) }"),
    (
        23,
        "g (float[2,3,4] x, float[1,2] c, float[1,2] s, int64[2,3] p) => (float[2,3,4] y) "
        "{ y = RotaryEmbedding<num_heads = 1>(x, c, s, p) }",
    ),
    (
        24,
        "g (float[2,3,4] c, float[2,2,4] u, int64[2] w) => (float[2,3,4] y) "
        "{ y = TensorScatter(c, u, w) }",
    ),
    (
        24,
        "g (float[2,3,4] c, float[2,2,4] u, int64[2] w) => (float[2,3,4] y) "
        '{ y = TensorScatter<mode = "circular">(c, u, w) }',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "text"), MEANT)
def test_what_inputs_mean_is_kept_to(opset: int, text: str) -> None:
    found = source(text, opset)
    executor = Executor(found)
    for trial in range(8):
        executor.run(drawn(found, trial))


def test_ratios_of_dropout_are_less_than_1() -> None:
    found = source("g (float[3] x, float r) => (float[3] y) { y = Dropout(x, r) }")
    assert verify(found, trials=4).exit_code == 0


def test_strings_booleans_sequences_and_optionals() -> None:
    found = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]>'
        "g (string[N] s, bool[N] b, seq(float[N]) q, optional(float[N]) o) "
        "=> (string[N] y, bool[N] z, int64 n, bool h) { y = Identity(s) \n z = Not(b) \n "
        "n = SequenceLength(q) \n h = OptionalHasElement(o) }"
    )
    report = verify(found)
    assert report.exit_code == 0
    assert all(run.trials == 8 for run in report.runs)
    feeds = drawn(found)
    assert feeds["s"].dtype == object
    assert len(feeds["q"]) == 2


@pytest.mark.parametrize(
    "elem_type",
    [
        TensorProto.FLOAT,
        TensorProto.DOUBLE,
        TensorProto.FLOAT16,
        TensorProto.BFLOAT16,
        TensorProto.FLOAT8E4M3FN,
    ],
)
def test_value_profiles_of_floats(elem_type: int) -> None:
    rng = np.random.default_rng(0)

    def magnitude(profile: str) -> float:
        array = draw_array((1000,), elem_type, profile, rng)
        return float(np.abs(array.astype(np.float64)).mean())

    assert magnitude(ZEROS) == 0
    assert magnitude(SMALL) < 0.1 < magnitude(ORDINARY) < 2 < magnitude(LARGE)
    special = draw_array((1000,), elem_type, SPECIAL, rng).astype(np.float64)
    assert (special == 0).any()
    assert np.signbit(special[special == 0]).any()
    if elem_type != TensorProto.FLOAT8E4M3FN:
        assert np.isnan(special).any()
        assert np.isposinf(special).any()
        assert np.isneginf(special).any()
        tiny = np.abs(special[special != 0])
        assert np.nanmin(tiny) < float(np.finfo(np.float16).tiny)


@pytest.mark.parametrize("elem_type", [TensorProto.INT64, TensorProto.UINT8, TensorProto.INT4])
def test_value_profiles_of_integers(elem_type: int) -> None:
    rng = np.random.default_rng(0)
    for profile in (ORDINARY, SMALL, LARGE, ZEROS, SPECIAL):
        array = draw_array((500,), elem_type, profile, rng).astype(np.int64)
        assert array.min() == 0
        assert profile != ZEROS or array.max() == 0
    signed = draw_array((500,), elem_type, ORDINARY, rng, negative=True).astype(np.int64)
    assert (signed.min() < 0) == (elem_type != TensorProto.UINT8)


def test_a_model_that_takes_few_shapes_gets_one_that_fits() -> None:
    # An image of at least 8 by 8.
    found = source(
        "g (float[N,1,H,W] x) => (float[N,1,A,B] y) { y = MaxPool<kernel_shape=[8,8]>(x) }"
    )
    report = verify(found)
    assert report.exit_code == 0
    assert not any(trial.void for trial in report.trials)
    # Weights say what an open dimension must be.
    ones = ",".join(["1"] * 22)
    weighted = source(
        f"g (float[N,M] x) => (float[N,2] y) <float[11,2] w = {{{ones}}}> {{ y = MatMul(x, w) }}"
    )
    report = verify(weighted)
    assert report.exit_code == 0
    assert {(trial.shapes["x"] or (0, 0))[1] for trial in report.trials} == {11}
    # Two names that must be the same size.
    twice = source("g (float[N,2] x, float[M,2] z) => (float[K,2] y) { y = Sub(x, z) }")
    assert verify(twice).exit_code == 0


def test_an_unknown_rank_is_tried() -> None:
    found = source("g (float[N] x) => (float[N] y) { y = Relu(x) }")
    found.graph.input[0].type.tensor_type.ClearField("shape")
    found.graph.output[0].type.tensor_type.ClearField("shape")
    report = verify(found)
    assert report.exit_code == 0
    assert len(report.trials[0].shapes["x"] or ()) == 2


@pytest.mark.parametrize("kind", ["sequence_type", "optional_type"])
def test_tensors_of_unknown_rank_in_sequences_and_optionals(kind: str) -> None:
    found = source("g (float[N] x) => (float[N] y) { y = Identity(x) }", 16)
    inner = TypeProto()
    inner.tensor_type.elem_type = TensorProto.FLOAT
    getattr(found.graph.input[0].type, kind).elem_type.CopyFrom(inner)
    value = drawn(found)["x"]
    tensors = value if kind == "sequence_type" else [value]
    assert tensors
    assert all(tensor.dtype == np.float32 and tensor.ndim == 2 for tensor in tensors)


def test_drawing_is_deterministic() -> None:
    first, second = drawn(source(TWO)), drawn(source(TWO))
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_what_cannot_be_drawn_is_told() -> None:
    found = source("g (float[N] x) => (float[N] y) { y = Relu(x) }")
    found.graph.input[0].type.tensor_type.elem_type = 0
    drawer = Drawer(ModelSource(found, "m"))
    with pytest.raises(InputError, match="cannot be drawn"):
        drawer.draw(ShapeChoice({}, 2), ORDINARY, np.random.default_rng(0))


def test_limits_of_the_model_are_met() -> None:
    text = (
        "g (int32[200,3] x, float[500] z) => (bool[200,3] y, float[500] w) "
        "<int32[3] c = {50,-70,3000}> "
        "{ y = Less(x, c) \n w = ThresholdedRelu<alpha = 123.5>(z) }"
    )
    drawer = Drawer(ModelSource(source(text), "m"))
    rng = np.random.default_rng(0)
    feeds = drawer.draw(next(drawer.choices(0, rng)), NEAR_CONSTANTS, rng)
    for column, limit in enumerate((50, -70, 3000)):
        assert {limit - 1, limit, limit + 1} < set(feeds["x"][:, column].tolist())
    assert {122.5, 123.5, 124.5} < set(feeds["z"].tolist())
    assert feeds["x"].dtype == np.int32
    assert feeds["z"].dtype == np.float32


def test_sequences_in_sequences_do_not_double_with_each_level() -> None:
    found = source("g (seq(float[2]) x) => (seq(float[2]) y) { y = Identity(x) }", 16)
    inner = TypeProto()
    inner.CopyFrom(found.graph.input[0].type)
    for _ in range(40):
        outer = TypeProto()
        outer.sequence_type.elem_type.CopyFrom(inner)
        inner = outer
    found.graph.input[0].type.CopyFrom(inner)
    value = drawn(found)["x"]
    for _ in range(40):
        assert len(value) == 1
        value = value[0]
    assert len(value) == 2


def test_axes_of_rank_0_require_a_size_as_those_in_a_list_do() -> None:
    found = source("g (float[a,b] x) => (float[b] y) <int64 axis = {0}> { y = Squeeze(x, axis) }")
    assert Drawer(ModelSource(found, "m")).hints() == {"a": 1}
