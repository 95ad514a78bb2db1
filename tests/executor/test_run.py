"""The executor's face: inputs, outputs, files, and errors that name their node."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

from onnxreduce_cli.executor import ExecutionError, Executor, ExecutorError, UnsupportedError, run
from tests.executor.models import model, one_node, value

X = np.array([[1, 2], [3, 4]], dtype=np.float32)


def test_outputs_come_in_the_models_order_and_any_value_may_be_asked_for() -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["hidden"]),
        helper.make_node("Abs", ["hidden"], ["b"]),
        helper.make_node("Exp", ["b"], ["a"]),
    ]
    executor = Executor(model(nodes, [value("x")], ["b", "a"], 13))
    assert list(executor.run({"x": X})) == ["b", "a"]
    assert executor.input_names == ["x"]
    assert list(executor.run({"x": X}, outputs=["a"])) == ["a"]
    np.testing.assert_array_equal(executor.run({"x": X}, outputs=["hidden"])["hidden"], -X)
    with pytest.raises(ExecutionError, match="no value 'c'"):
        executor.run({"x": X}, outputs=["c"])


def test_an_executor_runs_many_times_and_changes_no_input() -> None:
    executor = Executor(one_node("ReduceSum", 11, {"x": X}, axes=[0]))
    before = X.copy()
    for factor in (1, 2, 3):
        got = executor.run({"x": X * factor})["y0"]
        np.testing.assert_array_equal(got, [[4 * factor, 6 * factor]])
    np.testing.assert_array_equal(X, before)


def test_an_initializer_that_is_an_input_can_be_overridden() -> None:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    built = model(nodes, [value("x"), value("w")], ["y"], 13, [numpy_helper.from_array(X, "w")])
    np.testing.assert_array_equal(run(built, {"x": X})["y"], 2 * X)
    np.testing.assert_array_equal(run(built, {"x": X, "w": -X})["y"], 0 * X)


def test_sparse_initializers_are_dense_tensors() -> None:
    values = numpy_helper.from_array(np.array([5, 7], np.float32), "w")
    indices = numpy_helper.from_array(np.array([0, 3], np.int64))
    built = model([helper.make_node("Add", ["x", "w"], ["y"])], [value("x")], ["y"], 13)
    built.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 2]))
    np.testing.assert_array_equal(run(built, {"x": X})["y"], [[6, 2], [3, 11]])


def test_a_path_with_external_data(tmp_path: Path) -> None:
    built = model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [value("x")],
        ["y"],
        13,
        [numpy_helper.from_array(X, "w")],
    )
    path = tmp_path / "model.onnx"
    onnx.save(built, str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    np.testing.assert_array_equal(run(path, {"x": X})["y"], 2 * X)
    np.testing.assert_array_equal(run(str(path), {"x": X})["y"], 2 * X)
    with pytest.raises(ExecutionError, match=r"initializer 'w' .* data is in another file"):
        Executor(onnx.load(str(path), load_external_data=False))


@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        (np.dtype(np.int64), [[1, -2, 3]]),
        (np.dtype(ml_dtypes.bfloat16), [[1.5, -2, 3]]),
        (np.dtype(ml_dtypes.int4), [[1, -2, 3]]),
        (np.dtype(ml_dtypes.uint4), [[1, 15, 3, 4]]),
        (np.dtype(np.float32), [[], []]),
    ],
    ids=lambda item: str(item),
)
def test_external_data_of_any_dtype(dtype: np.dtype, given: list, tmp_path: Path) -> None:
    """Two elements to a byte, and no data at all, as well."""
    array = np.array(given, dtype)
    weights = numpy_helper.from_array(array, "w")
    cast = helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)
    built = model([cast], [], ["y"], 21, [weights])
    path = tmp_path / "model.onnx"
    onnx.save(built, str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    np.testing.assert_array_equal(run(path, {})["y"], array.astype(np.float32))
    assert not array.size or (tmp_path / "w.bin").exists()


def test_files_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="cannot be read"):
        Executor(tmp_path / "missing.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"\xff\xff not a model")
    with pytest.raises(ExecutionError, match="no ONNX model"):
        Executor(tmp_path / "bad.onnx")


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "input 'x' is missing"),
        ({"x": X, "z": X}, "no input 'z'"),
        ({"x": X.astype(np.float64)}, "'x' is float32, float64 is given"),
    ],
)
def test_wrong_inputs(inputs: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(ExecutionError, match=words):
        run(one_node("Neg", 13, {"x": X}), inputs)


def test_rank_0_results_are_arrays() -> None:
    for op in ("ReduceSum", "ReduceLogSumExp", "Neg", "Shape", "Size"):
        built = one_node(op, 11, {"x": np.array(2, np.float32)})
        assert isinstance(run(built, {"x": np.array(2, np.float32)})["y0"], np.ndarray)


def test_no_warning_and_no_changed_error_state_leaks() -> None:
    state = np.geterr()
    x = np.array([0, -1, np.inf, 1e30], dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for op in ("Log", "Sqrt", "Reciprocal", "ReduceLogSum", "ReduceSumSquare", "Softmax"):
            run(one_node(op, 13, {"x": x}), {"x": x})
        run(one_node("ReduceMean", 13, {"x": x[:0]}), {"x": x[:0]})
        scaled = {"x": np.zeros((2, 0), np.float32), "s": np.zeros(0, np.float32)}
        run(one_node("LayerNormalization", 17, scaled), scaled)
        halves = x.astype(np.float64)
        run(one_node("Cast", 13, {"x": halves}, to=TensorProto.FLOAT16), {"x": halves})
    assert np.geterr() == state


def test_errors_name_node_operator_and_opset() -> None:
    built = one_node("ReduceMean", 13, {"x": X}, axes=[2])
    built.graph.node[0].name = "mean"
    with pytest.raises(ExecutionError) as caught:
        run(built, {"x": X})
    error = caught.value
    assert (error.node, error.operator, error.opset) == ("mean", "ReduceMean", 13)
    assert "axis 2" in error.reason
    assert "rank 2" in error.reason
    assert str(error) == f"node 'mean' (ReduceMean, opset 13): {error.reason}"
    assert isinstance(error, ExecutorError)
    assert isinstance(error, RuntimeError)


@pytest.mark.parametrize(
    ("op", "opset", "attrs", "words"),
    [
        ("ReduceMean", 13, {"axes": [0, 0]}, "twice"),
        ("ReduceMean", 13, {"axes": [0, -2]}, "twice"),
        ("ReduceMean", 11, {"axes": [-3]}, "out of range for rank 2"),
        ("Softmax", 13, {"axis": 2}, "axis 2 is out of range for rank 2"),
        ("Softmax", 11, {"axis": 2}, "axis 2 is out of range for rank 2"),
        ("Flatten", 9, {"axis": -1}, "negative"),
        ("Reshape", 1, {"shape": [3, -1]}, "does not fit"),
        ("Transpose", 13, {"perm": [0, 0]}, "no permutation"),
        ("Unsqueeze", 9, {"axes": [-4]}, "out of range"),
    ],
)
def test_nodes_that_break_their_definition(
    op: str, opset: int, attrs: dict[str, object], words: str
) -> None:
    with pytest.raises(ExecutionError, match=f"{op}, opset {opset}.*{words}"):
        run(one_node(op, opset, {"x": X}, **attrs), {"x": X})


@pytest.mark.parametrize(
    ("op", "opset", "attrs", "words"),
    [
        ("ReduceMean", 13, {"noop_with_empty_axes": 1}, "no attribute 'noop_with_empty_axes'"),
        ("ReduceMean", 18, {"axes": [0]}, "no attribute 'axes'"),
        ("ReduceMean", 13, {"axes": 1}, "'axes' is of type INT"),
        ("Transpose", 13, {"axis": 0}, "no attribute 'axis'"),
        ("Mish", 13, {}, "does not exist at this opset"),
        ("Upsample", 10, {}, "deprecated"),
        ("Flip", 13, {}, "does not exist"),
        ("Add", 13, {}, "does not take 1 inputs"),
        ("Cast", 13, {}, "needs attribute 'to'"),
    ],
)
def test_invalid_nodes_are_refused_before_running(
    op: str, opset: int, attrs: dict[str, object], words: str
) -> None:
    built = one_node(op, opset, {"x": X}, **attrs)
    if op == "Upsample":
        built.graph.node[0].input.append("x")
    with pytest.raises(ExecutionError, match=words):
        Executor(built)


@pytest.mark.parametrize(
    ("op", "opset", "words"),
    [
        ("RandomNormalLike", 13, "not implemented"),
        ("Bernoulli", 15, "not implemented"),
        ("Dropout", 6, "training"),
        ("ReduceSum", onnx.defs.onnx_opset_version() + 1, "knows opsets up to"),
    ],
)
def test_what_cannot_be_run_correctly_is_unsupported(op: str, opset: int, words: str) -> None:
    built = one_node(op, opset, {"x": X})
    with pytest.raises(UnsupportedError, match=words):
        run(built, {"x": X})


def test_operators_of_unknown_domains_are_unsupported() -> None:
    built = one_node("Neg", 13, {"x": X})
    built.graph.node[0].domain = "com.example"
    with pytest.raises(ExecutionError, match="not among the opset imports"):
        Executor(built)
    built.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(UnsupportedError, match=r"com\.example\.Neg"):
        Executor(built)


def test_types_outside_the_definition_are_errors() -> None:
    small = np.array([1, 2], dtype=np.int8)
    with pytest.raises(ExecutionError, match=r"ReduceMax, opset 11.*tensor\(int8\)"):
        run(one_node("ReduceMax", 11, {"x": small}), {"x": small})
    half = X.astype(ml_dtypes.bfloat16)
    with pytest.raises(ExecutionError, match=r"Softmax, opset 11.*tensor\(bfloat16\)"):
        run(one_node("Softmax", 11, {"x": half}), {"x": half})
    mixed = {"x": X, "z": X.astype(np.float64)}
    with pytest.raises(ExecutionError, match=r"Add, opset 13.*'B'.*tensor\(double\)"):
        run(one_node("Add", 13, mixed), mixed)


def test_axes_of_rank_0_are_refused() -> None:
    inputs = {"x": X, "axes": np.array(0)}
    with pytest.raises(ExecutionError, match="'axes' has rank 0"):
        run(one_node("ReduceSum", 13, inputs), inputs)


@pytest.mark.parametrize("place", [2, 3, 4])
def test_limits_of_a_suppression_hold_one_number_each(place: int) -> None:
    limits = [np.array(1), np.array(0, np.float32), np.array(0, np.float32)]
    limits[place - 2] = np.repeat(limits[place - 2], 3)
    arrays = [np.ones((1, 1, 4), np.float32), np.ones((1, 1, 1), np.float32), *limits]
    inputs = {f"x{index}": array for index, array in enumerate(arrays)}
    with pytest.raises(ExecutionError, match="must hold one number"):
        run(one_node("NonMaxSuppression", 11, inputs), inputs)


@pytest.mark.parametrize("place", [2, 3])
def test_zero_points_of_a_convolution_fit(place: int) -> None:
    zeros = [np.zeros(1 + 2 * (at == place), np.uint8) for at in (2, 3)]
    arrays = [np.ones((1, 1, 3, 3), np.uint8), np.ones((2, 1, 2, 2), np.uint8), *zeros]
    inputs = {f"x{index}": array for index, array in enumerate(arrays)}
    with pytest.raises(ExecutionError, match="zero_point has shape"):
        run(one_node("ConvInteger", 10, inputs), inputs)


def test_importing_takes_no_heavy_modules() -> None:
    code = (
        "import sys, onnxreduce_cli.executor\n"
        "assert 'onnx.reference' not in sys.modules\n"
        "assert 'onnxruntime' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_damaged_models_raise_no_foreign_errors() -> None:
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["m"], axes=[0]),
        helper.make_node("Reshape", ["m", "w"], ["y"]),
    ]
    shape = numpy_helper.from_array(np.array([-1]), "w")
    sound = model(nodes, [value("x")], ["y"], 11, [shape]).SerializeToString()
    rng = np.random.default_rng(0)
    ran = refused = 0
    for _ in range(4000):
        damaged = bytearray(sound)
        for place in rng.integers(0, len(sound), rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        try:
            built = onnx.ModelProto.FromString(bytes(damaged))
        except DecodeError:
            continue
        try:
            run(built, {"x": X})
            ran += 1
        except ExecutorError:
            refused += 1
    assert ran > 20
    assert refused > 100


@pytest.mark.parametrize("version", [0, -1, 2**40])
def test_opset_versions_out_of_range(version: int) -> None:
    built = one_node("Neg", 13, {"x": X})
    built.opset_import[0].version = version
    with pytest.raises(ExecutionError, match="out of range"):
        Executor(built)


def test_damaged_sparse_initializers() -> None:
    built = one_node("Neg", 13, {"x": X})
    values = numpy_helper.from_array(np.array([5], np.float32), "w")
    indices = numpy_helper.from_array(np.array([9], np.int64))
    built.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 2]))
    with pytest.raises(ExecutionError, match="'w' is unreadable"):
        Executor(built)


def test_an_assertion_of_the_reference_is_an_error_of_the_node() -> None:
    shapes = {"x": (1, 2, 3, 3, 3), "grid": (1, 4, 4, 4, 2)}
    inputs = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    found = one_node("GridSample", 20, inputs)
    with pytest.raises(ExecutionError, match=r"node .*GridSample, opset 20.*do not fit"):
        run(found, inputs)
