# ruff: noqa: E501 - a graph a line.
"""Harmless rewrites: two models that are the same function."""

from __future__ import annotations

import numpy as np

from tests.verification.whole.planted.pairs import Array, Pair


def _drawn(*shape: int, seed: int = 0, dtype: type = np.float32) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


_W, _V = _drawn(8, 6, seed=1), _drawn(6, 4, seed=2)
_KERNEL, _GAMMA, _BETA = _drawn(4, 3, 3, 3, seed=3), _drawn(4, seed=4), _drawn(4, seed=5)
_MEAN, _VAR = _drawn(4, seed=6), np.abs(_drawn(4, seed=7)) + np.float32(0.5)
_FACTOR = _GAMMA / np.sqrt(_VAR + np.float32(1e-5))
_FUSED = {
    "W": _KERNEL,
    "g": _GAMMA,
    "h": _BETA,
    "m": _MEAN,
    "v": _VAR,
    "F": _KERNEL * _FACTOR.reshape(4, 1, 1, 1),
    "b": _BETA - _MEAN * _FACTOR,
}
_NORM = (
    "m = ReduceMean <keepdims = 1> (x, last) d = Sub (x, m) s = Mul (d, d) "
    "v = ReduceMean <keepdims = 1> (s, last) k = Constant <value_float = 0.00001> () "
    "e = Add (v, k) r = Sqrt (e) n = Div (d, r) p = Mul (n, g) y = Add (p, h)"
)
_NORM_WEIGHTS = {"last": np.array([-1]), "g": _drawn(8, seed=8), "h": _drawn(8, seed=9)}
_LOOP = (
    "n = Constant <value_int = 3> () go = Constant <value = bool {1}> () y = Loop (n, go, x) <body = b "
    "(int64 i, bool c, float[N,3] s) => (bool d, float[N,3] t) { d = Identity (c) "
    "h = Constant <value_float = 0.5> () u = Mul (s, h) t = Add (u, h) }>"
)
_SCAN = (
    "z = Constant <value = float[3] {0, 0, 0}> () l, y = Scan <num_scan_inputs = 1, body = b (float[3] s, "
    "float[3] r) => (float[3] t, float[3] o) { t = Add (s, r) o = Identity (t) }> (z, x)"
)
_ATTENTION = (
    "q = MatMul (x, Q) k = MatMul (x, K) v = MatMul (x, V) kt = Transpose <perm = [0, 2, 1]> (k) "
    "s = MatMul (q, kt) f = Constant <value_float = 0.5> () n = Mul (s, f) "
    "a = Softmax <axis = -1> (n) y = MatMul (a, v)"
)
_ATTENTION_WEIGHTS = {
    "Q": _drawn(8, 8, seed=10),
    "H": _drawn(8, 8, seed=10) / np.float32(2),
    "K": _drawn(8, 8, seed=11),
    "V": _drawn(8, 8, seed=12),
}
_LEAKY = (
    '<domain: "local", opset_import: ["" : 18]> leaky (x) => (y) '
    "{ k = Constant <value_float = 0.1> () s = Mul (x, k) y = Max (x, s) }"
)
_QUANT = {"s": np.array(0.1, np.float32), "z": np.array(10, np.uint8)}

