"""QuantizeLinear and DequantizeLinear: dtypes that opsets lack, and those of scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnxreduce_cli import convert
from tests.steps.quantization.test_quantize_dequantize_linear_scales import NASTY, quantize
from tests.support import (
    assert_same,
    blockers,
    converts,
    one_node,
    op_types,
    run,
)


def test_int32_is_cast() -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    source = quantize(13, x, np.float32(0.5))
    assert op_types(converts(source, 19, {"x": x})) == ["Cast", "QuantizeLinear"]


def test_dtypes_apart() -> None:
    halves = NASTY.clip(-1000, 1000).astype(np.float16)
    same = quantize(23, NASTY, np.float32(0.25), np.uint8(3), precision=TensorProto.FLOAT)
    converts(same, 22, {"x": NASTY})
    # ONNX Runtime's kernel fails on a float16 with a scale of float: its truth is that in float.
    mixed = convert(quantize(23, halves, np.float32(0.25), np.uint8(3)), 22)
    assert op_types(mixed) == ["Cast", "QuantizeLinear"]
    wide = run(same, {"x": halves.astype(np.float32)})
    assert_same(wide["y0"], run(mixed, {"x": halves})["y0"])
    narrow = quantize(23, NASTY, np.float16(0.25), np.uint8(3))
    converts(narrow, 22, {"x": NASTY}, exact=True, in_numpy=True)
    whole = np.arange(-4, 4, dtype=np.int32)
    converts(quantize(23, whole, np.float32(0.3)), 22, {"x": whole}, exact=True, in_numpy=True)


@pytest.mark.newest
def test_dequantized_dtype() -> None:
    x = np.arange(-6, 6, dtype=np.int8)
    plain = {"op_type": "DequantizeLinear"}
    for attributes in ({"output_dtype": TensorProto.FLOAT}, {"output_dtype": 0}):
        converts(quantize(23, x, np.float32(0.3), **plain, **attributes), 22, {"x": x}, exact=True)
    wider = quantize(23, x, np.float16(0.3), **plain, output_dtype=TensorProto.FLOAT)
    converts(wider, 22, {"x": x}, exact=True)
    narrower = quantize(23, x, np.float32(0.3), **plain, output_dtype=TensorProto.FLOAT16)
    converts(narrower, 22, {"x": x}, in_numpy=True)


@pytest.mark.parametrize("shape", [(), (4,)])
def test_halves(shape: tuple[int, ...]) -> None:
    scale = np.linspace(0.1, 0.3, int(np.prod(shape))).reshape(shape).astype(np.float16)
    zero = np.full(shape, 3, np.int8)
    x = NASTY.clip(-1000, 1000).astype(np.float16)
    data = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    for target in (18, 12, 7):
        source = quantize(19, x, scale, zero, saturate=0)
        converts(source, target, {"x": x}, exact=True, in_numpy=True)
        source = quantize(19, data, scale, zero, op_type="DequantizeLinear")
        converts(source, target, {"x": data}, exact=True)


def test_saturate_of_integers() -> None:
    source = quantize(19, NASTY, np.float32(0.3), np.int8(3), saturate=0)
    assert op_types(converts(source, 18, {"x": NASTY}, exact=True)) == ["QuantizeLinear"]


NARROW = [
    ("INT4", 21),
    ("UINT4", 21),
    ("FLOAT8E4M3FN", 19),
    ("FLOAT8E5M2FNUZ", 19),
    ("FLOAT4E2M1", 23),
]


@pytest.mark.newest
@pytest.mark.parametrize(("dtype", "since"), [*NARROW, ("INT2", 25), ("UINT2", 25)])
@pytest.mark.parametrize("granularity", ["tensor", "axis", "blocks"])
def test_constants_in_wider_storage(dtype: str, since: int, granularity: str) -> None:
    """What is dequantized is a constant: that needs no such dtype."""
    narrow = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, dtype))
    data = np.resize([0, 1, 2, 3, -2, -1], (3, 4)).clip(
        0 if "UINT" in dtype else -2, 1 if "INT2" in dtype else 3
    )
    shape = {"tensor": (), "axis": (4,), "blocks": (3, 2)}[granularity]
    scale = np.linspace(0.1, 0.3, int(np.prod(shape))).reshape(shape).astype(np.float32)
    attributes = {"axis": 1, "block_size": 2} if granularity == "blocks" else {"axis": 1}
    opset = max(since, 21 if granularity == "blocks" else since)
    inputs = {"w": data.astype(narrow), "scale": scale}
    if "INT" in dtype:
        inputs["zero"] = np.ones(shape, narrow)
    node = one_node("DequantizeLinear", opset, inputs, initializers=tuple(inputs), **attributes)
    node.graph.input.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [3, 4]))
    node.graph.node.append(helper.make_node("Add", ["y0", "b"], ["y"]))
    node.graph.output[0].name = "y"
    feeds = {"b": np.zeros((3, 4), np.float32)}
    for target in (since - 1, 12, 7):
        low = converts(node, target, feeds, exact=True, in_numpy=True)
        dtypes = {tensor.data_type for tensor in low.graph.initializer}
        assert getattr(TensorProto, dtype) not in dtypes


@pytest.mark.newest
@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize(
    ("dtype", "opset"),
    [("INT4", 21), ("UINT2", 25), ("FLOAT8E4M3FN", 19), ("FLOAT8E5M2FNUZ", 21), ("FLOAT4E2M1", 23)],
)
def test_large_constants_keep_their_bytes(dtype: str, opset: int, raw: bool) -> None:
    to = getattr(TensorProto, dtype)
    narrow = helper.tensor_dtype_to_np_dtype(to)
    # More than are looked at, and not a whole number of bytes.
    shape = (3, 22001)
    data = np.random.default_rng(4).integers(0, 4, shape).astype(np.float32).astype(narrow)
    tensor = numpy_helper.from_array(data, "w")
    if not raw:
        content = tensor.raw_data
        tensor.ClearField("raw_data")
        tensor.int32_data.extend(content)
    inputs = {"w": data, "scale": np.float32(0.3)}
    source = one_node("DequantizeLinear", opset, inputs, initializers=("w", "scale"))
    source.graph.initializer[0].CopyFrom(tensor)
    source.graph.node.append(helper.make_node("Add", ["y0", "b"], ["y"]))
    source.graph.output[0].name = "y"
    source.graph.input.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [1]))
    for target in (18, 9, 7):
        low = converts(source, target, {"b": np.zeros(1, np.float32)}, exact=True, check=True)
        assert to not in {item.data_type for item in low.graph.initializer}
        assert low.ByteSize() < source.ByteSize() + 5000


def there_and_back(to: int, opset: int, zero: Any, **attributes: Any) -> ModelProto:
    """What is quantized to a dtype and dequantized again, twice."""
    inputs = {"x": NASTY, "scale": attributes.pop("scale")}
    if zero is None:
        attributes["output_dtype"] = to
    else:
        inputs["zero"] = zero
    initializers = tuple(inputs)[1:]
    source = one_node("QuantizeLinear", opset, inputs, initializers=initializers, **attributes)
    names, parts = ["y0", *initializers], {**attributes}
    for name in ("output_dtype", "saturate", "precision"):
        parts.pop(name, None)
    nodes = [
        helper.make_node("DequantizeLinear", names, ["a"], **parts),
        helper.make_node("DequantizeLinear", names, ["b"], **parts),
        helper.make_node("Concat", ["a", "b"], ["y"], axis=0),
    ]
    source.graph.node.extend(nodes)
    source.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [6, 4]))
    return source


@pytest.mark.newest
@pytest.mark.parametrize("granularity", ["tensor", "axis", "blocks"])
@pytest.mark.parametrize(
    ("dtype", "opset"),
    [("INT4", 21), ("UINT4", 25), ("INT2", 25), ("FLOAT8E4M3FN", 19), ("FLOAT8E5M2", 25)],
)
def test_quantized_in_wider_dtype(dtype: str, opset: int, granularity: str) -> None:
    shape = {"tensor": (), "axis": (4,), "blocks": (3, 2)}[granularity]
    scale = np.linspace(0.3, 0.5, int(np.prod(shape))).reshape(shape).astype(np.float32)
    to = getattr(TensorProto, dtype)
    narrow = helper.tensor_dtype_to_np_dtype(to)
    options: dict[str, Any] = {"scale": scale, "axis": 1}
    if granularity == "blocks":
        options["block_size"] = 2
        opset = max(opset, 21)
    saturations = (0, 1) if "FLOAT" in dtype else (1,)
    rng = np.random.default_rng(5)
    sizes = np.exp2(rng.uniform(-18, 20, NASTY.shape)) * rng.choice([-1, 1], NASTY.shape)
    near = np.array([464.0, 465, 432, 16 / 1024, 1.0625, 1.1875, 2**-9, 2**-10, 61440, 0, 1, 2])
    for zero in (None, (np.zeros if "FLOAT" in dtype else np.ones)(shape, narrow)):
        if zero is None and opset < 21:
            continue
        for saturate in saturations:
            source = there_and_back(to, opset, zero, saturate=saturate, **options)
            # Exactly between two numbers of the grid, or next to that, when divided by 0.3.
            middle = (near.reshape(3, 4) * 0.3).astype(np.float32)
            nan = NASTY.copy()
            nan[0, 0] = np.nan
            feeds = [{"x": x} for x in (NASTY, sizes.astype(np.float32), middle, nan)]
            for target in (18, 12, 7):
                low = converts(source, target, *feeds, exact=True, in_numpy=True)
                # Integers of 8 bits stand for narrower ones as far as the opset scales like that.
                least = {"tensor": 10, "axis": 13, "blocks": 21}[granularity]
                stays = "INT" in dtype and target >= least
                assert ("QuantizeLinear" in op_types(low)) == stays


def test_quantized_in_wider_dtype_by_constants_only() -> None:
    narrow = helper.tensor_dtype_to_np_dtype(TensorProto.INT4)
    source = there_and_back(TensorProto.INT4, 21, np.ones((), narrow), scale=np.float32(0.3))
    source.graph.output.append(helper.make_tensor_value_info("y0", TensorProto.INT4, [3, 4]))
    (blocker,) = blockers(source, 20)
    assert "QuantizeLinear" in str(blocker)
    source.graph.output.pop()
    source.graph.input.append(helper.make_tensor_value_info("zero", TensorProto.INT4, []))
    assert all("int4" in blocker.reason for blocker in blockers(source, 20))


def test_what_is_no_constant_blocks() -> None:
    narrow = helper.tensor_dtype_to_np_dtype(TensorProto.INT4)
    source = quantize(21, np.ones(3, narrow), np.float32(1), op_type="DequantizeLinear")
    (blocker,) = blockers(source, 20)
    assert "given to the model, in int4, which opset 20 does not have" in blocker.reason


@pytest.mark.newest
@pytest.mark.parametrize("known", ["dims", "rank", "nothing"])
def test_quantized_in_wider_dtype_of_size_0(known: str) -> None:
    zero = np.zeros((), helper.tensor_dtype_to_np_dtype(TensorProto.FLOAT8E5M2))
    inputs = {"x": NASTY[:0], "s": np.array(0.5, np.float32), "z": zero}
    shapes = {} if known == "dims" else {"x": ["a", "b"]}
    hidden = ("x",) if known == "nothing" else ()
    options: dict[str, Any] = {"initializers": ("s", "z"), "shapes": shapes, "hidden": hidden}
    source = one_node("QuantizeLinear", 20, inputs, **options)
    source.graph.node.add(op_type="DequantizeLinear", input=["y0", "s", "z"], output=["y"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])
    source.graph.output[0].CopyFrom(y)
    feeds = [{"x": NASTY[:0]}] if known == "dims" else [{"x": NASTY[:0]}, {"x": NASTY}]
    # What is counted takes opset 9.
    for target in (18, 12, 7) if known == "dims" else (18, 12, 9):
        converts(source, target, *feeds, exact=True)
