"""Casts there and back where an older definition lacks a dtype."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxreduce_cli import convert, executor, schemas
from onnxreduce_cli.steps.widening import _EXACT_IN, wider_dtype
from tests.support import blockers, converts, one_node, op_types


def all_of(dtype):
    info = np.iinfo(dtype)
    values = np.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1, 2, 100], dtype)
    a, b = np.meshgrid(values, values)
    return {"a": a.astype(dtype), "b": b.astype(dtype)}


SMALL = [np.int8, np.uint8, np.int16, np.uint16]


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("target", [13, 9])
def test_arithmetic_wraps(op_type, dtype, target):
    inputs = all_of(dtype)
    result = converts(one_node(op_type, 14, inputs), target, inputs, exact=True)
    assert op_types(result) == ["Cast", "Cast", op_type, "Cast"]


@pytest.mark.parametrize("dtype", SMALL)
def test_division(dtype):
    inputs = all_of(dtype)
    inputs["b"][inputs["b"] == 0] = 3
    converts(one_node("Div", 14, inputs), 13, inputs, exact=True)


def test_constants_are_cast_beforehand():
    inputs = {"a": np.array([1, -2], np.int8), "b": np.array(3, np.int8)}
    result = converts(one_node("Mul", 14, inputs, initializers=("b",)), 13, inputs, exact=True)
    assert op_types(result) == ["Cast", "Mul", "Cast"]


@pytest.mark.parametrize("op_type", ["Equal", "Less", "Greater"])
@pytest.mark.parametrize("dtype", [*SMALL, np.int32, np.uint32])
def test_comparisons(op_type, dtype):
    inputs = all_of(dtype)
    target = 10 if op_type == "Equal" else 8
    result = converts(one_node(op_type, 11, inputs), target, inputs, exact=True)
    assert op_types(result)[-1] == op_type


@pytest.mark.parametrize("op_type", ["Max", "Min"])
@pytest.mark.parametrize("dtype", [*SMALL, np.int32, np.uint32])
def test_order(op_type, dtype):
    inputs = all_of(dtype)
    converts(one_node(op_type, 12, inputs), 11, inputs, exact=True)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int32])
def test_moving(dtype):
    x = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    one = np.array(1).astype(dtype)
    pads = {"x": x, "p": np.array([1, 0, 0, 2]), "v": one}
    source = one_node("Pad", 13, pads, initializers=("p", "v"))
    for target in (12, 10, 9):
        converts(source, target, pads, exact=True)
    if dtype is not bool:
        converts(one_node("Flatten", 9, {"x": x}), 8, {"x": x}, exact=True)


@pytest.mark.parametrize("dtype", [np.float16])
def test_halves(dtype):
    x = np.array([0, -np.inf, np.nan, 65504], dtype)
    source = one_node("IsInf", 20, {"x": x})
    result = converts(source, 19, {"x": x}, exact=True)
    assert op_types(result) == ["Cast", "IsInf"]


@pytest.mark.parametrize("name", ["FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E4M3FNUZ"])
def test_float8(name):
    elem_type = getattr(TensorProto, name)
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    x = np.arange(256, dtype=np.uint8).reshape(2, 128).view(dtype)
    graph = helper.make_graph(
        [helper.make_node("Transpose", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", elem_type, [2, 128])],
        [helper.make_tensor_value_info("y", elem_type, [128, 2])],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    result = convert(source, 20)
    onnx.checker.check_model(result, full_check=True)
    assert op_types(result) == ["Cast", "Transpose", "Cast"]
    expected, actual = (executor.run(m, {"x": x})["y"] for m in (source, result))
    nans = np.isnan(expected.astype(np.float32))
    assert (np.isnan(actual.astype(np.float32)) == nans).all()
    assert (actual.view(np.uint8)[~nans] == expected.view(np.uint8)[~nans]).all()


X = np.array([[[[0.3, -0.7, 0.9, 0.1], [0.2, 0.5, -0.4, 0.6], [0.8, -0.1, 0.7, -0.9]]] * 2])
FOUR = np.concatenate([X[0, :1], X[0, :1, :1]], 1)
#: Functions of real numbers: the opset that gave them the dtype, their inputs, their attributes.
REAL = {
    "Acos": (22, [X], {}),
    "Acosh": (22, [X + 2], {}),
    "Asin": (22, [X], {}),
    "Asinh": (22, [X], {}),
    "Atan": (22, [X], {}),
    "Atanh": (22, [X * 0.9], {}),
    "AveragePool": (22, [X], {"kernel_shape": [2, 2]}),
    "Celu": (28, [X], {"alpha": 0.5}),
    "Conv": (22, [X, X[:, :, :2, :2]], {}),
    "ConvTranspose": (22, [X, X[:, :, :2, :2].reshape(2, 1, 2, 2)], {}),
    "Cos": (22, [X], {}),
    "Cosh": (22, [X], {}),
    "DeformConv": (22, [X, X[:, :, :2, :2], np.full((1, 8, 2, 3), 0.5)], {}),
    "Det": (22, [X[..., :3]], {}),
    "Einsum": (28, [X, X], {"equation": "abij,abkj->abik"}),
    "Elu": (22, [X], {"alpha": 2.0}),
    "EyeLike": (22, [X[0, 0]], {"k": 1}),
    "GRU": (22, [X[0], X[0, :1], X[0, :1, :, :1]], {"hidden_size": 1}),
    "GlobalAveragePool": (22, [X], {}),
    "GlobalLpPool": (22, [X], {}),
    "GlobalMaxPool": (22, [X], {}),
    "GridSample": (22, [X, np.stack([X[:, 0], X[:, 1]], -1)], {}),
    "HardSigmoid": (22, [X], {}),
    "HardSwish": (22, [X * 5], {}),
    "InstanceNormalization": (22, [X, X[0, 0, 0, :2], X[0, 0, 1, :2]], {}),
    "LSTM": (22, [X[0], FOUR, FOUR[:, :, :1]], {"hidden_size": 1}),
    "LeakyRelu": (16, [X], {"alpha": 0.2}),
    "LpNormalization": (22, [X], {}),
    "LpPool": (22, [X], {"kernel_shape": [2, 2]}),
    "MaxPool": (22, [X], {"kernel_shape": [2, 2]}),
    "Mish": (22, [X], {}),
    "PRelu": (16, [X, X[0, :, :1, :1]], {}),
    "RNN": (22, [X[0], X[0, :1, :1], X[0, :1, :1, :1]], {"hidden_size": 1}),
    "Selu": (22, [X], {}),
    "Sin": (22, [X], {}),
    "Sinh": (22, [X], {}),
    "Softplus": (22, [X], {}),
    "Softsign": (22, [X], {}),
    "Tan": (22, [X], {}),
    "ThresholdedRelu": (22, [X], {"alpha": 0.25}),
}


@pytest.mark.parametrize(
    "op_type",
    [
        pytest.param(name, marks=pytest.mark.newest if boundary > 24 else ())
        for name, (boundary, _, _) in REAL.items()
    ],
)
def test_real_functions_of_bfloat16(op_type):
    boundary, arrays, attributes = REAL[op_type]
    inputs = {f"x{index}": array.astype(ml_dtypes.bfloat16) for index, array in enumerate(arrays)}
    source = one_node(op_type, boundary, inputs, **attributes)
    result = converts(source, boundary - 1, inputs, in_numpy=True)
    assert {"Cast", op_type} == set(op_types(result))
    assert convert(source, 13).opset_import[0].version == 13


BFLOAT16 = TensorProto.BFLOAT16


@pytest.mark.parametrize(
    ("op_type", "boundary", "inputs", "attributes"),
    [
        ("RandomNormal", 22, {}, {"dtype": BFLOAT16, "shape": [3]}),
        ("RandomUniform", 22, {}, {"dtype": BFLOAT16, "shape": [3]}),
        ("RandomNormalLike", 22, {"x": X}, {}),
        ("RandomUniformLike", 22, {"x": X.astype(np.float32)}, {"dtype": BFLOAT16}),
        ("Bernoulli", 22, {"x": X}, {}),
        ("Multinomial", 22, {"x": X[0, 0]}, {}),
        ("EyeLike", 22, {"x": X[0, 0].astype(np.float32)}, {"dtype": BFLOAT16}),
        ("MaxRoiPool", 22, {"x": X, "roi": np.ones((1, 5))}, {"pooled_shape": [1, 1]}),
    ],
)
def test_what_gives_its_dtype_by_an_attribute(op_type, boundary, inputs, attributes):
    """The results, random or of no kernel, keep their dtype: that is all there is to compare."""
    inputs = {
        name: array if array.dtype == np.float32 else array.astype(ml_dtypes.bfloat16)
        for name, array in inputs.items()
    }
    source = one_node(op_type, boundary, inputs, **attributes)
    result = convert(source, boundary - 1)
    onnx.checker.check_model(result, full_check=True)
    assert "Cast" in op_types(result)
    assert result.graph.output == source.graph.output


@pytest.mark.parametrize("name", ["BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2FNUZ"])
def test_filled_with_a_narrow_value(name):
    value = helper.make_tensor("value", getattr(TensorProto, name), [1], [1.5])
    shape = np.array([2, 3])
    source = one_node("ConstantOfShape", 20, {"shape": shape}, value=value, output_shapes=([2, 3],))
    result = converts(source, 19, {"shape": shape}, in_numpy=True)
    assert op_types(result) == ["ConstantOfShape", "Cast"]


def test_sums_and_exponents():
    x = np.array([[0.1, 3, -7], [100, 0.5, 2]])
    for dtype, source in ((np.float16, 14), (ml_dtypes.bfloat16, 14)):
        inputs = {"x": x.astype(dtype), "axis": np.array(1)}
        converts(one_node("CumSum", source, inputs), 13, inputs, in_numpy=True)
    inputs = {"x": np.abs(x).astype(np.float32), "y": x.astype(ml_dtypes.bfloat16)}
    converts(one_node("Pow", 15, inputs), 14, inputs, in_numpy=True)


@pytest.mark.newest
@pytest.mark.parametrize("alpha", [1.0, 0.5, -0.5])
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_celu(dtype, alpha):
    inputs = {"x": np.array([-1e4, -0.3, 0, 7, np.inf, -np.inf, np.nan], dtype)}
    source = one_node("Celu", 28, inputs, alpha=alpha)
    for target in (27, 12, 11, 7):
        converts(source, target, inputs, in_numpy=True)


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "LeakyRelu"])
def test_bfloat16_below_13_has_no_way(op_type):
    inputs = ["x"] if op_type == "LeakyRelu" else ["x", "x"]
    graph = helper.make_graph(
        [helper.make_node(op_type, inputs, ["y"], name="n")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [2])],
        [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, [2])],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    (blocker,) = blockers(source, 12)
    assert "tensor(bfloat16), which came with opset 13" in str(blocker)


def test_not_where_results_would_differ():
    inputs = {"x": np.array(["a", "b"], object)}
    (blocker,) = blockers(one_node("Concat", 4, inputs, axis=0), 3)
    assert "Concat does not take tensor(string) at opset 3, nor a dtype" in str(blocker)
    assert wider_dtype("MatMul", TensorProto.INT32, frozenset({"tensor(double)"}), 9) is None


@pytest.mark.parametrize("narrow", sorted(_EXACT_IN))
def test_holding(narrow):
    """Every number of a dtype survives the way there and back."""
    dtype = helper.tensor_dtype_to_np_dtype(narrow)
    if dtype.kind in "iu" and dtype.itemsize > 2:
        info = np.iinfo(dtype)
        values = np.array([info.min, info.max, info.max - 1, info.max // 3], dtype)
    elif dtype.kind == "b":
        values = np.array([False, True])
    else:
        count = 2 ** (8 * dtype.itemsize)
        unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
        values = np.arange(count).astype(unsigned).view(dtype)
    for wide in _EXACT_IN[narrow]:
        back = values.astype(helper.tensor_dtype_to_np_dtype(wide)).astype(dtype)
        same = (back == values) | ((back != back) & (values != values))
        assert same.all(), wide


def test_operators_exist():
    from onnxreduce_cli.steps import widening

    named = set().union(
        widening._MOVE_ELEMENTS,
        widening._COMPARE_ELEMENTS,
        widening._ROUNDING,
        widening._ARITHMETIC,
        widening._REAL,
    )
    assert named <= set(schemas.operators())


def test_casts_below_6():
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    source = one_node("Concat", 4, {"x": x, "z": x + 1}, axis=0)
    converts(source, 3, {"x": x, "z": x + 1}, exact=True)


def test_a_constant_that_saturates():
    source = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g () => (float[2] y) <float[2] c = {10000, 1}> {
            h = Cast<to = 17>(c)
            t = Transpose(h)
            y = Cast<to = 1>(t)
        }""")
    result = converts(source, 20, {}, exact=True)
    assert executor.run(result, {})["y"].tolist() == [448, 1]


def with_unknown(follower: str) -> onnx.ModelProto:
    """A model in which an operator that onnx does not know gives what Identity reads."""
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 13, "custom" : 1]>
        g (float[1,1,4,4] x, float[1,1,2,2] w) => (float[1,1,a,b] y) {{
            h = custom.Hide(x)
            i = Identity(h)
            {follower}
        }}""")


def test_types_that_the_operators_around_limit():
    source = with_unknown("l = LpPool<kernel_shape = [2,2]>(i)\n y = Cast<to = 1>(l)")
    assert op_types(convert(source, 12)) == ["Hide", "Identity", "LpPool", "Cast"]
    source = with_unknown("y = Cast<to = 1>(i)")
    (blocker,) = blockers(source, 12)
    assert blocker.op_type == "Hide"
    assert "the type of 'h'" in blocker.reason
    assert op_types(convert(source, 12, types={"h": "float"})) == op_types(source)