REWRITES = (
    Pair(
        "Gemm / MatMul and Add",
        "float[N,8] x => float[N,6] y",
        "y = Gemm (x, W, c)",
        "a = MatMul (x, W) y = Add (a, c)",
        weights="W[8,6] c[6]",
    ),
    Pair(
        "Gemm of a transposed weight",
        "float[N,8] x => float[N,6] y",
        "y = Gemm <transB = 1> (x, T)",
        "y = MatMul (x, W)",
        weights={"W": _W, "T": np.ascontiguousarray(_W.T)},
    ),
    Pair(
        "matrices multiplied beforehand",
        "float[N,8] x => float[N,4] y",
        "a = MatMul (x, W) y = MatMul (a, V)",
        "y = MatMul (x, P)",
        weights={"W": _W, "V": _V, "P": _W @ _V},
    ),
    Pair(
        "Conv and BatchNormalization fused",
        "float[N,3,6,6] x => float[N,4,4,4] y",
        "a = Conv (x, W) y = BatchNormalization (a, g, h, m, v)",
        "y = Conv (x, F, b)",
        weights=_FUSED,
    ),
    Pair(
        "BatchNormalization as Mul and Add",
        "float[N,4] x => float[N,4] y",
        "y = BatchNormalization (x, g, h, m, v)",
        "a = Mul (x, f) y = Add (a, b)",
        weights={**_FUSED, "f": _FACTOR},
    ),
    Pair(
        "LayerNormalization spelled out",
        "float[N,8] x => float[N,8] y",
        "y = LayerNormalization (x, g, h)",
        _NORM,
        weights=_NORM_WEIGHTS,
    ),
    Pair(
        "variance by squares",
        "float[N,8] x => float[N,8] y",
        _NORM,
        _NORM.replace(
            "s = Mul (d, d) v = ReduceMean <keepdims = 1> (s, last)",
            "s = Mul (x, x) q = ReduceMean <keepdims = 1> (s, last) mm = Mul (m, m) v = Sub (q, mm)",
        ),
        weights=_NORM_WEIGHTS,
    ),
    Pair(
        "RMS by reciprocal",
        "float[N,8] x => float[N,8] y",
        "s = Mul (x, x) v = ReduceMean <keepdims = 1> (s, last) k = Constant <value_float = 0.00001> () e = Add (v, k) r = Sqrt (e) n = Div (x, r) y = Mul (n, g)",
        "t = Constant <value_float = 2.0> () s = Pow (x, t) v = ReduceMean <keepdims = 1> (s, last) k = Constant <value_float = 0.00001> () e = Add (v, k) r = Sqrt (e) i = Reciprocal (r) n = Mul (x, i) y = Mul (g, n)",
        weights=_NORM_WEIGHTS,
    ),
    Pair(
        "InstanceNormalization spelled out",
        "float[N,4,5,5] x => float[N,4,5,5] y",
        "y = InstanceNormalization (x, g, h)",
        "a = Constant <value_ints = [2, 3]> () m = ReduceMean (x, a) d = Sub (x, m) s = Mul (d, d) v = ReduceMean (s, a) k = Constant <value_float = 0.00001> () e = Add (v, k) r = Sqrt (e) n = Div (d, r) t = Constant <value_ints = [1, 4, 1, 1]> () gg = Reshape (g, t) hh = Reshape (h, t) p = Mul (n, gg) y = Add (p, hh)",
        weights="g[4] h[4]",
    ),
    Pair(
        "Gelu by Erf",
        "float[N,4] x => float[N,4] y",
        "y = Gelu (x)",
        "r = Constant <value_float = 1.4142135> () h = Constant <value_float = 0.5> () o = Constant <value_float = 1.0> () a = Div (x, r) b = Erf (a) c = Add (b, o) d = Mul (x, c) y = Mul (d, h)",
        opsets='"" : 20',
    ),
    Pair(
        "Gelu by Tanh",
        "float[N,4] x => float[N,4] y",
        'y = Gelu <approximate = "tanh"> (x)',
        "k = Constant <value_float = 0.044715> () s = Constant <value_float = 0.7978846> () h = Constant <value_float = 0.5> () o = Constant <value_float = 1.0> () t = Constant <value_float = 3.0> () a = Pow (x, t) b = Mul (a, k) c = Add (x, b) d = Mul (c, s) e = Tanh (d) f = Add (e, o) i = Mul (x, h) y = Mul (i, f)",
        opsets='"" : 20',
    ),
    Pair(
        "Softmax spelled out",
        "float[N,6] x => float[N,6] y",
        "y = Softmax <axis = -1> (x)",
        "m = ReduceMax <keepdims = 1> (x, last) d = Sub (x, m) e = Exp (d) s = ReduceSum <keepdims = 1> (e, last) y = Div (e, s)",
        weights={"last": np.array([-1])},
    ),
    Pair(
        "LogSoftmax spelled out",
        "float[N,6] x => float[N,6] y",
        "y = LogSoftmax <axis = -1> (x)",
        "m = ReduceMax <keepdims = 1> (x, last) d = Sub (x, m) e = Exp (d) s = ReduceSum <keepdims = 1> (e, last) l = Log (s) y = Sub (d, l)",
        weights={"last": np.array([-1])},
    ),
    Pair(
        "Softmax between Transposes",
        "float[N,3,4] x => float[N,3,4] y",
        "y = Softmax <axis = 1> (x)",
        "a = Transpose <perm = [0, 2, 1]> (x) b = Softmax <axis = -1> (a) y = Transpose <perm = [0, 2, 1]> (b)",
    ),
    Pair(
        "Transpose moved",
        "float[N,3,4] x => float[N,4,3] y",
        "a = Transpose <perm = [0, 2, 1]> (x) b = Tanh (a) y = Mul (b, b)",
        "a = Tanh (x) b = Mul (a, a) y = Transpose <perm = [0, 2, 1]> (b)",
    ),
    Pair(
        "Transposes that cancel",
        "float[N,3,4] x => float[N,3,4] y",
        "a = Transpose <perm = [2, 0, 1]> (x) b = Relu (a) y = Transpose <perm = [1, 2, 0]> (b)",
        "y = Relu (x)",
    ),
    Pair(
        "order of a sum",
        "float[N,4] x, float[N,4] z, float[N,4] w => float[N,4] y",
        "a = Add (x, z) y = Add (a, w)",
        "a = Add (z, w) y = Add (x, a)",
    ),
    Pair(
        "Sum of many",
        "float[N,4] x, float[N,4] z, float[N,4] w => float[N,4] y",
        "y = Sum (x, z, w)",
        "a = Add (w, z) y = Add (a, x)",
    ),
    Pair(
        "ReduceMean by ReduceSum",
        "float[N,5] x => float[N,1] y",
        "y = ReduceMean (x, last)",
        "k = Constant <value_float = 0.2> () a = ReduceSum (x, last) y = Mul (a, k)",
        weights={"last": np.array([-1])},
    ),
    Pair(
        "two axes one by one",
        "float[N,5,6] x => float[N] y",
        "a = Constant <value_ints = [1, 2]> () y = ReduceSum <keepdims = 0> (x, a)",
        "a = Constant <value_ints = [2]> () b = ReduceSum <keepdims = 0> (x, a) c = Constant <value_ints = [1]> () y = ReduceSum <keepdims = 0> (b, c)",
    ),
    Pair(
        "ReduceL2 spelled out",
        "float[N,5] x => float[N,1] y",
        "y = ReduceL2 (x, last)",
        "a = ReduceSumSquare (x, last) y = Sqrt (a)",
        weights={"last": np.array([-1])},
    ),
    Pair(
        "Relu by Max",
        "float[N,5] x => float[N,5] y",
        "y = Relu (x)",
        "z = Constant <value_float = 0.0> () y = Max (x, z)",
    ),
    Pair(
        "Clip by Min and Max",
        "float[N,5] x => float[N,5] y",
        "l = Constant <value_float = 0.0> () h = Constant <value_float = 6.0> () y = Clip (x, l, h)",
        "l = Constant <value_float = 0.0> () h = Constant <value_float = 6.0> () a = Max (x, l) y = Min (a, h)",
    ),
    Pair(
        "HardSwish by HardSigmoid",
        "float[N,5] x => float[N,5] y",
        "y = HardSwish (x)",
        "a = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) y = Mul (x, a)",
    ),
    Pair(
        "HardSwish by Clip",
        "float[N,5] x => float[N,5] y",
        "y = HardSwish (x)",
        "t = Constant <value_float = 3.0> () l = Constant <value_float = 0.0> () h = Constant <value_float = 6.0> () a = Add (x, t) b = Clip (a, l, h) c = Mul (x, b) y = Div (c, h)",
    ),
    Pair(
        "Sigmoid spelled out",
        "float[N,5] x => float[N,5] y",
        "y = Sigmoid (x)",
        "o = Constant <value_float = 1.0> () n = Neg (x) e = Exp (n) a = Add (e, o) y = Reciprocal (a)",
    ),
    Pair(
        "Tanh by Sigmoid",
        "float[N,5] x => float[N,5] y",
        "y = Tanh (x)",
        "o = Constant <value_float = 1.0> () t = Constant <value_float = 2.0> () a = Mul (x, t) b = Sigmoid (a) c = Mul (b, t) y = Sub (c, o)",
    ),
    Pair(
        "Softplus with a threshold",
        "float[N,5] x => float[N,5] y",
        "y = Softplus (x)",
        "t = Constant <value_float = 20.0> () o = Constant <value_float = 1.0> () b = Min (x, t) e = Exp (b) a = Add (e, o) l = Log (a) c = Greater (x, t) y = Where (c, x, l)",
    ),
    Pair(
        "LeakyRelu by Where",
        "float[N,5] x => float[N,5] y",
        "y = LeakyRelu <alpha = 0.1> (x)",
        "k = Constant <value_float = 0.1> () z = Constant <value_float = 0.0> () a = Mul (x, k) c = Less (x, z) y = Where (c, a, x)",
    ),
    Pair(
        "PRelu by Relu",
        "float[N,4] x => float[N,4] y",
        "y = PRelu (x, p)",
        "a = Relu (x) z = Constant <value_float = 0.0> () b = Min (x, z) c = Mul (b, p) y = Add (a, c)",
        weights="p[4]",
    ),
    Pair("Abs by Max", "float[N,5] x => float[N,5] y", "y = Abs (x)", "n = Neg (x) y = Max (x, n)"),
    Pair(
        "Pow / Mul",
        "float[N,5] x => float[N,5] y",
        "t = Constant <value_float = 2.0> () y = Pow (x, t)",
        "y = Mul (x, x)",
    ),
    Pair(
        "division by a constant",
        "float[N,5] x => float[N,5] y",
        "t = Constant <value_float = 255.0> () y = Div (x, t)",
        "t = Constant <value_float = 0.003921569> () y = Mul (x, t)",
    ),
    Pair(
        "Conv by MatMul",
        "float[N,3,4,4] x => float[N,4,4,4] y",
        "y = Conv (x, K)",
        "s = Constant <value_ints = [0, 3, 16]> () a = Reshape (x, s) b = MatMul (W, a) t = Constant <value_ints = [0, 4, 4, 4]> () y = Reshape (b, t)",
        weights={"K": _V[:4, :3].reshape(4, 3, 1, 1).copy(), "W": _V[:4, :3].copy()},
    ),
    Pair(
        "Pad and Conv",
        "float[N,3,4,4] x => float[N,4,4,4] y",
        "y = Conv <pads = [1, 1, 1, 1]> (x, W)",
        "p = Constant <value_ints = [0, 0, 1, 1, 0, 0, 1, 1]> () a = Pad (x, p) y = Conv (a, W)",
        weights="W[4,3,3,3]",
    ),
    Pair(
        "global pool by ReduceMean",
        "float[N,3,4,5] x => float[N,3,1,1] y",
        "y = GlobalAveragePool (x)",
        "a = Constant <value_ints = [-1, -2]> () y = ReduceMean <keepdims = 1> (x, a)",
    ),
    Pair(
        "Split / Slice",
        "float[N,6] x => float[N,3] y, float[N,3] z",
        "y, z = Split <axis = 1, num_outputs = 2> (x)",
        "o = Constant <value_ints = [0]> () t = Constant <value_ints = [3]> () e = Constant <value_ints = [99]> () a = Constant <value_ints = [1]> () y = Slice (x, o, t, a) z = Slice (x, t, e, a)",
    ),
    Pair(
        "Einsum / MatMul",
        "float[N,3,4] x, float[N,4,5] z => float[N,3,5] y",
        'y = Einsum <equation = "bij,bjk->bik"> (x, z)',
        "y = MatMul (x, z)",
    ),
    Pair(
        "Loop unrolled",
        "float[N,3] x => float[N,3] y",
        _LOOP,
        "h = Constant <value_float = 0.5> () a = Mul (x, h) b = Add (a, h) c = Mul (b, h) d = Add (c, h) e = Mul (d, h) y = Add (e, h)",
    ),
    Pair(
        "Scan / CumSum",
        "float[T,3] x => float[T,3] y",
        _SCAN,
        "a = Constant <value_int = 0> () y = CumSum (x, a)",
    ),
    Pair(
        "If folded",
        "float[N,3] x => float[N,3] y",
        "c = Constant <value = bool {1}> () y = If (c) <then_branch = t () => (float[N,3] p) { p = Abs (x) }, else_branch = e () => (float[N,3] q) { q = Neg (x) }>",
        "y = Abs (x)",
    ),
    Pair(
        "function inlined",
        "float[N,3] x => float[N,3] y",
        "y = local.leaky (x)",
        "k = Constant <value_float = 0.1> () s = Mul (x, k) y = Max (x, s)",
        functions=(_LEAKY, ""),
    ),
    Pair(
        "scale moved into a weight",
        "float[N,S,8] x => float[N,S,8] y",
        _ATTENTION,
        _ATTENTION.replace("q = MatMul (x, Q)", "q = MatMul (x, H)").replace(
            "f = Constant <value_float = 0.5> () n = Mul (s, f)", "n = Identity (s)"
        ),
        weights=_ATTENTION_WEIGHTS,
    ),
    Pair(
        "Gather by OneHot",
        "int64[N,S] i => float[N,S,4] y",
        "y = Gather (E, i)",
        "d = Constant <value_int = 9> () v = Constant <value_floats = [0.0, 1.0]> () o = OneHot (i, d, v) y = MatMul (o, E)",
        weights="E[9,4]",
    ),
    Pair(
        "ArgMax by TopK",
        "float[N,9] x => int64[N,1] y",
        "y = ArgMax <axis = 1> (x)",
        "k = Constant <value_ints = [1]> () v, y = TopK <axis = 1> (x, k)",
    ),
    Pair(
        "doubled uint8",
        "uint8[N] x => uint8[N] y",
        "t = Constant <value = uint8 {2}> () y = Mul (x, t)",
        'o = Constant <value = uint8 {1}> () y = BitShift <direction = "LEFT"> (x, o)',
    ),
    Pair(
        "difference of int32",
        "int32[N] x, int32[N] z => int32[N] y",
        "y = Sub (x, z)",
        "n = Neg (z) y = Add (x, n)",
    ),
    Pair(
        "Mod by BitwiseAnd",
        "int32[N] x => int32[N] y",
        "t = Constant <value = int32 {8}> () y = Mod (x, t)",
        "t = Constant <value = int32 {7}> () y = BitwiseAnd (x, t)",
    ),
    Pair(
        "Not of Less",
        "float[N] x => bool[N] y",
        "t = Constant <value_float = 3.5> () y = GreaterOrEqual (x, t)",
        "t = Constant <value_float = 3.5> () a = Less (x, t) y = Not (a)",
    ),
    Pair(
        "De Morgan",
        "bool[N] x, bool[N] z => bool[N] y",
        "a = And (x, z) y = Not (a)",
        "a = Not (x) b = Not (z) y = Or (a, b)",
    ),
    Pair(
        "DequantizeLinear spelled out",
        "uint8[N,4] x => float[N,4] y",
        "y = DequantizeLinear (x, s, z)",
        "a = Cast <to = 1> (x) b = Cast <to = 1> (z) c = Sub (a, b) y = Mul (c, s)",
        weights=_QUANT,
    ),
    Pair(
        "QuantizeLinear spelled out",
        "float[N,4] x => uint8[N,4] y",
        "y = QuantizeLinear (x, s, z)",
        "a = Div (x, s) b = Round (a) t = Cast <to = 1> (z) c = Add (b, t) l = Constant <value_float = 0.0> () h = Constant <value_float = 255.0> () d = Clip (c, l, h) y = Cast <to = 2> (d)",
        weights=_QUANT,
    ),
    Pair(
        "float16 by float",
        "float16[N,8] x => float16[N,6] y",
        "y = MatMul (x, H)",
        "a = Cast <to = 1> (x) b = MatMul (a, W) y = Cast <to = 10> (b)",
        weights={"H": _W.astype(np.float16), "W": _W.astype(np.float16).astype(np.float32)},
    ),
    Pair(
        "sum in double",
        "double[N,5] x => double[N,1] y",
        "y = ReduceSum (x, last)",
        "y = MatMul (x, o)",
        weights={"last": np.array([-1]), "o": np.ones((5, 1))},
    ),
    Pair(
        "DepthToSpace spelled out",
        "float[N,8,2,3] x => float[N,2,4,6] y",
        "y = DepthToSpace <blocksize = 2> (x)",
        "s = Constant <value_ints = [0, 2, 2, 2, 2, 3]> () a = Reshape (x, s) b = Transpose <perm = [0, 3, 4, 1, 5, 2]> (a) t = Constant <value_ints = [0, 2, 4, 6]> () y = Reshape (b, t)",
    ),
    Pair(
        "Resize by Tile",
        "float[N,2,3] x => float[N,2,6] y",
        'r = Constant <value_floats = [1.0, 1.0, 2.0]> () y = Resize <mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "asymmetric"> (x, , r)',
        "a = Constant <value_ints = [3]> () u = Unsqueeze (x, a) t = Constant <value_ints = [1, 1, 1, 2]> () w = Tile (u, t) s = Constant <value_ints = [0, 2, 6]> () y = Reshape (w, s)",
    ),
    Pair(
        "bias through a product",
        "float[N,8] x => float[N,4] y",
        "a = Add (x, c) y = MatMul (a, W)",
        "a = MatMul (x, W) y = Add (a, b)",
        weights={
            "c": _NORM_WEIGHTS["g"],
            "W": _W[:, :4].copy(),
            "b": _NORM_WEIGHTS["g"] @ _W[:, :4],
        },
    ),
)
