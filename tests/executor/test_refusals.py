"""What kernels refuse: in words of their own, with node, operator and opset."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.executor import ExecutionError, UnsupportedError, run
from onnxreduce_cli.executor.dtypes import number_of, type_string
from tests.executor.models import one_node

#: An operator, its opset, its inputs, its attributes, and why it is refused.
Case = tuple[str, int, dict[str, Any], dict[str, Any], str]


def floats(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def bytes_of(*shape: int) -> Any:
    return np.zeros(shape, np.uint8)


X, Q = floats(2, 3), bytes_of(2, 3)

INDEXING: list[Case] = [
    ("Slice", 10, {"x": X, "s": ints(0), "e": ints(1, 2)}, {},
     "starts, ends, axes and steps differ in length"),
    ("Slice", 10, {"x": X, "s": ints(0), "e": ints(1), "a": ints(0), "p": ints(0)}, {},
     "a step is 0"),
    ("Slice", 1, {"x": X}, {"starts": [0], "ends": [1, 2]},
     "starts, ends, axes and steps differ in length"),
    ("Gather", 13, {"x": X, "i": ints(2)}, {}, "an index is out of range for 2 elements"),
    ("Gather", 13, {"x": X, "i": ints(-3)}, {}, "an index is out of range for 2 elements"),
    ("GatherElements", 13, {"x": X, "i": ints(0)}, {}, "ranks 2 and 1 differ"),
    ("GatherND", 13, {"x": X, "i": np.zeros((1, 3), np.int64)}, {},
     "indices of shape (1, 3) do not fit data of (2, 3)"),
    ("GatherND", 13, {"x": X, "i": np.zeros((1, 1), np.int64)}, {"batch_dims": 1},
     "indices of shape (1, 1) do not fit data of (2, 3)"),
    ("ScatterElements", 18, {"x": X, "i": ints(0), "u": floats(1)}, {},
     "shapes (2, 3), (1,) and (1,) do not fit together"),
    ("ScatterElements", 18, {"x": X, "i": np.zeros((1, 1), np.int64), "u": floats(1, 2)}, {},
     "shapes (2, 3), (1, 1) and (1, 2) do not fit together"),
    ("ScatterElements", 18, {"x": X, "i": np.zeros((1, 1), np.int64), "u": floats(1, 1)},
     {"reduction": "or"}, "reduction 'or' is unknown"),
    ("ScatterND", 18, {"x": X, "i": np.zeros((1, 1), np.int64), "u": floats(1, 2)}, {},
     "updates of shape (1, 2) do not fit indices (1, 1)"),
    ("ScatterND", 18, {"x": X, "i": np.zeros((1, 0), np.int64), "u": floats(1, 2, 3)}, {},
     "indices name no dimension"),
    ("TopK", 11, {"x": X, "k": ints(4)}, {}, "k is 4, the axis has 3 elements"),
    ("TopK", 11, {"x": X, "k": ints(-1)}, {}, "k is -1, the axis has 3 elements"),
    ("TopK", 11, {"x": X, "k": ints(1, 2)}, {}, "K has shape (2,), it must hold one value"),
    ("ArgMax", 13, {"x": floats(0, 3)}, {}, "axis 0 has no elements"),
    ("OneHot", 11, {"i": ints(0), "d": ints(1, 2), "v": floats(2)}, {},
     "depth must hold one value and values two"),
    ("OneHot", 11, {"i": ints(0), "d": ints(3), "v": floats(3)}, {},
     "depth must hold one value and values two"),
    ("ReverseSequence", 10, {"x": X, "l": ints(1, 1)}, {"batch_axis": 1, "time_axis": 1},
     "batch_axis and time_axis must be 0 and 1, of at least two dimensions"),
    ("ReverseSequence", 10, {"x": floats(2), "l": ints(1, 1)}, {},
     "batch_axis and time_axis must be 0 and 1, of at least two dimensions"),
    ("ReverseSequence", 10, {"x": X, "l": ints(1)}, {},
     "1 lengths are given for 3 sequences"),
    ("ReverseSequence", 10, {"x": X, "l": ints(1, 3, 0)}, {}, "a length of 3 is out of range"),
    ("ReverseSequence", 10, {"x": X, "l": ints(1, -1, 0)}, {}, "a length of -1 is out of range"),
]  # fmt: skip

LINEAR: list[Case] = [
    ("Gemm", 13, {"a": floats(2), "b": X}, {},
     "A and B have ranks 1 and 2, they must have rank 2"),
    ("Gemm", 6, {"a": X, "b": floats(3, 2), "c": floats(2)}, {},
     "C has shape (2,) instead of (2, 2), broadcast is not set"),
    ("Gemm", 13, {"a": X.astype(np.int64), "b": floats(3, 2).astype(np.int64)}, {"alpha": 0.5},
     "alpha and beta must be whole numbers for integer types"),
    ("Conv", 22, {"x": floats(1, 2), "w": floats(1, 2)}, {}, "X and W have ranks 2 and 2"),
    ("Conv", 22, {"x": floats(1, 2, 5), "w": floats(1, 1, 3)}, {},
     "shapes (1, 2, 5) and (1, 1, 3) do not fit 1 groups"),
    ("Conv", 22, {"x": floats(1, 2, 5), "w": floats(3, 1, 3)}, {"group": 2},
     "shapes (1, 2, 5) and (3, 1, 3) do not fit 2 groups"),
    ("Conv", 22, {"x": floats(1, 2, 5), "w": floats(1, 2, 3)}, {"kernel_shape": [2]},
     "kernel_shape differs from W's (3,)"),
    ("Conv", 22, {"x": floats(1, 2, 5), "w": floats(1, 2, 3), "b": floats(2)}, {},
     "B has shape (2,), 1 values are needed"),
    ("ConvTranspose", 22, {"x": floats(1, 2, 5), "w": floats(1, 2, 3)}, {},
     "shapes (1, 2, 5) and (1, 2, 3) do not fit 1 groups"),
    ("ConvTranspose", 22, {"x": floats(1, 1, 5), "w": floats(1, 2, 3)}, {"kernel_shape": [2]},
     "kernel_shape differs from W's (3,)"),
    ("ConvTranspose", 22, {"x": floats(1, 1, 1), "w": floats(1, 1, 3)}, {"pads": [2, 2]},
     "pads [2, 2] are larger than the result [3]"),
]  # fmt: skip

PRODUCT = {
    "a": bytes_of(2, 3), "s": floats(1) + 1, "z": bytes_of(1),
    "b": bytes_of(3, 2), "t": floats(1) + 1, "o": bytes_of(1),
    "y": floats(1) + 1, "p": bytes_of(1),
}  # fmt: skip
CONVOLUTION = {**PRODUCT, "a": bytes_of(1, 2, 5), "b": bytes_of(3, 2, 3)}

QUANTIZED: list[Case] = [
    ("QuantizeLinear", 10, {"x": X, "s": floats(3) + 1, "z": bytes_of(3)}, {},
     "a parameter has shape (3,), one value is needed"),
    ("QuantizeLinear", 13, {"x": X, "s": floats(2) + 1}, {},
     "a parameter has shape (2,), not (3,)"),
    ("QuantizeLinear", 21, {"x": X, "s": floats(3) + 1}, {"block_size": 2},
     "a blocked parameter has rank 1, not 2"),
    ("QuantizeLinear", 21, {"x": X, "s": floats(1, 2) + 1}, {"block_size": 2},
     "a parameter of shape (1, 2) does not fit (2, 3) in blocks"),
    ("QuantizeLinear", 21, {"x": X, "s": np.float32(1)}, {"block_size": 2},
     "a blocked parameter has rank 0, not 2"),
    ("QuantizeLinear", 21, {"x": floats(0, 7), "s": floats(0, 2)}, {"block_size": 2},
     "a parameter of shape (0, 2) does not fit (0, 7) in blocks"),
    ("QuantizeLinear", 21, {"x": X, "s": floats(1) + 1, "z": bytes_of(1)},
     {"output_dtype": TensorProto.INT8}, "output_dtype is not the zero point's type"),
    ("QuantizeLinear", 19,
     {"x": X, "s": floats(1) + 1, "z": np.ones(1, ml_dtypes.float8_e4m3fn)}, {},
     "the zero point of type float8_e4m3fn must be 0"),
    ("ConvInteger", 10, {"x": bytes_of(1, 2, 5), "w": bytes_of(1, 2, 3), "z": bytes_of(2)}, {},
     "x_zero_point has shape (2,), it must hold one value"),
    ("ConvInteger", 10,
     {"x": bytes_of(1, 2, 5), "w": bytes_of(3, 2, 3), "z": bytes_of(), "y": bytes_of(2)}, {},
     "w_zero_point has shape (2,) for 3 channels"),
    ("ConvInteger", 10,
     {"x": bytes_of(1, 2, 5), "w": bytes_of(3, 2, 3), "z": bytes_of(), "y": bytes_of(1, 3)}, {},
     "w_zero_point has shape (1, 3) for 3 channels"),
    ("QLinearMatMul", 10, {**PRODUCT, "y": floats(2) + 1}, {},
     "y_scale has shape (2,), it must hold one value"),
    ("QLinearMatMul", 10, {**PRODUCT, "p": bytes_of(2)}, {},
     "y_zero_point has shape (2,), it must hold one value"),
    ("QLinearConv", 10, {**CONVOLUTION, "s": floats(2) + 1}, {},
     "x_scale has shape (2,), it must hold one value"),
    ("QLinearConv", 10, {**CONVOLUTION, "t": floats(1, 3) + 1}, {},
     "w_scale has shape (1, 3) for 3 channels"),
    ("QLinearConv", 10, {**CONVOLUTION, "c": np.zeros((1, 3), np.int32)}, {},
     "B has shape (1, 3), 3 values are needed"),
]  # fmt: skip

MAKING: list[Case] = [
    ("ConstantOfShape", 9, {"d": ints(2)}, {"value": numpy_helper.from_array(floats(2))},
     "value has shape (2,), it must hold one element"),
    ("Range", 11, {"s": ints(0, 1), "l": ints(3), "d": ints(1)}, {},
     "start, limit and delta must hold one value each"),
    ("Range", 11, {"s": ints(0), "l": ints(3), "d": ints(0)}, {}, "delta is 0"),
    ("Pad", 2, {"x": X}, {"pads": [1, 1]}, "2 pads are given for 2 axes"),
    ("Pad", 2, {"x": X}, {"pads": [1, 1, 1, 1], "mode": "fold"}, "mode 'fold' is unknown"),
    ("Pad", 2, {"x": floats(1, 3)}, {"pads": [1, 0, 0, 0], "mode": "reflect"},
     "axis 0 with 1 elements cannot be padded by reflect"),
    ("Pad", 2, {"x": floats(0, 3)}, {"pads": [1, 0, 0, 0], "mode": "edge"},
     "axis 0 with 0 elements cannot be padded by edge"),
    ("Pad", 18, {"x": X, "p": ints(1, 0, 0, 0)}, {"mode": "wrap"},
     "mode 'wrap' came with opset 19"),
    ("Pad", 18, {"x": X, "p": ints(1, 0, 0, 0), "v": floats(2)}, {},
     "constant_value has shape (2,), it must hold one element"),
    ("EyeLike", 9, {"x": floats(2)}, {}, "rank is 1, it must be 2"),
    ("Trilu", 14, {"x": floats(2)}, {}, "rank is 1, it must be at least 2"),
    ("CumSum", 14, {"x": X, "a": ints(0, 1)}, {}, "axis has shape (2,), it must hold one value"),
    ("CumSum", 14, {"x": X, "a": ints(2)}, {}, "axis 2 is out of range for rank 2"),
    ("CumSum", 14, {"x": X, "a": ints(-3)}, {}, "axis -3 is out of range for rank 2"),
    ("StringNormalizer", 10, {"x": np.array([["a"], ["b"]], object)}, {},
     "its input has shape (2, 1), where it takes [C] and [1, C]"),
    ("StringNormalizer", 10, {"x": np.array(["a"], object)}, {"case_change_action": "TITLE"},
     "case_change_action 'TITLE' is none of NONE, LOWER, UPPER"),
]  # fmt: skip

SHAPE: list[Case] = [
    ("Reshape", 13, {"x": X, "s": ints(-1, -1)}, {},
     "shape [-1, -1] has more than one -1, or a lower number"),
    ("Reshape", 13, {"x": X, "s": ints(-2)}, {},
     "shape [-2] has more than one -1, or a lower number"),
    ("Reshape", 14, {"x": X, "s": ints(0, -1)}, {"allowzero": 1},
     "shape [0, -1] has both -1 and 0, with allowzero"),
    ("Reshape", 13, {"x": X, "s": ints(2, 3, 0)}, {},
     "shape [2, 3, 0] copies dimension 2 of rank 2"),
    ("Reshape", 13, {"x": X, "s": ints(4, -1)}, {}, "shape [4, -1] does not fit 6 elements"),
    ("Reshape", 13, {"x": X, "s": ints(5)}, {}, "shape [5] does not fit 6 elements of (2, 3)"),
    ("Reshape", 1, {"x": X}, {}, "attribute 'shape' is missing"),
    ("Squeeze", 11, {"x": X}, {"axes": [1]}, "axis 1 has 3 elements, only 1 can be dropped"),
    ("Transpose", 13, {"x": X}, {"perm": [0, 0]},
     "perm [0, 0] is no permutation of 2 dimensions"),
    ("Expand", 13, {"x": X, "s": ints(4)}, {}, "shapes (2, 3) and [4] do not broadcast"),
    ("Tile", 1, {"x": X, "t": floats(2), "a": floats(1)}, {},
     "tiles and axis must hold one value"),
    ("Tile", 13, {"x": X, "r": ints(1)}, {}, "1 repeats are given for rank 2"),
    ("Concat", 13, {"x": X, "y": floats(2)}, {"axis": 0}, "ranks [2, 1] differ"),
    ("Split", 13, {"x": X, "s": ints(1)}, {}, "split [1] does not add up to 2"),
    ("Split", 13, {"x": X, "s": ints(1, 1)}, {}, "split [1, 1] does not fit 1 outputs"),
    ("Split", 18, {"x": X}, {}, "either input 'split' or attribute 'num_outputs' must be given"),
    ("Split", 18, {"x": X}, {"num_outputs": 2}, "num_outputs is 2, the node has 1 outputs"),
    ("DepthToSpace", 13, {"x": X}, {"blocksize": 2},
     "rank 4 and a positive blocksize are needed, not 2 and 2"),
    ("DepthToSpace", 13, {"x": floats(1, 3, 2, 2)}, {"blocksize": 2},
     "3 channels do not divide by the square of blocksize 2"),
    ("SpaceToDepth", 13, {"x": floats(1, 1, 3, 2)}, {"blocksize": 2},
     "height 3 and width 2 do not divide by blocksize 2"),
]  # fmt: skip

RESIZED = {"x": X, "r": floats(0), "s": floats(2) + 2}
RESAMPLED: list[Case] = [
    ("Upsample", 1, {"x": X}, {"height_scale": 2.0, "width_scale": 2.0},
     "rank is 2, it must be 4"),
    ("Upsample", 7, {"x": X}, {"scales": [2.0]}, "1 scales are given for rank 2"),
    ("Upsample", 7, {"x": X}, {"scales": [2.0, 0.5]}, "scales [2.0, 0.5] must be at least 1"),
    ("Upsample", 7, {"x": X}, {"scales": [2.0, 2.0], "mode": "cubic"}, "mode 'cubic' is unknown"),
    ("Resize", 10, {"x": X, "s": floats(2)}, {}, "scales [0.0, 0.0] must be positive"),
    ("Resize", 13, RESIZED, {"mode": "area"}, "mode 'area' is unknown"),
    ("Resize", 13, RESIZED, {"coordinate_transformation_mode": "other"},
     "coordinate_transformation_mode 'other' is unknown"),
    ("Resize", 13, RESIZED, {"nearest_mode": "other"}, "nearest_mode 'other' is unknown"),
    ("Resize", 13, RESIZED, {"coordinate_transformation_mode": "tf_crop_and_resize"},
     "tf_crop_and_resize needs a roi of 4 values"),
    ("Resize", 13, {**RESIZED, "s": floats(1) + 2}, {},
     "either scales or sizes must be given, 2 of them"),
    ("Resize", 13, {**RESIZED, "z": ints(4, 6)}, {},
     "either scales or sizes must be given, 2 of them"),
    ("Resize", 13, {**RESIZED, "s": floats(2)}, {}, "scales [0.0, 0.0] must be positive"),
    ("Resize", 13, {**RESIZED, "r": np.array([1, 1, 0, 0], np.float32)},
     {"coordinate_transformation_mode": "tf_crop_and_resize"},
     "a region of [1.0, 1.0, 0.0, 0.0] ends before it begins"),
    ("Resize", 13, {"x": X, "r": floats(0), "s": floats(0), "z": ints(-1, 2)}, {},
     "sizes [-1, 2] cannot be made of [2, 3]"),
    ("Resize", 13, {"x": floats(0, 3), "r": floats(0), "s": floats(0), "z": ints(1, 2)}, {},
     "sizes [1, 2] cannot be made of [0, 3]"),
    ("Resize", 18, {"x": X, "r": floats(0), "s": floats(0), "z": ints(4, 6)},
     {"keep_aspect_ratio_policy": "other"}, "keep_aspect_ratio_policy 'other' is unknown"),
]  # fmt: skip

RNN = {"x": floats(3, 1, 2), "w": floats(1, 4, 2), "r": floats(1, 4, 4)}
NEURAL: list[Case] = [
    ("Add", 6, {"x": X, "y": floats(2)}, {"broadcast": 1},
     "shape (2,) is no contiguous part of (2, 3) at axis 1"),
    ("Gemm", 13, {"a": X, "b": floats(3, 2), "c": floats(3)}, {},
     "shape (3,) does not broadcast to (2, 2)"),
    ("Mod", 13, {"x": ints(1), "y": ints(0)}, {}, "integer division by zero"),
    ("BitShift", 11, {"x": bytes_of(1), "y": bytes_of(1)}, {"direction": "UP"},
     "direction 'UP' is neither LEFT nor RIGHT"),
    ("Clip", 11, {"x": X, "l": floats(1)}, {}, "min has shape (1,), it must be a scalar"),
    ("Gelu", 20, {"x": X}, {"approximate": "erf"}, "approximate 'erf' is unknown"),
    ("PRelu", 6, {"x": X, "s": floats(2)}, {},
     "slope of shape (2,) fits neither one value nor the channels"),
    ("BatchNormalization", 15,
     {"x": X, "s": floats(2), "b": floats(3), "m": floats(3), "v": floats(3)}, {},
     "scale, B, mean and var must have shape (3,)"),
    ("InstanceNormalization", 6, {"x": floats(1, 2, 3), "s": floats(3), "b": floats(2)}, {},
     "shapes (1, 2, 3), (3,) and (2,) do not fit together"),
    ("LRN", 13, {"x": floats(2)}, {"size": 1}, "rank is 1, it must be at least 2"),
    ("LpNormalization", 1, {"x": X}, {"p": 3}, "p is 3, it must be 1 or 2"),
    ("MaxPool", 12, {"x": X}, {"kernel_shape": [1]}, "rank is 2, it must be at least 3"),
    ("GlobalMaxPool", 1, {"x": floats(2)}, {}, "rank is 1, it must be at least 2"),
    ("MaxPool", 12, {"x": floats(1, 1, 3)}, {"kernel_shape": [1, 1]},
     "kernel [1, 1] does not fit spatial dimensions [3]"),
    ("MaxPool", 12, {"x": floats(1, 1, 3)}, {"kernel_shape": [1], "strides": [1, 1]},
     "strides has 2 entries, 1 are needed"),
    ("MaxPool", 12, {"x": floats(1, 1, 3)}, {"kernel_shape": [1], "auto_pad": "SAME"},
     "auto_pad 'SAME' is unknown"),
    ("RNN", 14, RNN, {"direction": "backward"}, "direction 'backward' is unknown"),
    ("RNN", 14, RNN, {"activations": ["Tanh"] * 3}, "3 activations are given, 1 needed"),
    ("RNN", 14, {**RNN, "r": floats(1, 4, 3)}, {},
     "shapes of X (3, 1, 2), W (1, 4, 2) and R (1, 4, 3) do not fit together"),
    ("RNN", 14, RNN, {"hidden_size": 3}, "hidden_size is 3, R says 4"),
    ("RNN", 14, {**RNN, "b": floats(1, 8), "l": np.array([4], np.int32)}, {"hidden_size": 4},
     "sequence_lens [4] does not fit 1 sequences of 3"),
    ("RNN", 14,
     {**RNN, "b": floats(1, 8), "l": np.array([3], np.int32), "h": floats(1, 2, 4)}, {},
     "an initial state does not have 1 rows of 4"),
    ("TfIdfVectorizer", 9, {"x": floats(1, 1, 1).astype(np.int64)},
     {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0,
      "ngram_counts": [0], "ngram_indexes": [0], "pool_int64s": [1]},
     "rank is 3, it must be 1 or 2"),
    ("TfIdfVectorizer", 9, {"x": ints(1)},
     {"mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0,
      "ngram_counts": [0], "ngram_indexes": [0], "pool_int64s": [1], "weights": [1.0, 2.0]},
     "2 weights are given for 1 n-grams"),
    ("DeformConv", 19, {"x": floats(1, 1, 3, 3), "w": floats(1, 2, 2, 2), "o": floats(1, 8, 2, 2)},
     {}, "weights of shape (1, 2, 2, 2) do not fit data of shape (1, 1, 3, 3)"),
    ("DeformConv", 19, {"x": floats(1, 1, 3, 3), "w": floats(1, 1, 2, 2), "o": floats(1, 8, 3, 2)},
     {}, "offsets of 3 places do not fit axis 0"),
    ("DeformConv", 19, {"x": floats(1, 1, 3, 3), "w": floats(1, 1, 2, 2), "o": floats(2, 4, 2, 2)},
     {}, "offset has shape (2, 4, 2, 2), it must be (1, 8, 2, 2)"),
    ("DeformConv", 19,
     {"x": floats(1, 1, 3, 3), "w": floats(1, 1, 2, 2), "o": floats(1, 8, 2, 2), "b": floats(2)},
     {}, "B has shape (2,), it must be (1,)"),
    ("DeformConv", 19,
     {"x": floats(1, 1, 3, 3), "w": floats(1, 1, 2, 2), "o": floats(1, 8, 2, 2), "b": floats(1),
      "m": floats(2, 4, 1, 2)},
     {}, "mask has shape (2, 4, 1, 2), it must be (1, 4, 2, 2)"),
    ("NonMaxSuppression", 11, {"b": floats(1, 2, 4), "s": floats(1, 1, 3)}, {},
     "inputs of shapes [1, 2, 4], [1, 1, 3] do not fit"),
    ("GridSample", 16, {"x": floats(1, 1, 3, 3), "g": floats(2, 1, 1, 2)}, {},
     "inputs of shapes [1, 1, 3, 3], [2, 1, 1, 2] do not fit"),
    ("STFT", 17, {"x": floats(1, 1, 16, 1), "s": np.array(4), "w": floats(8)}, {},
     "inputs of shapes [1, 1, 16, 1], [], [8] do not fit"),
    ("GridSample", 20, {"x": floats(1, 1, 3, 3), "g": floats(1, 1, 1, 3)}, {},
     "inputs of shapes [1, 1, 3, 3], [1, 1, 1, 3] do not fit"),
    ("RoiAlign", 16, {"x": floats(1, 1, 3, 3), "r": floats(1, 4), "i": ints(0, 0)}, {},
     "inputs of shapes [1, 1, 3, 3], [1, 4], [2] do not fit"),
    ("RoiAlign", 16, {"x": floats(1, 1, 3, 3), "r": floats(0, 4), "i": ints(0)}, {},
     "inputs of shapes [1, 1, 3, 3], [0, 4], [1] do not fit"),
    ("MaxUnpool", 11, {"x": floats(1, 1, 2), "i": np.zeros((1, 1, 1), np.int64)},
     {"kernel_shape": [2]}, "inputs of shapes [1, 1, 2], [1, 1, 1] do not fit"),
    ("TensorScatter", 24, {"c": floats(1, 4, 2), "u": floats(1, 2, 2), "i": ints(0, 0)}, {},
     "inputs of shapes [1, 4, 2], [1, 2, 2], [2] do not fit"),
    ("Attention", 23,
     {"q": floats(1, 2, 4, 8), "k": floats(1, 2, 4, 1), "v": floats(1, 2, 4, 8)}, {},
     "keys of shape (1, 2, 4, 1) do not fit queries of shape (1, 2, 4, 8)"),
]  # fmt: skip

REFUSED = [*INDEXING, *LINEAR, *QUANTIZED, *MAKING, *SHAPE, *RESAMPLED, *NEURAL]

#: What the specification allows, or contradicts itself on, and no kernel does.
UNSUPPORTED: list[Case] = [
    ("ConvTranspose", 1, {"x": floats(1, 1, 3), "w": floats(1, 1, 3)}, {"output_shape": [4]},
     "definition 1 contradicts itself on where odd padding goes"),
    ("Upsample", 9, {"x": X.astype(np.int64), "s": floats(2) + 2}, {"mode": "linear"},
     "how linear interpolation rounds integers is not specified"),
    ("Resize", 10, {"x": X, "s": floats(2) + 0.5}, {},
     "which element is nearest when shrinking is not specified"),
    ("Resize", 13, {**RESIZED, "x": X.astype(np.int64)}, {"mode": "linear"},
     "how interpolation rounds integers is not specified"),
    ("Resize", 13, {**RESIZED, "s": floats(2) + np.float32(1.25)},
     {"coordinate_transformation_mode": "align_corners"},
     "align_corners is disputed where length times scale is no integer"),
    ("Cast", 13, {"x": np.zeros(1, bool)}, {"to": TensorProto.STRING},
     "the specification does not say how a bool is written as a string"),
    ("RNN", 14, RNN, {"activations": ["Sine"]}, "activation 'Sine' is not implemented"),
    ("RNN", 14, RNN, {"activation_alpha": [1.0]},
     "activation_alpha and activation_beta are not implemented"),
    ("QLinearMatMul", 21,
     {"a": np.zeros((2, 2), ml_dtypes.float8_e4m3fn), "s": floats(1) + 1,
      "z": np.zeros(1, ml_dtypes.float8_e4m3fn), "b": np.zeros((2, 2), ml_dtypes.float8_e4m3fn),
      "t": floats(1) + 1, "u": np.zeros(1, ml_dtypes.float8_e4m3fn), "v": floats(1) + 1,
      "w": np.zeros(1, ml_dtypes.float8_e4m3fn)}, {},
     "float 8 is not implemented"),
]  # fmt: skip


def names(case: Case) -> str:
    return f"{case[0]}-{case[1]}: {case[4]}"


def refused(case: Case, kind: type[Exception]) -> Any:
    operator, opset, inputs, attributes, _ = case
    outputs = 2 if operator == "TopK" else 1
    with pytest.raises(kind) as caught:
        run(one_node(operator, opset, inputs, outputs, **attributes), inputs)
    return caught.value


@pytest.mark.parametrize("case", REFUSED, ids=names)
def test_what_breaks_the_specification(case: Case) -> None:
    error = refused(case, ExecutionError)
    assert (error.node, error.operator, error.opset, error.reason) == ("y0", *case[:2], case[4])
    assert str(error) == f"node 'y0' ({case[0]}, opset {case[1]}): {case[4]}"


@pytest.mark.parametrize("case", UNSUPPORTED, ids=names)
def test_what_no_kernel_does(case: Case) -> None:
    error = refused(case, UnsupportedError)
    assert (error.operator, error.opset, error.reason) == (case[0], case[1], case[4])


@pytest.mark.parametrize(
    ("attributes", "outputs", "reason"),
    [
        ({"num_outputs": 5}, 5, "2 elements do not split into 5 parts"),
        ({}, 3, "2 elements do not split into 3 equal parts"),
    ],
)
def test_splits_into_more_parts_than_elements(
    attributes: dict[str, int], outputs: int, reason: str
) -> None:
    opset = 18 if attributes else 13
    with pytest.raises(ExecutionError) as caught:
        run(one_node("Split", opset, {"x": X}, outputs, **attributes), {"x": X})
    assert caught.value.reason == reason


FLAG = np.array(True)
TWO = np.array([True, True])

#: A model of graphs within graphs or of sequences, its opset, inputs, and why it is refused.
TEXTS: list[tuple[str, int, dict[str, Any], str]] = [
    ("""(float[2] x, bool[2] c) => (y) { y = If(c) <then_branch = t () => (a) { a = Neg(x) },
        else_branch = e () => (b) { b = Abs(x) }> }""",
     13, {"x": floats(2), "c": TWO}, "cond has shape (2,), it must hold one value"),
    ("""(float[2] x, bool c) => (y, z) { y, z = If(c) <then_branch = t () => (a) { a = Neg(x) },
        else_branch = e () => (b) { b = Abs(x) }> }""",
     13, {"x": floats(2), "c": FLAG}, "2 outputs are named, the operator gives 1"),
    ("""(int64[2] n, bool c, float x) => (y) { y = Loop(n, c, x) <body = b
        (int64 i, bool k, float a) => (k, d) { d = Neg(a) }> }""",
     13, {"n": ints(1, 2), "c": FLAG, "x": floats()}, "M has shape (2,), it must hold one value"),
    ("""(int64 n, bool c, float x) => (y) { y = Loop(n, c, x) <body = b
        (int64 i, bool k) => (k) { d = Identity(k) }> }""",
     13, {"n": ints(1), "c": FLAG, "x": floats()},
     "the body has 2 inputs and 1 outputs, which does not fit 1 carried values"),
    ("""(int64 n, bool c, float x) => (y) { y = Loop(n, c, x) <body = b
        (int64 i, bool k, float a) => (m, d) { d = Neg(a)  m = SequenceConstruct(k) }> }""",
     13, {"n": ints(1), "c": FLAG, "x": floats()}, "the body's condition is no tensor"),
    ("""(int64 n, bool c, float x) => (y, z) { y, z = Loop(n, c, x) <body = b
        (int64 i, bool k, float a) => (k, a, d) { d = SequenceConstruct(a) }> }""",
     13, {"n": ints(1), "c": FLAG, "x": floats()}, "a scanned value is no tensor"),
    ("""(int64 n, bool c, float[1] x) => (y, z) { y, z = Loop(n, c, x) <body = b
        (int64 i, bool k, float[r] a) => (k, d, d) { d = Concat<axis = 0>(a, a) }> }""",
     13, {"n": ints(2), "c": FLAG, "x": floats(1)},
     "a scanned value changes its shape between iterations"),
    ("""(float[2, 3] x) => (y) { y = Scan<num_scan_inputs = 1, scan_input_axes = [0, 1], body = b
        (float[3] a) => (d) { d = Neg(a) }>(x) }""",
     13, {"x": X}, "scan_input_axes has 2 entries, 1 are needed"),
    ("""(float[2, 3] x) => (y) { y = Scan<num_scan_inputs = 2, body = b
        (float[3] a) => (d) { d = Neg(a) }>(x) }""",
     13, {"x": X}, "num_scan_inputs, the inputs and the body do not fit together"),
    ("""(float[2, 3] x, float[3, 3] z) => (y) { y = Scan<num_scan_inputs = 2, body = b
        (float[3] a, float[3] b) => (d) { d = Add(a, b) }>(x, z) }""",
     13, {"x": X, "z": floats(3, 3)}, "the scan inputs differ in length"),
    ("""(float[2, 3] x) => (y) { y = Scan<num_scan_inputs = 2, body = b
        (float a) => (d) { d = Neg(a) }>(, x) }""",
     8, {"x": X}, "num_scan_inputs, the inputs and the body do not fit together"),
    ("""(float[3] x) => (y) { y = Scan<num_scan_inputs = 1, body = b
        (float a) => (d) { d = Neg(a) }>(, x) }""",
     8, {"x": floats(3)},
     "states need a batch axis, scan inputs a batch and a sequence axis"),
    ("""(float[2, 3] x, int64[2] l) => (y) { y = Scan<num_scan_inputs = 1, body = b
        (float a) => (d) { d = Neg(a) }>(l, x) }""",
     8, {"x": X, "l": ints(1, 4)}, "sequence_lens [1, 4] does not fit 2 sequences of 3"),
    ("(float x, int64[2] p) => (y) { s = SequenceConstruct(x)  y = SequenceAt(s, p) }",
     13, {"x": floats(), "p": ints(0, 0)}, "position has shape (2,), it must hold one value"),
    ("(float x, int64 p) => (y) { s = SequenceConstruct(x)  y = SequenceAt(s, p) }",
     13, {"x": floats(), "p": np.array(1)}, "axis 1 is out of range for rank 1"),
    ("(float[2, 3] x, int64[2] l) => (y) { y = SplitToSequence(x, l) }",
     13, {"x": X, "l": ints(1, 2)}, "split [1, 2] does not add up to 2"),
    ("(float[2, 3] x, int64 l) => (y) { y = SplitToSequence(x, l) }",
     13, {"x": X, "l": np.array(0)}, "split is 0, it must be positive"),
    ("() => (y) { s = Optional<type = float[2]>()  y = OptionalGetElement(s) }",
     16, {}, "the optional is empty"),
]  # fmt: skip


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case[3])
def test_graphs_and_sequences_that_do_not_fit(case: tuple[str, int, dict[str, Any], str]) -> None:
    text, opset, inputs, reason = case
    found = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')
    with pytest.raises(ExecutionError) as caught:
        run(found, inputs)
    assert caught.value.reason == reason
    assert (caught.value.operator, caught.value.opset) == (found.graph.node[-1].op_type, opset)


def test_a_loop_that_never_runs_and_states_no_shapes() -> None:
    found = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (int64 n, bool c, float x) => (y, z) {
            y, z = Loop(n, c, x) <body = b (int64 i, bool k, float a) => (k, a, d)
                { d = Neg(a) }> }"""
    )
    with pytest.raises(UnsupportedError) as caught:
        run(found, {"n": ints(0), "c": FLAG, "x": floats()})
    assert caught.value.reason == (
        "the body never ran, so the type and shape of its scan outputs are unknown"
    )


