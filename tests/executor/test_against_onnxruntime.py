"""Kernels that the backend cases hardly reach, against ONNX Runtime: old definitions, odd forms."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from onnxreduce_cli.executor import run
from tests.executor.models import one_node

ort.set_default_logger_severity(4)

Arrays = dict[str, np.ndarray[Any, Any]]


def real(*shape: int, seed: int = 0, low: float = -2, high: float = 2) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def whole(*numbers: Any) -> np.ndarray[Any, Any]:
    return np.array(numbers, dtype=np.int64)


IMAGE = real(2, 4, 7, 9)
LINE = real(2, 3, 11)
Case = tuple[str, int, Arrays, int, dict[str, Any]]
CASES: list[Case] = []


def case(op: str, opsets: tuple[int, ...], inputs: Arrays, outputs: int = 1, **attrs: Any) -> None:
    CASES.extend((op, opset, inputs, outputs, attrs) for opset in opsets)


for _pads in ([0, 0, 0, 0], [1, 0, 1, 2], [1, 1, 1, 1]):
    for _strides in ([1, 1], [2, 3]):
        _common: dict[str, Any] = {"kernel_shape": [3, 3], "pads": _pads, "strides": _strides}
        case("MaxPool", (7, 8, 10, 11, 12), {"x": IMAGE}, **_common)
        case("MaxPool", (8, 12), {"x": IMAGE}, 2, **_common, storage_order=1)
        case("MaxPool", (10, 12), {"x": IMAGE}, 2, **_common, dilations=[2, 1], ceil_mode=1)
        case("AveragePool", (7, 10, 11), {"x": IMAGE}, **_common)
        case("AveragePool", (7, 11), {"x": IMAGE}, **_common, count_include_pad=1)
        case("AveragePool", (19,), {"x": IMAGE}, **_common, ceil_mode=1)
        if _pads != [1, 0, 1, 2]:
            # ONNX Runtime 1.23 counts wrong where the pads of an axis differ.
            case("AveragePool", (19,), {"x": IMAGE}, **_common, count_include_pad=1)
        case("LpPool", (7, 11, 18), {"x": IMAGE}, **_common, p=3)
        case("Conv", (7, 11), {"x": IMAGE, "w": real(6, 2, 3, 3, seed=1)}, group=2, **_common)
        _up = {"x": IMAGE, "w": real(4, 2, 3, 3, seed=1), "b": real(4, seed=2)}
        case("ConvTranspose", (7, 11), _up, group=2, **_common)
for _auto in ("SAME_UPPER", "SAME_LOWER", "VALID"):
    _common = {"kernel_shape": [2, 4], "auto_pad": _auto, "strides": [2, 3]}
    case("MaxPool", (7, 12), {"x": IMAGE}, **_common)
    case("AveragePool", (7, 11, 19), {"x": IMAGE}, **_common)
    case("Conv", (7, 11), {"x": IMAGE, "w": real(5, 4, 2, 4)}, **_common)
case("MaxPool", (8, 12), {"x": LINE}, 2, kernel_shape=[4], strides=[2])
case("Conv", (7,), {"x": LINE, "w": real(3, 1, 3), "b": real(3)}, group=3, dilations=[2])
_w5 = real(2, 3, 2, 3, 2)
case("Conv", (11,), {"x": real(1, 3, 4, 5, 6), "w": _w5}, pads=[1, 0, 1, 0, 2, 0])
_t = {"x": IMAGE, "w": real(4, 3, 3, 3)}
case("ConvTranspose", (11,), _t, strides=[2, 2], output_padding=[1, 1], dilations=[2, 1])
case("ConvTranspose", (11,), _t, strides=[2, 2], output_shape=[15, 20])
for _name in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
    case(_name, (7,), {"x": IMAGE})
    case(_name, (7,), {"x": LINE})

for _mode in ("nearest", "linear"):
    _scales = np.array([1, 1, 2, 2.5], dtype=np.float32)
    case("Upsample", (7,), {"x": IMAGE}, mode=_mode, scales=_scales.tolist())
    case("Upsample", (9,), {"x": IMAGE, "s": _scales}, mode=_mode)
    case("Resize", (10,), {"x": IMAGE, "s": _scales}, mode=_mode)
_up = {"x": IMAGE, "roi": np.zeros(0, np.float32), "s": np.array([1, 1, 2, 1.5], np.float32)}
for _where in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
    # ONNX Runtime rounds the output's length before it aligns corners, onnx's cases do not.
    if _where == "align_corners":
        _up = {**_up, "s": np.array([1, 1, 2, 3], np.float32)}
    else:
        _up = {**_up, "s": np.array([1, 1, 2, 1.5], np.float32)}
    for _mode in ("nearest", "linear", "cubic"):
        _sized = {**_up, "s": np.zeros(0, np.float32), "n": whole(2, 4, 10, 5)}
        case("Resize", (11, 13, 18), _sized, mode=_mode, coordinate_transformation_mode=_where)
        case("Resize", (11, 13, 18), _up, mode=_mode, coordinate_transformation_mode=_where)

_down = {"x": IMAGE, "roi": np.zeros(0, np.float32), "s": np.array([1, 1, 0.4, 0.7], np.float32)}
for _mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
    case("Resize", (11, 18), _down, nearest_mode=_mode)
case("Resize", (11, 18), _down, mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)
_crop = {**_down, "roi": np.array([0, 0, 0.2, -0.1, 1, 1, 0.9, 1.2], np.float32)}
for _mode in ("nearest", "linear"):
    _fill = {"extrapolation_value": 7.0, "mode": _mode}
    _crop_mode = "tf_crop_and_resize"
    _sized = {**_crop, "s": np.zeros(0, np.float32), "n": whole(2, 4, 10, 5)}
    case("Resize", (11, 18), _sized, **_fill, coordinate_transformation_mode=_crop_mode)
case("Resize", (11,), _down, coordinate_transformation_mode="tf_half_pixel_for_nn")
for _mode in ("nearest", "linear", "cubic"):
    # What keeps the aspect ratio has a length that is no integer until it is rounded.
    _symmetric = {"mode": _mode, "coordinate_transformation_mode": "half_pixel_symmetric"}
    _ratio = {"axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller"}
    _sized = {**_down, "s": np.zeros(0, np.float32), "n": whole(7, 8)}
    case("Resize", (19,), _sized, **_symmetric, **_ratio)
    case("Resize", (19,), _down, **_symmetric)

for _direction, _n in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
    for _op, _gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        _layer = {
            "x": real(5, 2, 3),
            "w": real(_n, _gates * 4, 3, seed=1),
            "r": real(_n, _gates * 4, 4, seed=2),
            "b": real(_n, _gates * 8, seed=3),
            "l": np.array([5, 3], dtype=np.int32),
            "h": real(_n, 2, 4, seed=4),
        }
        if _op == "LSTM":
            _layer |= {"c": real(_n, 2, 4, seed=5), "p": real(_n, 12, seed=6)}
        _outs = 3 if _op == "LSTM" else 2
        case(_op, (7, 14), _layer, _outs, hidden_size=4, direction=_direction)
        if _op != "LSTM":
            case(_op, (7,), _layer, _outs, hidden_size=4, direction=_direction, clip=0.5)
        if _op == "GRU":
            case(_op, (7,), _layer, 2, hidden_size=4, direction=_direction, linear_before_reset=1)
case(
    "LSTM",
    (7,),
    {"x": real(5, 2, 3), "w": real(1, 16, 3, seed=1), "r": real(1, 16, 4, seed=2)},
    3,
    hidden_size=4,
    activations=["HardSigmoid", "Softsign", "Relu"],
)

_stats = {k: real(4, seed=i, low=0.1) for i, k in enumerate(("s", "b", "m", "v"))}
case("BatchNormalization", (7, 9, 14, 15), {"x": IMAGE, **_stats}, epsilon=0.01)
case("InstanceNormalization", (7,), {"x": IMAGE, "s": real(4), "b": real(4, seed=1)})
case("LayerNormalization", (17,), {"x": IMAGE, "s": real(7, 9), "b": real(7, 9, seed=1)}, 3, axis=2)
for _size in (1, 3, 5):
    case("LRN", (7, 13), {"x": IMAGE}, size=_size, alpha=0.5, beta=0.6, bias=1.5)
for _p in (1, 2):
    case("LpNormalization", (7,), {"x": LINE}, p=_p, axis=1)

_a, _b = real(3, 4), real(4, 5, seed=1)
case("Gemm", (7, 9, 11), {"a": _a, "b": _b, "c": real(3, 1)}, alpha=0.5, beta=2.0)
case("Gemm", (11, 13), {"a": _a.T.copy(), "b": _b.T.copy()}, transA=1, transB=1)
case("MatMul", (7, 9, 13), {"a": real(2, 1, 3, 4), "b": real(3, 4, 2)})
case("MatMul", (13,), {"a": real(4), "b": real(2, 4, 3)})

_m = np.array([-7, 7, -7, 7, 0], dtype=np.int32)
_n5 = np.array([3, -3, -3, 3, 2], dtype=np.int32)
case("Mod", (10, 13), {"a": _m, "b": _n5})
case("Mod", (10, 13), {"a": _m, "b": _n5}, fmod=1)
case("Mod", (10, 13), {"a": real(9, high=9), "b": real(9, seed=1, low=0.3)}, fmod=1)
case("Div", (7, 13, 14), {"a": _m, "b": _n5})
case("Pow", (7, 12, 13, 15), {"a": real(4, low=0.1), "b": real(3, 1)})
case("Pow", (12, 13, 15), {"a": _m, "b": np.array([2.0], dtype=np.float32)})
case("Pow", (12, 15), {"a": _m, "b": np.array([3], dtype=np.int64)})
case("PRelu", (7, 9), {"x": IMAGE, "s": real(4, 1, 1)})
for _op in ("Max", "Min", "Sum", "Mean"):
    case(_op, (8, 13), {"a": real(3, 4), "b": real(4, seed=1), "c": real(3, 1, seed=2)})
case("Max", (12,), {"a": np.array([1, np.nan], np.float32), "b": np.array([np.nan, 2], np.float32)})
for _op in ("Elu", "Selu", "HardSigmoid", "LeakyRelu", "Softplus", "Softsign", "Sigmoid"):
    case(_op, (7,), {"x": real(50, low=-40, high=40)})
case("Celu", (12,), {"x": real(20)}, alpha=0.7)
case("ThresholdedRelu", (10,), {"x": real(20)}, alpha=0.7)
case("Shrink", (9,), {"x": real(20)}, lambd=0.7, bias=0.3)
case("Shrink", (9,), {"x": np.arange(-3, 4, dtype=np.int32)}, lambd=1.5, bias=1.0)
case("Clip", (7,), {"x": np.array([-np.inf, -1, 0, 9, np.inf], np.float32)}, min=-2.0)
_clip = {"x": np.array([-np.inf, -1, 0, 9, np.inf, np.nan], np.float32)}
case("Clip", (11, 12, 13), {**_clip, "low": np.array(1, np.float32)})
case("Clip", (12, 13), {**_clip, "low": np.array(3, np.float32), "high": np.array(1, np.float32)})
case("Round", (11,), {"x": np.array([0.5, 1.5, -0.5, -2.5, 2.4], np.float32)})
case("IsInf", (10,), {"x": _clip["x"]}, detect_negative=0)
case("BitShift", (11,), {"a": np.array([200, 3], np.uint8), "b": np.array([1, 7], np.uint8)},
     direction="LEFT")  # fmt: skip

_cut = {"starts": whole(1, 5), "ends": whole(-1, -100), "axes": whole(0, 2), "st": whole(1, -2)}
case("Slice", (10,), {"x": real(4, 3, 9), **_cut})
case("Slice", (11, 13), {"x": real(4, 3, 9), **_cut, "axes": whole(-3, -1)})
case("Slice", (7,), {"x": real(4, 3, 9)}, starts=[1, -4], ends=[1000, -1], axes=[0, 2])
case("Pad", (7,), {"x": real(3, 4)}, pads=[1, 0, 2, 3], mode="reflect")
case("Pad", (7,), {"x": real(3, 4)}, pads=[1, -1, 2, 3], value=1.5)
for _mode in ("constant", "edge", "reflect"):
    case("Pad", (11, 13, 18), {"x": real(3, 4), "p": whole(1, 2, 0, 3)}, mode=_mode)
case("Pad", (19,), {"x": real(3, 4), "p": whole(1, 2, 0, 3)}, mode="wrap")
case("Split", (7, 11), {"x": real(5, 7)}, 3, axis=1, split=[2, 0, 5])
case("Split", (13,), {"x": real(5, 7), "s": whole(2, 0, 5)}, 3, axis=-1)
case("Split", (18,), {"x": real(5, 7)}, 3, axis=1, num_outputs=3)
_ties = np.random.default_rng(0).integers(0, 4, (3, 8)).astype(np.float32)
case("TopK", (7,), {"x": _ties}, 2, k=5, axis=1)
case("TopK", (10, 11), {"x": _ties, "k": whole(5)}, 2, axis=1)
case("TopK", (11,), {"x": _ties, "k": whole(5)}, 2, axis=-1, largest=0)
for _op in ("ArgMax", "ArgMin"):
    case(_op, (7, 11, 13), {"x": _ties}, axis=1)
    case(_op, (12, 13), {"x": _ties}, axis=-1, keepdims=0, select_last_index=1)
case("Gather", (7,), {"x": real(3, 4), "i": whole([0, 2], [1, 1])}, axis=1)
case("Gather", (11, 13), {"x": real(3, 4), "i": whole([0, -1], [1, 1])}, axis=-1)
case("GatherElements", (11, 13), {"x": real(3, 4), "i": whole([0, -1, 2], [1, 1, 0])}, axis=1)
case("GatherND", (11, 13), {"x": real(3, 4, 5), "i": whole([[0, -1]], [[2, 2]])})
case("GatherND", (12, 13), {"x": real(2, 4, 5), "i": whole([[0], [3]], [[2], [2]])}, batch_dims=1)
_put = {"x": real(3, 4), "i": whole([0, -1, 2], [1, 1, 0]), "u": real(2, 3, seed=1)}
case("ScatterElements", (11, 13), _put, axis=0)
case("ScatterElements", (16, 18), _put, axis=0, reduction="add")
case("ScatterElements", (18,), _put, axis=0, reduction="max")
_put = {"x": real(3, 4), "i": whole([0, 3], [2, -1], [0, 3]), "u": real(3, seed=1)}
case("ScatterND", (16, 18), _put, reduction="mul")
for _reverse in (0, 1):
    for _exclusive in (0, 1):
        _sum = {"x": real(3, 4), "axis": np.array(-1)}
        case("CumSum", (11, 14), _sum, reverse=_reverse, exclusive=_exclusive)
_hot = {"i": whole([0, 5], [-1, 2]), "d": whole(3), "v": np.array([1, 7], np.float32)}
case("OneHot", (11,), _hot, axis=1)
case("DepthToSpace", (7, 11), {"x": real(1, 8, 2, 3)}, blocksize=2)
case("DepthToSpace", (11, 13), {"x": real(1, 8, 2, 3)}, blocksize=2, mode="CRD")
case("SpaceToDepth", (7, 13), {"x": real(1, 2, 4, 6)}, blocksize=2)
case("Compress", (9, 11), {"x": real(3, 4), "c": np.array([True, False, True])}, axis=1)
case("Compress", (9,), {"x": real(3, 4), "c": np.array([True, False, True])})
case("ReverseSequence", (10,), {"x": real(4, 3, 2), "l": whole(1, 4, 2)})
case("Unique", (11,), {"x": _ties}, 4, sorted=0)
case("Unique", (11,), {"x": _ties}, 4, axis=1)
case("Tile", (7, 13), {"x": real(2, 3), "r": whole(2, 2)})
case("Expand", (8, 13), {"x": real(3, 1), "s": whole(2, 1, 4)})
case("EyeLike", (9,), {"x": real(3, 5)}, k=-1)
case("Trilu", (14,), {"x": real(2, 3, 4), "k": np.array(1)}, upper=0)
case("Range", (11,), {"a": np.array(1.0, np.float32), "b": np.array(-2.0, np.float32),
                      "c": np.array(-0.7, np.float32)})  # fmt: skip
case("NonZero", (9, 13), {"x": _ties})
case("Flatten", (7, 9), {"x": real(2, 3, 4)}, axis=2)
case("Flatten", (11, 13), {"x": real(2, 3, 4)}, axis=-1)
case("Concat", (7, 11), {"a": real(2, 3), "b": real(2, 1)}, axis=1)
case("Squeeze", (7, 11), {"x": real(1, 3, 1)}, axes=[2])
case("Unsqueeze", (7, 11), {"x": real(2, 3)}, axes=[0, 3])
case("Reshape", (7, 13), {"x": real(2, 3, 4), "s": whole(0, -1)})
case("Reshape", (14,), {"x": real(0, 3), "s": whole(3, 0)}, allowzero=1)
_boxes = {"b": real(1, 9, 4, low=0), "s": real(1, 2, 9, seed=1)}
for _limits in ((), (1,)):
    _thresholds = {"i": np.full(_limits, 0.4, np.float32), "t": np.full(_limits, 0.1, np.float32)}
    case("NonMaxSuppression", (10, 11), {**_boxes, "k": np.full(_limits, 3), **_thresholds})
case("Softmax", (7, 11, 13), {"x": LINE}, axis=1)
case("Hardmax", (7, 11, 13), {"x": _ties}, axis=1)

_scale, _zero = np.array(0.05, np.float32), np.array(3, np.uint8)
case("QuantizeLinear", (10, 13, 19), {"x": real(3, 4, high=20), "s": _scale, "z": _zero})
_axis = {"s": real(4, low=0.01), "z": np.arange(4).astype(np.int8)}
case("QuantizeLinear", (13, 19), {"x": real(3, 4), **_axis}, axis=1)
_codes = np.arange(12, dtype=np.int8).reshape(3, 4)
case("DequantizeLinear", (13, 19), {"x": _codes, **_axis}, axis=1)
_bytes = np.random.default_rng(1).integers(0, 255, (2, 3, 5, 5)).astype(np.uint8)
case("ConvInteger", (10,), {"x": _bytes, "w": _bytes[:, :, :3, :3].copy(), "z": _zero})
_q = {"x": _bytes, "xs": _scale, "xz": _zero, "w": _bytes[:, :, :2, :3].copy(),
      "ws": real(2, low=0.001, high=0.01), "wz": np.array([3, 3], np.uint8),
      "ys": np.array(0.5, np.float32), "yz": np.array(100, np.uint8)}  # fmt: skip
case("QLinearConv", (10,), _q, pads=[1, 0, 1, 0])


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 300


@pytest.mark.parametrize("op", sorted({c[0] for c in CASES}))
def test_agrees_with_onnxruntime(op: str) -> None:
    agree(case for case in CASES if case[0] == op)


@pytest.mark.newest
def test_agrees_on_the_largest_of_what_is_no_number() -> None:
    gaps = np.where(LINE > 0, np.nan, np.where(LINE < -1, -np.inf, LINE)).astype(np.float32)
    options = {"kernel_shape": [3], "pads": [1, 1]}
    agree(("MaxPool", opset, {"x": gaps}, 2, options) for opset in (8, 12))


def test_agrees_on_a_signal_of_rank_2() -> None:
    signal = np.random.default_rng(0).standard_normal((2, 20)).astype(np.float32)
    feeds = {"x": signal, "step": np.array(3), "w": np.ones(8, np.float32)}
    agree([("STFT", 17, feeds, 1, {})])


def agree(cases: Iterable[Case]) -> None:
    for op, opset, inputs, outputs, attrs in cases:
        built = one_node(op, opset, inputs, outputs, **attrs)
        built.ir_version = 8
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(built.SerializeToString(), options)
        want = session.run(None, inputs)
        got = list(run(built, inputs).values())
        note = f"{op} {opset} {attrs} ({zlib.crc32(built.SerializeToString())})"
        for right, mine in zip(want, got, strict=True):
            assert isinstance(mine, np.ndarray)
            assert (mine.dtype, mine.shape) == (right.dtype, right.shape), note
            if right.dtype.kind == "f":
                np.testing.assert_allclose(mine, right, rtol=2e-4, atol=2e-5, err_msg=note)
            else:
                np.testing.assert_array_equal(mine, right, err_msg=note)
