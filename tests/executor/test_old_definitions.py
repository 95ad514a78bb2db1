"""Definitions from before opset 7, which no runtime of today computes, by hand."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxreduce_cli.executor import ExecutionError, UnsupportedError, run
from tests.executor.models import LATEST, model, one_node, value

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4) + 1
ROW = np.array([1, 2, 3, 4], dtype=np.float32)
MIDDLE = np.array([1, 2, 3], dtype=np.float32)


def result(op: str, opset: int, *inputs: Any, outputs: int = 1, **attrs: Any) -> Any:
    named = {f"x{i}": np.asarray(array) for i, array in enumerate(inputs)}
    got = list(run(one_node(op, opset, named, outputs, **attrs), named).values())
    return got[0] if outputs == 1 else got


ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
COMPARE = {"Greater": np.greater, "Less": np.less}
LOGIC = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}


def power(a: Any, b: Any) -> Any:
    return np.power(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)


@pytest.mark.parametrize("opset", [1, 5, 6])
@pytest.mark.parametrize("op", [*ARITHMETIC, *COMPARE, "Pow"])
def test_broadcasting_by_attributes(op: str, opset: int) -> None:
    function = {**ARITHMETIC, **COMPARE, "Pow": power}[op]
    np.testing.assert_array_equal(result(op, opset, A, A), function(A, A))
    got = result(op, opset, A, ROW, broadcast=1)
    np.testing.assert_array_equal(got, function(A, ROW))
    got = result(op, opset, A, MIDDLE, broadcast=1, axis=1)
    np.testing.assert_array_equal(got, function(A, MIDDLE[:, None]))
    got = result(op, opset, A, A[:, :, 0], broadcast=1, axis=0)
    np.testing.assert_array_equal(got, function(A, A[:, :, :1]))
    got = result(op, opset, A, np.array([2], np.float32), broadcast=1)
    np.testing.assert_array_equal(got, function(A, np.float32(2)))


@pytest.mark.parametrize(
    ("right", "attrs"),
    [(ROW, {}), (MIDDLE, {"broadcast": 1}), (ROW, {"broadcast": 1, "axis": 1})],
)
def test_shapes_that_do_not_broadcast_by_attributes(right: Any, attrs: dict[str, int]) -> None:
    with pytest.raises(ExecutionError, match="Add, opset 6"):
        result("Add", 6, A, right, **attrs)
    with pytest.raises(ExecutionError, match="Add, opset 6"):
        result("Add", 6, ROW, A, broadcast=1)


@pytest.mark.parametrize("op", LOGIC)
def test_logic_broadcasts_by_attributes(op: str) -> None:
    a, b = A > 9, MIDDLE > 1
    got = result(op, 1, a, b, broadcast=1, axis=1)
    np.testing.assert_array_equal(got, LOGIC[op](a, b[:, None]))
    np.testing.assert_array_equal(result(op, 7, a, b[:, None]), LOGIC[op](a, b[:, None]))


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
def test_variadic_operators_do_not_broadcast_before_8(op: str) -> None:
    function = {"Max": np.max, "Min": np.min, "Sum": np.sum, "Mean": np.mean}[op]
    for opset in (1, 6):
        got = result(op, opset, A, -A, A + 1)
        np.testing.assert_allclose(got, function([A, -A, A + 1], axis=0), rtol=1e-6)
        with pytest.raises(ExecutionError, match="shapes differ"):
            result(op, opset, A, ROW)


def test_cast_1_names_its_type() -> None:
    got = result("Cast", 1, A, to="INT32")
    assert got.dtype == np.int32
    with pytest.raises(ExecutionError, match="'NUMBER' is unknown"):
        result("Cast", 1, A, to="NUMBER")


@pytest.mark.parametrize("opset", [6, 9, 13, 19, LATEST])
def test_cast_by_number(opset: int) -> None:
    x = np.array([-1.7, 0.0, 2.5], dtype=np.float32)
    to = {TensorProto.INT64: [-1, 0, 2], TensorProto.BOOL: [True, False, True]}
    for number, want in to.items():
        np.testing.assert_array_equal(result("Cast", opset, x, to=number), want)
    assert result("Cast", opset, x, to=TensorProto.DOUBLE).dtype == np.float64


def test_cast_strings() -> None:
    texts = np.array(["1.5", "-INF", "nan", "1e3"], dtype=object)
    got = result("Cast", 9, texts, to=TensorProto.FLOAT)
    np.testing.assert_array_equal(got, np.array([1.5, -np.inf, np.nan, 1000], np.float32))
    assert result("Cast", 9, np.array([7, -2]), to=TensorProto.STRING).tolist() == ["7", "-2"]
    with pytest.raises(ExecutionError, match="not a number"):
        result("Cast", 9, np.array(["x"], dtype=object), to=TensorProto.INT64)


def test_cast_to_float8_saturates_or_not() -> None:
    x = np.array([1.0, 1e6, -1e6, np.inf, np.nan], dtype=np.float32)
    to = TensorProto.FLOAT8E4M3FN
    got = result("Cast", 19, x, to=to)
    assert got.dtype == ml_dtypes.float8_e4m3fn
    np.testing.assert_array_equal(got.astype(np.float32), [1, 448, -448, 448, np.nan])
    got = result("Cast", 19, x, to=to, saturate=0).astype(np.float32)
    np.testing.assert_array_equal(got, [1, np.nan, np.nan, np.nan, np.nan])


@pytest.mark.parametrize("opset", [19, 23, 24])
def test_infinities_of_the_float8_types_that_have_none(opset: int) -> None:
    x = np.array([1.0, 1e6, np.inf, -np.inf], dtype=np.float32)
    infinite = [240, -240] if opset >= 24 else [np.nan, np.nan]
    to = TensorProto.FLOAT8E4M3FNUZ
    texts = np.array(["1", "1e6", "INF", "-INF"], dtype=object)
    for given in (x, x.astype(np.float64), x.astype(ml_dtypes.bfloat16), texts):
        got = result("Cast", opset, given, to=to).astype(np.float32)
        np.testing.assert_array_equal(got, [1, 240, *infinite])
        got = result("CastLike", opset, given, x[:1].astype(ml_dtypes.float8_e4m3fnuz))
        np.testing.assert_array_equal(got.astype(np.float32), [1, 240, *infinite])


def test_shapes_by_attributes() -> None:
    np.testing.assert_array_equal(result("Reshape", 1, A, shape=[0, -1]), A.reshape(2, 12))
    np.testing.assert_array_equal(
        result("Tile", 1, A, np.float32(2), np.float32(1)), np.tile(A, (1, 2, 1))
    )
    np.testing.assert_array_equal(result("Concat", 1, A, A), np.concatenate([A, A], axis=1))
    got = result("Concat", 4, A, A, axis=2)
    np.testing.assert_array_equal(got, np.concatenate([A, A], axis=2))
    for opset in (1, 2):
        first, second = result("Split", opset, A, outputs=2, axis=2, split=[1, 3])
        np.testing.assert_array_equal(first, A[:, :, :1])
        np.testing.assert_array_equal(second, A[:, :, 1:])
        # What PyTorch wrote at opset 6.
        _, second = result("Split", opset, A, outputs=2, axis=-1, split=[1, 3])
        np.testing.assert_array_equal(second, A[:, :, 1:])
    np.testing.assert_array_equal(result("Slice", 1, A, starts=[1], ends=[9], axes=[1]), A[:, 1:])
    np.testing.assert_array_equal(result("Squeeze", 1, A[None], axes=[0]), A)
    np.testing.assert_array_equal(result("Squeeze", 1, A[None, :, :, :1]), A[:, :, 0])


def test_axes_and_indices_from_the_back_as_exporters_wrote_them() -> None:
    by_attributes: list[tuple[str, dict[str, Any], np.ndarray[Any, Any]]] = [
        ("ReduceSum", {"axes": [-1]}, A.sum(axis=-1, keepdims=True)),
        ("ArgMax", {"axis": -1}, A.argmax(axis=-1)[..., None]),
        ("Slice", {"starts": [1], "ends": [9], "axes": [-1]}, A[..., 1:]),
        ("Unsqueeze", {"axes": [-1]}, A[..., None]),
        ("Hardmax", {"axis": -1}, np.eye(4, dtype=np.float32)[A.argmax(axis=-1)]),
    ]
    for op_type, attributes, expected in by_attributes:
        np.testing.assert_allclose(result(op_type, 9, A, **attributes), expected, rtol=1e-6)
    np.testing.assert_array_equal(result("Squeeze", 9, A[..., :1], axes=[-1]), A[..., 0])
    np.testing.assert_array_equal(
        result("Concat", 9, A, A, axis=-1), np.concatenate([A, A], axis=-1)
    )
    np.testing.assert_array_equal(result("Gather", 9, A, np.int64(-1), axis=1), A[:, -1])


def test_flatten_counts_from_the_back_from_11_on() -> None:
    with pytest.raises(ExecutionError, match="negative"):
        result("Flatten", 9, A, axis=-1)


def test_empty_operands_of_concat_add_nothing() -> None:
    empty = np.zeros((0, 5, 5), np.float32)
    np.testing.assert_array_equal(result("Concat", 13, empty, A, axis=0), A)
    np.testing.assert_array_equal(result("Concat", 13, A, empty, axis=0), A)
    assert result("Concat", 13, empty, empty, axis=0).shape == (0, 5, 5)
    with pytest.raises(ExecutionError, match="must match"):
        result("Concat", 13, empty, A, axis=1)
    with pytest.raises(ExecutionError, match="ranks"):
        result("Concat", 13, np.zeros(0, np.float32), A, axis=0)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_divide_channels_and_images(mode: str) -> None:
    image = np.zeros((1, 6, 2, 3), np.float32)
    with pytest.raises(ExecutionError, match="6 channels do not divide"):
        result("DepthToSpace", 11, image, blocksize=2, mode=mode)
    with pytest.raises(ExecutionError, match="width 3 do not divide"):
        result("SpaceToDepth", 13, image, blocksize=2)


@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool"])
def test_a_window_larger_than_its_input_by_one_step_gives_nothing(op_type: str) -> None:
    image = np.ones((1, 1, 2, 3), np.float32)
    assert result(op_type, 10, image, kernel_shape=[3, 2]).shape == (1, 1, 0, 2)
    with pytest.raises(ExecutionError, match="larger than the padded input"):
        result(op_type, 10, image, kernel_shape=[4, 2])


@pytest.mark.parametrize(("opset", "name"), [(1, "paddings"), (2, "pads")])
def test_pad_by_attributes(opset: int, name: str) -> None:
    pads = {name: [0, 1, 0, 0, 2, 1]}
    want = np.pad(A, [(0, 0), (1, 2), (0, 1)], constant_values=2.5)
    np.testing.assert_array_equal(result("Pad", opset, A, value=2.5, **pads), want)
    want = np.pad(A, [(0, 0), (1, 2), (0, 1)], mode="reflect")
    np.testing.assert_array_equal(result("Pad", opset, A, mode="reflect", **pads), want)


def test_upsample_1() -> None:
    x = np.array([[[[1, 2], [3, 4]]]], dtype=np.float32)
    got = result("Upsample", 1, x, height_scale=2.0, width_scale=1.0)
    np.testing.assert_array_equal(got, [[[[1, 2], [1, 2], [3, 4], [3, 4]]]])
    with pytest.raises(ExecutionError, match="at least 1"):
        result("Upsample", 1, x, height_scale=0.5, width_scale=1.0)


@pytest.mark.parametrize("opset", [1, 6])
def test_old_activations_and_clip(opset: int) -> None:
    x = A - 12
    channels = np.array([0.5, 1, 2], dtype=np.float32)
    got = result("PRelu", opset, x, channels)
    np.testing.assert_array_equal(got, np.where(x < 0, x * channels[:, None], x))
    got = result("PRelu", opset, x, channels[:1])
    np.testing.assert_array_equal(got, np.where(x < 0, x * 0.5, x))
    np.testing.assert_array_equal(result("Clip", opset, x, min=-3.0), np.maximum(x, -3))
    np.testing.assert_array_equal(result("Clip", opset, x, max=3.0), np.minimum(x, 3))
    np.testing.assert_array_equal(result("Clip", opset, x), x)
    extra = {"consumed_inputs": [0]} if opset == 1 else {}
    np.testing.assert_array_equal(result("Relu", opset, x, **extra), np.maximum(x, 0))


@pytest.mark.parametrize("opset", [1, 6])
def test_gemm_broadcasts_only_when_asked(opset: int) -> None:
    a, b = A[0], A[1].T
    got = result("Gemm", opset, a, b, MIDDLE, broadcast=1, alpha=2.0, beta=3.0)
    np.testing.assert_allclose(got, 2 * a @ b + 3 * MIDDLE, rtol=1e-6)
    with pytest.raises(ExecutionError, match="broadcast is not set"):
        result("Gemm", opset, a, b, MIDDLE)


@pytest.mark.parametrize("opset", [1, 6])
def test_test_mode_is_an_attribute(opset: int) -> None:
    numbers = [MIDDLE, MIDDLE + 1, MIDDLE / 2, MIDDLE + 3]
    extra = {"consumed_inputs": [0, 0, 0, 1, 1]} if opset == 1 else {}
    scale, bias, mean, var = (n[:, None].astype(np.float64) for n in numbers)
    got = result("BatchNormalization", opset, A, *numbers, is_test=1, **extra)
    want = (A - mean) / np.sqrt(var + np.float64(np.float32(1e-5))) * scale + bias
    np.testing.assert_allclose(got, want, rtol=1e-6)
    axes = (0, 2)
    got = result("BatchNormalization", opset, A, *numbers, **extra)
    want = (A - A.mean(axes, keepdims=True)) / A.std(axes, keepdims=True) * scale + bias
    np.testing.assert_allclose(got, want, rtol=1e-4)
    np.testing.assert_array_equal(result("Dropout", opset, A, is_test=1), A)


def test_statistics_for_each_element() -> None:
    numbers = [A[0] * k for k in (1, 2, 3, 4)]
    got = result("BatchNormalization", 7, A, *numbers, spatial=0, epsilon=0.0)
    want = (A - numbers[2]) / np.sqrt(numbers[3]) * numbers[0] + numbers[1]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_dropout_masks_change_their_type() -> None:
    for opset, dtype in ((7, np.float32), (10, np.bool_), (12, np.bool_), (13, np.bool_)):
        data, mask = result("Dropout", opset, A, outputs=2)
        np.testing.assert_array_equal(data, A)
        assert mask.dtype == dtype
        assert mask.all()


@pytest.mark.parametrize(
    ("attrs", "want"),
    [
        ({"value_int": 3}, np.array(3)),
        ({"value_ints": [3, 4]}, np.array([3, 4])),
        ({"value_float": 0.5}, np.array(0.5, np.float32)),
        ({"value_floats": [0.5]}, np.array([0.5], np.float32)),
        ({"value_string": "a"}, np.array("a", object)),
        ({"value_strings": ["a", "b"]}, np.array(["a", "b"], object)),
        ({"value": numpy_helper.from_array(A)}, A),
    ],
)
def test_constants_in_all_forms(attrs: dict[str, Any], want: Any) -> None:
    got = run(model([helper.make_node("Constant", [], ["y"], **attrs)], [], ["y"], 13), {})["y"]
    assert isinstance(got, np.ndarray)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)


def test_a_constant_has_exactly_one_value() -> None:
    for attrs in ({}, {"value_int": 1, "value_float": 1.0}):
        node = helper.make_node("Constant", [], ["y"], **attrs)
        with pytest.raises(ExecutionError, match="exactly one"):
            run(model([node], [], ["y"], 13), {})


def test_softmax_coerces_until_12_and_not_from_13() -> None:
    for opset in (1, 11, 12):
        got = result("Softmax", opset, A)
        np.testing.assert_allclose(got.sum(axis=(1, 2)), 1, rtol=1e-6)
    np.testing.assert_allclose(result("Softmax", 13, A).sum(axis=2), 1, rtol=1e-6)
    assert result("Hardmax", 12, A, axis=0).sum() == 1
    assert result("Hardmax", 13, A, axis=0).sum() == 12


def test_shape_has_a_start_and_an_end_from_15() -> None:
    assert result("Shape", 13, A).tolist() == [2, 3, 4]
    assert result("Shape", 15, A, start=-2).tolist() == [3, 4]
    assert result("Shape", 15, A, start=1, end=-1).tolist() == [3]
    assert result("Shape", 15, A, start=2, end=1).tolist() == []
    assert result("Size", 1, A) == 24


def test_integer_arithmetic() -> None:
    low = np.array([-(2**31)], dtype=np.int32)
    assert result("Div", 14, low, np.array([-1], np.int32)) == low
    with pytest.raises(ExecutionError, match="division by zero"):
        result("Div", 14, low, low * 0)
    with pytest.raises(ExecutionError, match="fmod must be 1"):
        result("Mod", 13, A, A)


def test_wide_integers_are_shifted_exactly() -> None:
    x = np.array([2**64 - 64, 2**63 + 1], np.uint64)
    by = np.array([1, 64], np.uint64)
    got = result("BitShift", 11, x, by, direction="RIGHT")
    assert got.tolist() == [2**63 - 32, 0]


def test_recurrent_forms_that_are_not_specified_are_refused() -> None:
    layer = [A, np.ones((1, 8, 4), np.float32), np.ones((1, 8, 2), np.float32)]
    for attrs in ({"input_forget": 1}, {"clip": 1.0}, {"activations": ["Affine"] * 3}):
        with pytest.raises(UnsupportedError, match="LSTM, opset 7"):
            result("LSTM", 7, *layer, hidden_size=2, **attrs)


def test_values_of_sequences_and_optionals() -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("SequenceErase", ["s"], ["one"]),
        helper.make_node("SequenceLength", ["one"], ["n"]),
        helper.make_node("Optional", ["one"], ["o"]),
        helper.make_node("OptionalHasElement", ["o"], ["has"]),
    ]
    got = run(model(nodes, [value("x")], ["s", "n", "has"], 15), {"x": A})
    assert isinstance(got["s"], list)
    assert len(got["s"]) == 2
    assert got["n"] == 1
    assert got["has"]


def test_a_scale_larger_than_what_it_scales_is_refused() -> None:
    with pytest.raises(ExecutionError, match="larger than the input"):
        result("LayerNormalization", 17, np.ones((2, 1), np.float32), np.ones(5, np.float32))