@pytest.mark.parametrize(
    ("axis", "new_axis", "expected"),
    [
        (0, 0, [[1, 2], [3, 4]]),
        (-1, 0, [[1, 2, 3, 4]]),
        (0, 1, [[[1, 2]], [[3, 4]]]),
        (-1, 1, [[[1, 3], [2, 4]]]),
    ],
)
def test_sequences_are_joined_along_an_axis_or_a_new_one(
    axis: int, new_axis: int, expected: list[Any]
) -> None:
    found = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[1, 2] x, float[1, 2] z) => (y) {{
            s = SequenceConstruct(x, z)
            y = ConcatFromSequence<axis = {axis}, new_axis = {new_axis}>(s) }}"""
    )
    inputs = {"x": np.array([[1, 2]], np.float32), "z": np.array([[3, 4]], np.float32)}
    np.testing.assert_array_equal(run(found, inputs)["y"], np.array(expected, np.float32))


@pytest.mark.parametrize(
    ("operator", "inputs", "expected"),
    [
        ("GatherND", {"x": ints(1, 2), "i": np.zeros((2, 0), np.int64)}, [[1, 2], [1, 2]]),
        ("NonZero", {"x": np.array(True)}, np.zeros((0, 1))),
        ("NonZero", {"x": np.array(False)}, np.zeros((0, 0))),
        ("Gemm", {"a": ints(2)[None], "b": ints(3)[None], "c": ints(4)}, [[10]]),
    ],
)
def test_what_is_allowed_and_rare(operator: str, inputs: dict[str, Any], expected: Any) -> None:
    found = run(one_node(operator, 13, inputs), inputs)["y0"]
    assert found.shape == np.shape(expected)
    np.testing.assert_array_equal(found, expected)


def test_dtypes_that_are_not_of_onnx() -> None:
    with pytest.raises(ValueError, match="dtype datetime64 is not an ONNX element type"):
        number_of(np.dtype("datetime64"))
    assert number_of(np.dtype("U3")) == TensorProto.STRING
    assert type_string(np.array(["a"])) == "tensor(string)"
    assert type_string(np.zeros(1, "datetime64[s]")) == "tensor(datetime64[s])"


@pytest.mark.newest
@pytest.mark.parametrize("length", [1, 3])
def test_keys_that_have_no_values(length: int) -> None:
    """The function body of Attention repeats a single value for each of the keys."""
    q, k = np.ones((1, 1, 2, 4), np.float32), np.ones((1, 1, 6, 4), np.float32)
    inputs = {"q": q, "k": k, "v": k[:, :, :length]}
    with pytest.raises(ExecutionError, match=r"keys of shape .* have no values of shape"):
        run(one_node("Attention", 23, inputs), inputs)
