# ruff: noqa: E501 - a graph a line.
"""Models with a planted fault, each beside the right one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.verification.whole.planted.pairs import Pair, Weights

_SOFT = (
    "a = MatMul (x, W) b = Add (a, c) d = Relu (b) e = MatMul (d, V) y = Softmax <axis = -1> (e)"
)
_SOFT_WEIGHTS = "W[32,32] c[32] V[32,6]"
_ML = '"" : 18, "ai.onnx.ml" : 3'
_ML_5 = '"" : 18, "ai.onnx.ml" : 5'


def _negated(name: str, *place: int) -> Any:
    def edit(weights: Weights) -> None:
        weights[name][place] *= -1

    return edit


def _set(name: str, place: Any, value: float) -> Any:
    def edit(weights: Weights) -> None:
        weights[name][place] = value

    return edit


def _added(name: str, place: Any, value: float) -> Any:
    def edit(weights: Weights) -> None:
        weights[name][place] += value

    return edit


def swap(name: str, interface: str, body: str, old: str, new: str, **more: Any) -> Pair:
    """Return a pair whose second body has `new` in place of `old`."""
    assert old in body, name
    return Pair(name, interface, body, body.replace(old, new), **more)


_LINEAR = "a = MatMul (x, W) y = Add (a, c)"
_NORM = (
    "m = ReduceMean <keepdims = 1> (x, last) d = Sub (x, m) s = Mul (d, d) "
    "v = ReduceMean <keepdims = 1> (s, last) e = Add (v, eps) r = Sqrt (e) y = Div (d, r)"
)
_LAST = {"last": np.array([-1])}
_EDGE_IF = (
    "top = ReduceMax <keepdims = 0> (x) limit = Constant <value_float = 50.0> () "
    "c = Greater (top, limit) y = If (c) <then_branch = t () => (float[N,4] p) { p = Abs (x) }, "
    "else_branch = e () => (float[N,4] q) { q = Tanh (x) }>"
)
_NESTED_IF = (
    "zero = Constant <value_int = 0> () row = Gather <axis = 0> (x, zero) sum = ReduceSum "
    "<keepdims = 0> (row) l = Constant <value_float = 5.0> () m = Constant <value_float = -8.0> () "
    "c = Less (sum, l) y = If (c) <then_branch = t () => (float[N,4] p) { k = Less (sum, m) "
    "p = If (k) <then_branch = tt () => (float[N,4] pp) { pp = Neg (x) }, else_branch = te () => "
    "(float[N,4] pq) { pq = Identity (x) }> }, else_branch = e () => (float[N,4] q) { q = Tanh (x) }>"
)
_SHAPE_IF = (
    "s = Shape (x) i = Constant <value_int = 0> () n = Gather (s, i) t = Constant <value_int = 10> () "
    "c = Greater (n, t) y = If (c) <then_branch = tt () => (float[N,4] a) { a = Abs (x) }, "
    "else_branch = ee () => (float[N,4] b) { b = Relu (x) }>"
)
_LOOP = (
    "n = Constant <value_int = 6> () go = Constant <value = bool {1}> () y = Loop (n, go, x) <body = b "
    "(int64 i, bool c, float[N,3] s) => (bool d, float[N,3] t) { d = Identity (c) "
    "k = Constant <value_int = 5> () last = Equal (i, k) h = Constant <value_float = 0.5> () "
    "u = Mul (s, h) w = Add (u, h) t = Where (last, w, u) }>"
)
_LOOP_STOP = (
    "n = Constant <value_int = 9> () go = Constant <value = bool {1}> () y = Loop (n, go, x) <body = b "
    "(int64 i, bool c, float[3] s) => (bool d, float[3] t) { two = Constant <value_float = 2.0> () "
    "t = Mul (s, two) top = ReduceMax <keepdims = 0> (t) limit = Constant <value_float = 1500.0> () "
    "d = Less (top, limit) }>"
)
_SCAN = (
    "y, ys = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] r) => (float[3] t, float[3] o) "
    "{ h = Constant <value_float = 0.5> () u = Mul (s, h) t = Add (u, r) o = Relu (t) }> (x, z)"
)
_ATTENTION = (
    "q = MatMul (x, Q) k = MatMul (x, K) v = MatMul (x, V) kt = Transpose <perm = [0, 2, 1]> (k) "
    "s = MatMul (q, kt) f = Constant <value_float = 0.354> () n = Mul (s, f) "
    "one = Constant <value_float = 1.0> () low = Constant <value_float = -10000.0> () "
    "i = Sub (one, m) j = Mul (i, low) ax = Constant <value_ints = [1]> () jj = Unsqueeze (j, ax) "
    "b = Add (n, jj) a = Softmax <axis = -1> (b) y = MatMul (a, v)"
)
_ATTENTION_WEIGHTS = "Q[8,8] K[8,8] V[8,8]"
_ATTENTION_TYPES = "float[N,S,8] x, float[N,S] m => float[N,S,8] y"
_QDQ = "q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z)"
_QDQ_WEIGHTS = {"s": np.array(0.05, np.float32), "z": np.array(3, np.int8)}
_QCONV = (
    "q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) "
    "w = DequantizeLinear <axis = 0> (W, t, u) c = Conv <pads = [1, 1, 1, 1]> (d, w) "
    "r = Relu (c) p = QuantizeLinear (r, o, z) y = DequantizeLinear (p, o, z)"
)
_QCONV_WEIGHTS = {
    "s": np.array(0.02, np.float32),
    "z": np.array(0, np.uint8),
    "W": np.random.default_rng(7).integers(-99, 100, (4, 3, 3, 3)).astype(np.int8),
    "t": np.array([0.01, 0.02, 0.005, 0.01], np.float32),
    "u": np.zeros(4, np.int8),
    "o": np.array(0.2, np.float32),
}
_EMBED = "e = Gather (E, ids) m = ReduceMean <keepdims = 0> (e, one) y = Tanh (m)"
_NMS = (
    "k = Constant <value_int = 8> () iou = Constant <value_float = 0.5> () "
    "low = Constant <value_float = 0.3> () y = NonMaxSuppression (boxes, scores, k, iou, low)"
)
_NMS_TYPES = "float[1,12,4] boxes, float[1,2,12] scores => int64[A,3] y"
_RESIZE = (
    "r = Constant <value_floats = [1.0, 1.0, 2.5, 2.5]> () "
    'y = Resize <mode = "nearest", nearest_mode = "floor", '
    'coordinate_transformation_mode = "asymmetric"> (x, , r)'
)
_LSTM = "s, h, l = LSTM <hidden_size = 4> (x, W, R, B) y = Identity (s)"
_LSTM_WEIGHTS = "W[1,16,3] R[1,16,4] B[1,32]"
_GRU = "y = GRU <hidden_size = 4, linear_before_reset = 1> (x, W, R, B)"
_GRU_WEIGHTS = "W[1,12,3] R[1,12,4] B[1,24]"
_TREE = (
    "y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0, 0, 0, 0, 0], "
    "nodes_nodeids = [0, 1, 2, 3, 4], nodes_featureids = [0, 0, 1, 0, 0], "
    'nodes_modes = ["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"], '
    "nodes_values = [37.5, 0.0, -12.0, 0.0, 0.0], nodes_truenodeids = [1, 0, 3, 0, 0], "
    "nodes_falsenodeids = [2, 0, 4, 0, 0], nodes_missing_value_tracks_true = [0, 0, 0, 0, 0], "
    "nodes_hitrates = [1.0, 1.0, 1.0, 1.0, 1.0], target_treeids = [0, 0, 0], "
    "target_nodeids = [1, 3, 4], target_ids = [0, 0, 0], target_weights = [1.0, 2.0, 3.0]> (x)"
)
_DEEP = (
    "a = MatMul (x, A) b = Tanh (a) c = MatMul (b, B) d = Tanh (c) e = MatMul (d, C) y = Tanh (e)"
)
_MANY = "a = MatMul (x, W) n = LayerNormalization (a, g, h) t = Tanh (n) y = MatMul (t, V)"
_PIXELS = {
    "mean": np.array([123.0, 117.0, 104.0], np.float32).reshape(1, 3, 1, 1),
    "std": np.array([58.0, 57.0, 57.5], np.float32).reshape(1, 3, 1, 1),
}
_RATIO = "(x) => (y) { k = Constant <value_float = 0.1> () s = Mul (x, k) y = Max (x, s) }"
_LEAKY = '<domain: "local", opset_import: ["" : 18]> leaky ' + _RATIO

FAULTS = (
    Pair(
        "sign of a weight",
        "float[N,8] x => float[N,4] y",
        _LINEAR,
        weights="W[8,4] c[4]",
        edit=_negated("W", 2, 1),
    ),
    Pair(
        "row of zeros before Softmax",
        "float[N,32] x => float[N,6] y",
        _SOFT,
        weights=_SOFT_WEIGHTS,
        edit=_set("V", 5, 0),
    ),
    Pair(
        "sign before Softmax",
        "float[N,32] x => float[N,6] y",
        _SOFT,
        weights=_SOFT_WEIGHTS,
        edit=_negated("W", 3, 7),
    ),
    Pair(
        "bias before Softmax",
        "float[N,32] x => float[N,6] y",
        _SOFT,
        weights=_SOFT_WEIGHTS,
        edit=_set("c", 9, 0),
    ),
    Pair(
        "batch of one before Softmax",
        "float[1,32] x => float[1,6] y",
        _SOFT,
        weights=_SOFT_WEIGHTS,
        edit=_set("V", 11, 0),
    ),
    swap(
        "axis of Softmax",
        "float[N,3,4] x => float[N,3,4] y",
        "y = Softmax <axis = -1> (x)",
        "-1",
        "1",
    ),
    swap(
        "axis of LogSoftmax over the batch",
        "float[N,4] x => float[N,4] y",
        "y = LogSoftmax <axis = 1> (x)",
        "axis = 1",
        "axis = 0",
    ),
    Pair(
        "Clip dropped",
        "float[N,3] x => float[N,3] y",
        "l = Constant <value_float = -4500.0> () h = Constant <value_float = 4500.0> () y = Clip (x, l, h)",
        "y = Identity (x)",
    ),
    swap(
        "upper bound of Clip",
        "float[N,3] x => float[N,3] y",
        "l = Constant <value_float = 0.0> () h = Constant <value_float = 6.0> () y = Clip (x, l, h)",
        "6.0",
        "6.5",
    ),
    swap(
        "bound of Clip behind a scale",
        "float[N,3] x => float[N,3] y",
        "k = Constant <value_float = 0.01> () a = Mul (x, k) l = Constant <value_float = -64.0> () h = Constant <value_float = 64.0> () b = Clip (a, l, h) y = Div (b, k)",
        "= 64.0",
        "= 66.0",
    ),
    swap(
        "threshold far away",
        "float[N,3] x => float[N,3] y",
        "t = Constant <value_float = 37.5> () z = Constant <value_float = 0.0> () c = Greater (x, t) y = Where (c, x, z)",
        "37.5",
        "38.5",
    ),
    swap(
        "threshold behind an affine map",
        "float[N,3,4,4] x => float[N,3,4,4] y",
        "d = Sub (x, mean) n = Div (d, std) t = Constant <value_float = 2.0> () c = Less (n, t) y = Where (c, n, t)",
        "2.0",
        "2.1",
        weights=_PIXELS,
    ),
    swap(
        "rare integer",
        "int64[N,S] ids => float[N,S] y",
        "k = Constant <value_int = 1017> () c = Equal (ids, k) y = Cast <to = 1> (c)",
        "1017",
        "1018",
    ),
    swap(
        "branches swapped", "float[N,4] x => float[N,4] y", _EDGE_IF, "p = Abs (x)", "p = Tanh (x)"
    ),
    swap("threshold of If", "float[N,4] x => float[N,4] y", _EDGE_IF, "50.0", "53.0"),
    swap("If in If", "float[N,4] x => float[N,4] y", _NESTED_IF, "pp = Neg (x)", "pp = Abs (x)"),
    swap("If on a size", "float[N,4] x => float[N,4] y", _SHAPE_IF, "a = Abs (x)", "a = Neg (x)"),
    swap(
        "epsilon of LayerNormalization",
        "float[N,8] x => float[N,8] y",
        "y = LayerNormalization <epsilon = 0.00001> (x, g, h)",
        "0.00001",
        "0.001",
        weights="g[8] h[8]",
    ),
    Pair(
        "epsilon spelled out",
        "float[N,8] x => float[N,8] y",
        _NORM,
        weights={"eps": np.array(1e-6, np.float32), **_LAST},
        edit=_set("eps", (), 1e-8),
    ),
    Pair(
        "Round / half up",
        "float[N] x => float[N] y",
        "y = Round (x)",
        "h = Constant <value_float = 0.5> () a = Add (x, h) y = Floor (a)",
    ),
    Pair(
        "Round / half away from zero, behind a scale",
        "float[N] x => float[N] y",
        "k = Constant <value_float = 4.0> () a = Mul (x, k) y = Round (a)",
        "k = Constant <value_float = 4.0> () a = Mul (x, k) h = Constant <value_float = 0.5> () s = Sign (a) b = Abs (a) d = Add (b, h) f = Floor (d) y = Mul (f, s)",
    ),
    Pair(
        "Cast of floats: floor",
        "float[N] x => int32[N] y",
        "y = Cast <to = 6> (x)",
        "a = Floor (x) y = Cast <to = 6> (a)",
    ),
    Pair(
        "uint8 wraps / saturates",
        "int32[N] x => uint8[N] y",
        "y = Cast <to = 2> (x)",
        "l = Constant <value = int32 {0}> () h = Constant <value = int32 {255}> () b = Clip (x, l, h) y = Cast <to = 2> (b)",
    ),
    Pair(
        "int8 wraps / saturates behind a sum",
        "int32[N] x => int8[N] y",
        "k = Constant <value = int32 {40}> () a = Add (x, k) y = Cast <to = 3> (a)",
        "k = Constant <value = int32 {40}> () a = Add (x, k) l = Constant <value = int32 {-128}> () h = Constant <value = int32 {127}> () b = Clip (a, l, h) y = Cast <to = 3> (b)",
    ),
    Pair(
        "int32 product via float",
        "int32[N] x, int32[N] z => int32[N] y",
        "y = Mul (x, z)",
        "a = Cast <to = 1> (x) b = Cast <to = 1> (z) c = Mul (a, b) y = Cast <to = 6> (c)",
    ),
    Pair(
        "int64 sum via double",
        "int64[N] x => int64[N] y",
        "o = Constant <value_int = 1> () y = Add (x, o)",
        "o = Constant <value = double {1}> () a = Cast <to = 11> (x) c = Add (a, o) y = Cast <to = 7> (c)",
    ),
    Pair(
        "uint8 sum saturates",
        "uint8[N] x, uint8[N] z => uint8[N] y",
        "y = Add (x, z)",
        "a = Cast <to = 6> (x) b = Cast <to = 6> (z) c = Add (a, b) h = Constant <value = int32 {255}> () d = Min (c, h) y = Cast <to = 2> (d)",
    ),
    Pair(
        "int8 negation saturates",
        "int8[N] x => int8[N] y",
        "y = Neg (x)",
        "a = Cast <to = 6> (x) b = Neg (a) h = Constant <value = int32 {127}> () d = Min (b, h) y = Cast <to = 3> (d)",
    ),
    Pair(
        "int32 halved: floor",
        "int32[N] x => int32[N] y",
        "t = Constant <value = int32 {2}> () y = Div (x, t)",
        "h = Constant <value_float = 0.5> () a = Cast <to = 1> (x) b = Mul (a, h) c = Floor (b) y = Cast <to = 6> (c)",
    ),
    swap(
        "fmod",
        "int32[N] x => int32[N] y",
        "t = Constant <value = int32 {7}> () y = Mod <fmod = 0> (x, t)",
        "fmod = 0",
        "fmod = 1",
    ),
    swap(
        "mask of bits",
        "int32[N] x => int32[N] y",
        "t = Constant <value = int32 {4095}> () y = BitwiseAnd (x, t)",
        "4095",
        "2047",
    ),
    Pair(
        "zero point",
        "float[N,4] x => float[N,4] y",
        _QDQ,
        weights=_QDQ_WEIGHTS,
        edit=_added("z", (), 1),
    ),
    Pair(
        "quantization without saturation",
        "float[N,4] x => float[N,4] y",
        _QDQ,
        "a = Div (x, s) b = Round (a) y = Mul (b, s)",
        weights=_QDQ_WEIGHTS,
    ),
    Pair(
        "quantization rounds up",
        "float[N,4] x => float[N,4] y",
        _QDQ,
        "a = Div (x, s) h = Constant <value_float = 0.5> () b = Add (a, h) c = Floor (b) l = Constant <value_float = -131.0> () u = Constant <value_float = 124.0> () d = Clip (c, l, u) y = Mul (d, s)",
        weights={"s": np.array(0.25, np.float32), "z": np.array(3, np.int8)},
    ),
    Pair(
        "scale of one channel",
        "float[N,3,5,5] x => float[N,4,5,5] y",
        _QCONV,
        weights=_QCONV_WEIGHTS,
        edit=_set("t", 2, 0.006),
    ),
    Pair(
        "a quantized weight",
        "float[N,3,5,5] x => float[N,4,5,5] y",
        _QCONV,
        weights=_QCONV_WEIGHTS,
        edit=_added("W", (1, 2, 0, 0), 24),
    ),
    Pair(
        "zero point of MatMulInteger",
        "uint8[N,6] x => int32[N,3] y",
        "y = MatMulInteger (x, W, z)",
        weights={
            "W": np.random.default_rng(3).integers(-9, 9, (6, 3)).astype(np.int8),
            "z": np.array(128, np.uint8),
        },
        edit=_set("z", (), 127),
    ),
    swap(
        "last round of a Loop",
        "float[N,3] x => float[N,3] y",
        _LOOP,
        "w = Add (u, h)",
        "w = Sub (u, h)",
    ),
    swap("condition of a Loop", "float[3] x => float[3] y", _LOOP_STOP, "1500.0", "1800.0"),
    swap(
        "state of a Scan",
        "float[3] x, float[T,3] z => float[3] y, float[T,3] ys",
        _SCAN,
        "t = Add (u, r)",
        "t = Sub (r, u)",
    ),
    Pair(
        "body of a function",
        "float[N,3] x => float[N,3] y",
        "a = local.leaky (x) y = Neg (a)",
        functions=(_LEAKY, _LEAKY.replace("0.1", "0.11")),
    ),
    swap(
        "mask of attention",
        _ATTENTION_TYPES,
        _ATTENTION,
        "-10000.0",
        "-4.0",
        weights=_ATTENTION_WEIGHTS,
    ),
    Pair(
        "key of attention",
        _ATTENTION_TYPES,
        _ATTENTION,
        weights=_ATTENTION_WEIGHTS,
        edit=_negated("K", 3, 3),
    ),
    swap(
        "scale of attention",
        _ATTENTION_TYPES,
        _ATTENTION,
        "0.354",
        "0.36",
        weights=_ATTENTION_WEIGHTS,
    ),
    Pair(
        "bias of a gate of LSTM",
        "float[T,N,3] x => float[T,1,N,4] y",
        _LSTM,
        weights=_LSTM_WEIGHTS,
        edit=_added("B", (0, 9), 0.05),
    ),
    Pair(
        "recurrent weight of LSTM",
        "float[T,N,3] x => float[T,1,N,4] y",
        _LSTM,
        weights=_LSTM_WEIGHTS,
        edit=_negated("R", 0, 5, 2),
    ),
    swap(
        "reset gate of GRU",
        "float[T,N,3] x => float[T,1,N,4] y",
        _GRU,
        "reset = 1",
        "reset = 0",
        weights=_GRU_WEIGHTS,
    ),
    Pair(
        "last row of an embedding",
        "int64[N,S] ids => float[N,6] y",
        _EMBED,
        weights={
            "E": np.random.default_rng(1).standard_normal((50, 6)).astype(np.float32),
            "one": np.array([1]),
        },
        edit=_set("E", 49, 0),
    ),
    Pair(
        "a middle row of an embedding",
        "int64[N,S] ids => float[N,6] y",
        _EMBED,
        weights={
            "E": np.random.default_rng(2).standard_normal((30, 6)).astype(np.float32),
            "one": np.array([1]),
        },
        edit=_negated("E", 17),
    ),
    Pair(
        "ids beyond the vocabulary",
        "int64[N,S] ids => float[N,S,4] y",
        "t = Constant <value_int = 19> () i = Min (ids, t) y = Gather (E, i)",
        "t = Constant <value_int = 20> () r = Mod (ids, t) y = Gather (E, r)",
        weights="E[20,4]",
    ),
    swap(
        "padding of an embedding",
        "int64[N,S] ids => float[N,S,4] y",
        "e = Gather (E, ids) p = Constant <value_int = 0> () c = Equal (ids, p) a = Constant <value_ints = [-1]> () u = Unsqueeze (c, a) z = Constant <value_float = 0.0> () y = Where (u, z, e)",
        "y = Where (u, z, e)",
        "y = Identity (e)",
        weights="E[40,4]",
    ),
    swap(
        "TopK of the smallest",
        "float[N,9] x => float[N,3] y, int64[N,3] i",
        "k = Constant <value_ints = [3]> () y, i = TopK <largest = 1> (x, k)",
        "largest = 1",
        "largest = 0",
    ),
    swap(
        "the last of equal elements",
        "float[N,6] x => int64[N] y",
        "r = Round (x) y = ArgMax <axis = 1, keepdims = 0, select_last_index = 0> (r)",
        "index = 0",
        "index = 1",
    ),
    swap(
        "axis of ArgMax",
        "float[N,3,3] x => int64[N,3] y",
        "y = ArgMax <axis = 1, keepdims = 0> (x)",
        "axis = 1",
        "axis = 2",
    ),
    swap("IoU of NonMaxSuppression", _NMS_TYPES, _NMS, "0.5", "0.8"),
    swap("scores of NonMaxSuppression", _NMS_TYPES, _NMS, "0.3", "0.4"),
    swap(
        "rounding of Resize",
        "float[N,2,5,7] x => float[N,2,A,B] y",
        _RESIZE,
        '"floor"',
        '"round_prefer_floor"',
    ),
    swap(
        "coordinates of Resize",
        "float[N,2,5,7] x => float[N,2,A,B] y",
        _RESIZE.replace("nearest", "linear", 1),
        '"asymmetric"',
        '"half_pixel"',
    ),
    swap(
        "pads of Conv",
        "float[N,3,6,6] x => float[N,4,6,6] y",
        "y = Conv <pads = [1, 1, 1, 1]> (x, W)",
        "[1, 1, 1, 1]",
        "[0, 0, 2, 2]",
        weights="W[4,3,3,3]",
    ),
    Pair(
        "one weight of a deep Conv",
        "float[N,3,8,8] x => float[N,5] y",
        "a = Conv (x, W, c) b = Relu (a) d = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b) e = Conv (d, V) f = GlobalAveragePool (e) h = Flatten (f) y = Softmax (h)",
        weights="W[8,3,3,3] c[8] V[5,8,3,3]",
        edit=_negated("W", 4, 1, 2, 2),
    ),
    swap(
        "padding in AveragePool",
        "float[N,2,6,6] x => float[N,2,6,6] y",
        "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 0> (x)",
        "pad = 0",
        "pad = 1",
    ),
    swap(
        "mode of Pad",
        "float[N,4,4] x => float[N,6,6] y",
        'p = Constant <value_ints = [0, 1, 1, 0, 1, 1]> () y = Pad <mode = "reflect"> (x, p)',
        "reflect",
        "edge",
    ),
    swap(
        "axis of ReduceMean",
        "float[N,3,3] x => float[N,3] y",
        "a = Constant <value_ints = [1]> () y = ReduceMean <keepdims = 0> (x, a)",
        "[1]",
        "[2]",
    ),
    Pair(
        "Gelu / its approximation",
        "float[N,4] x => float[N,4] y",
        'y = Gelu <approximate = "none"> (x)',
        'y = Gelu <approximate = "tanh"> (x)',
        opsets='"" : 20',
    ),
    swap(
        "slope",
        "float[N,4] x => float[N,4] y",
        "y = LeakyRelu <alpha = 0.01> (x)",
        "0.01",
        "0.0103",
    ),
    swap(
        "HardSigmoid of Keras",
        "float[N,4] x => float[N,4] y",
        "y = HardSigmoid <alpha = 0.2> (x)",
        "0.2",
        "0.1666667",
    ),
    swap(
        "equality at a limit",
        "float[N,4] x => bool[N,4] y",
        "t = Constant <value_float = 2.5> () y = Less (x, t)",
        "Less",
        "LessOrEqual",
    ),
    swap(
        "equality at zero",
        "int32[N,4] x => bool[N,4] y",
        "t = Constant <value = int32 {0}> () y = Greater (x, t)",
        "Greater",
        "GreaterOrEqual",
    ),
    swap(
        "equality behind steps",
        "float[N,4] x => bool[N,4] y",
        "k = Constant <value_float = 3.0> () m = Constant <value_float = 18.0> () a = Sub (x, k) b = Mul (a, k) y = GreaterOrEqual (b, m)",
        "GreaterOrEqual",
        "Greater",
    ),
    swap(
        "stop word",
        "string[N] x => string[A] y",
        'y = StringNormalizer <stopwords = ["the", "stop"], is_case_sensitive = 1> (x)',
        '"stop"',
        '"stops"',
    ),
    swap(
        "key of LabelEncoder",
        "int64[N] x => float[N] y",
        "y = ai.onnx.ml.LabelEncoder <keys_int64s = [1000, 2000, 3000], values_floats = [1.0, 2.0, 3.0], default_float = 0.0> (x)",
        "2000",
        "2001",
        opsets=_ML,
    ),
    swap(
        "word of LabelEncoder",
        "string[N] x => int64[N] y",
        'y = ai.onnx.ml.LabelEncoder <keys_strings = ["red", "green", "blue"], values_int64s = [1, 2, 3], default_int64 = 9> (x)',
        '"green"',
        '"grün"',
        opsets=_ML,
    ),
    swap("threshold of a tree", "float[N,2] x => float[N,1] y", _TREE, "37.5", "38.0", opsets=_ML),
    swap(
        "member of a set of a tree",
        "float[N,2] x => float[N,1] y",
        "y = ai.onnx.ml.TreeEnsemble <n_targets = 1, tree_roots = [0], nodes_modes = uint8[1] {6}, "
        "nodes_featureids = [1], nodes_splits = float[1] {0.0}, nodes_truenodeids = [0], "
        "nodes_trueleafs = [1], nodes_falsenodeids = [1], nodes_falseleafs = [1], "
        "leaf_targetids = [0, 0], leaf_weights = float[2] {1.0, 2.0}, "
        "membership_values = float[2] {37.0, 41.0}> (x)",
        "41.0",
        "42.0",
        opsets=_ML_5,
    ),
    Pair(
        "bias in float16",
        "float16[N,4] x => float16[N,4] y",
        "y = Add (x, c)",
        weights={"c": np.array([1, 2, 3, 4], np.float16)},
        edit=_set("c", 2, 3.0625),
    ),
    Pair(
        "float16 without overflow",
        "float16[N,4] x => float16[N,4] y",
        "a = Mul (x, k) y = Div (a, k)",
        "y = Identity (x)",
        weights={"k": np.array(2048, np.float16)},
    ),
    Pair(
        "a constant in double",
        "double[N,4] x => double[N,4] y",
        "y = Mul (x, c)",
        weights={"c": np.array(0.1)},
        edit=_set("c", (), np.float32(0.1)),
    ),
    swap("Xor / Or", "bool[N,5] x, bool[N,5] z => bool[N,5] y", "y = Xor (x, z)", "Xor", "Or"),
    swap(
        "exclusive CumSum",
        "float[N,5] x => float[N,5] y",
        "a = Constant <value_int = 1> () y = CumSum <exclusive = 0> (x, a)",
        "= 0>",
        "= 1>",
    ),
    swap(
        "values added where indices repeat",
        "float[N,6] x, int64[N,4] i, float[N,4] u => float[N,6] y",
        'y = ScatterElements <axis = 1, reduction = "add"> (x, i, u)',
        "add",
        "none",
    ),
    swap(
        "axis of GatherElements",
        "float[3,3] x, int64[3,3] i => float[3,3] y",
        "y = GatherElements <axis = 0> (x, i)",
        "axis = 0",
        "axis = 1",
    ),
    swap(
        "order of Transpose",
        "float[N,3,3] x => float[N,3,3] y",
        "y = Transpose <perm = [0, 2, 1]> (x)",
        "[0, 2, 1]",
        "[0, 1, 2]",
    ),
    swap(
        "order of Concat",
        "float[N,2] x, float[N,2] z => float[N,4] y",
        "y = Concat <axis = 1> (x, z)",
        "(x, z)",
        "(z, x)",
    ),
    swap(
        "start of Slice",
        "float[N,8] x => float[N,3] y",
        "s = Constant <value_ints = [1]> () e = Constant <value_ints = [7]> () a = Constant <value_ints = [1]> () t = Constant <value_ints = [2]> () y = Slice (x, s, e, a, t)",
        "s = Constant <value_ints = [1]>",
        "s = Constant <value_ints = [2]>",
    ),
    Pair(
        "variance of one channel",
        "float[N,4,3] x => float[N,4,3] y",
        "y = BatchNormalization (x, g, h, m, v)",
        weights={
            "g": np.ones(4, np.float32),
            "h": np.zeros(4, np.float32),
            "m": np.ones(4, np.float32),
            "v": np.array([1, 2, 3, 4], np.float32),
        },
        edit=_set("v", 3, 4.2),
    ),
    swap(
        "padding of GridSample",
        "float[N,2,4,4] x, float[N,3,3,2] grid => float[N,2,3,3] y",
        'y = GridSample <padding_mode = "zeros"> (x, grid)',
        "zeros",
        "border",
    ),
    swap(
        "diagonal of Trilu",
        "float[N,4,4] x => float[N,4,4] y",
        "k = Constant <value_int = 1> () y = Trilu (x, k)",
        "= 1>",
        "= 0>",
    ),
    Pair(
        "small bias",
        "float[N,16] x => float[N,4] y",
        _LINEAR,
        weights="W[16,4] c[4]",
        edit=_added("c", 2, 0.004),
    ),
    Pair(
        "one weight of many",
        "float[N,64] x => float[N,8] y",
        _MANY,
        weights="W[64,128] g[128] h[128] V[128,8]",
        edit=_negated("W", 40, 100),
    ),
    Pair(
        "first layer of a saturated net",
        "float[N,24] x => float[N,5] y",
        _DEEP,
        weights="A[24,24] B[24,24] C[24,5]",
        edit=_negated("A", 3, 3),
    ),
    Pair(
        "slope of one channel",
        "float[N,4,3] x => float[N,4,3] y",
        "y = PRelu (x, p)",
        weights="p[4,1]",
        edit=_added("p", 1, 0.01),
    ),
    swap(
        "steep gate",
        "float[N,3] x => float[N,3] y",
        "l = Constant <value_float = 12.0> () k = Constant <value_float = 50.0> () a = Sub (x, l) b = Mul (a, k) c = Sigmoid (b) y = Mul (c, x)",
        "12.0",
        "12.5",
    ),
    swap(
        "saturation of Softplus",
        "float[N,3] x => float[N,3] y",
        "y = Softplus (x)",
        "y = Softplus (x)",
        "h = Constant <value_float = 80.0> () l = Constant <value_float = -80.0> () a = Clip (x, l, h) y = Softplus (a)",
    ),
)
