"""The names of dtypes, as people type them."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto

import onnxreduce_cli
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.graph.values import dtype_name, parse_dtype
from tests.support import model


@pytest.mark.parametrize(
    ("names", "dtype"),
    [
        ("float float32 fp32 f32 FLOAT", TensorProto.FLOAT),
        ("double float64 fp64 f64", TensorProto.DOUBLE),
        ("float16 fp16 f16 half", TensorProto.FLOAT16),
        ("bfloat16 bf16 BF16", TensorProto.BFLOAT16),
        ("int64 i64", TensorProto.INT64),
        ("int32 i32", TensorProto.INT32),
        ("uint8 u8", TensorProto.UINT8),
        ("float8e4m3fn float8_e4m3fn", TensorProto.FLOAT8E4M3FN),
        ("bool", TensorProto.BOOL),
        ("string", TensorProto.STRING),
    ],
)
def test_a_dtype_has_several_names(names: str, dtype: int) -> None:
    assert {parse_dtype(name) for name in names.split()} == {dtype}


def test_onnx_has_the_last_word_on_every_name() -> None:
    numbers = [number for number in TensorProto.DataType.values() if number]
    assert [parse_dtype(dtype_name(number)) for number in numbers] == numbers


@pytest.mark.parametrize("name", ["flaot32", "", "tensor", "f31"])
def test_an_unknown_name_gets_near_ones_or_all(name: str) -> None:
    with pytest.raises(UsageError, match=f"there is no dtype '{name}'; (did you mean|there are)"):
        parse_dtype(name)


def test_every_option_takes_them() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 17]>
        agraph (float[2] x) => (float[2] y) { y = Relu(x) }""")
    long = onnxreduce_cli.convert(source, dtypes={"float": "float16"})
    assert onnxreduce_cli.convert(source, dtypes={"fp32": "half"}) == long
    assert onnxreduce_cli.plan(source, 13, types={"y": "f32[2]"}).possible
    assert onnxreduce_cli.convert(source, io_dtypes={"x": "half"}) == onnxreduce_cli.convert(
        source, io_dtypes={"x": "float16"}
    )
    onnx.checker.check_model(long, full_check=True)
