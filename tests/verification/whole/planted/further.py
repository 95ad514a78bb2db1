# ruff: noqa: E501 - a graph a line.
"""Faults and harmless rewrites of other kinds, written after the draws were made."""

from __future__ import annotations

import numpy as np

from tests.verification.whole.planted.faults import swap
from tests.verification.whole.planted.pairs import Pair, Weights


def _reorder_gates(weights: Weights) -> None:
    """Put the gates of an LSTM into another framework's order: input, forget, cell, output."""
    for name in ("W", "R"):
        i, o, f, c = np.split(weights[name], 4, axis=1)
        weights[name] = np.concatenate([i, f, c, o], axis=1)


_LSTM = "s, h, l = LSTM <hidden_size = 4> (x, W, R, B) y = Identity (s)"
_LSTM_WEIGHTS = "W[1,16,3] R[1,16,4] B[1,32]"
_LSTM_TYPES = "float[T,N,3] x => float[T,1,N,4] y"
_LOOP = (
    "n = Constant <value_int = 4> () go = Constant <value = bool {1}> () l, y = Loop (n, go, x) <body = b "
    "(int64 i, bool c, float[3] s) => (bool d, float[3] t, float[3] o) { d = Identity (c) "
    "h = Constant <value_float = 0.5> () u = Mul (s, h) t = Add (u, h) o = Identity (t) }>"
)
_SCAN = (
    "z = Constant <value = float[3] {0, 0, 0}> () l, y = Scan <num_scan_inputs = 1, "
    "scan_input_directions = [0], body = b (float[3] s, float[3] r) => (float[3] t, float[3] o) "
    "{ h = Constant <value_float = 0.5> () u = Mul (s, h) t = Add (u, r) o = Identity (t) }> (z, x)"
)
_POOL = "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 0> (x)"
_UINT8 = {"s": np.array(0.1, np.float32), "z": np.array(10, np.uint8)}
_TREE = (
    "y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0, 0, 0], "
    "nodes_nodeids = [0, 1, 2], nodes_featureids = [1, 0, 0], "
    'nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values = [1.375, 0.0, 0.0], '
    "nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], "
    "nodes_missing_value_tracks_true = [0, 0, 0], nodes_hitrates = [1.0, 1.0, 1.0], "
    "target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0], "
    "target_weights = [1.0, 2.0]> (x)"
)
_IF = (
    "y = If (c) <then_branch = t () => (float[N,3] p) { p = Softplus (x) }, "
    "else_branch = e () => (float[N,3] q) { q = Mish (x) }>"
)

FURTHER_FAULTS = (
    Pair(
        "QuantizeLinear wraps",
        "float[N,4] x => uint8[N,4] y",
        "y = QuantizeLinear (x, s, z)",
        "a = Div (x, s) b = Round (a) t = Cast <to = 1> (z) c = Add (b, t) d = Cast <to = 7> (c) y = Cast <to = 2> (d)",
        weights=_UINT8,
    ),
    swap(
        "a Loop gives the state before",
        "float[3] x => float[A,3] y",
        _LOOP,
        "o = Identity (t)",
        "o = Identity (s)",
    ),
    swap(
        "direction of a Scan",
        "float[T,3] x => float[T,3] y",
        _SCAN,
        "directions = [0]",
        "directions = [1]",
    ),
    swap(
        "ceil_mode",
        "float[N,2,A,B] x => float[N,2,C,D] y",
        _POOL,
        "ceil_mode = 0",
        "ceil_mode = 1",
    ),
    Pair(
        "gate order of LSTM",
        _LSTM_TYPES,
        _LSTM,
        weights=_LSTM_WEIGHTS,
        edit=_reorder_gates,
    ),
    swap(
        "clip of LSTM",
        _LSTM_TYPES,
        _LSTM,
        "hidden_size = 4",
        "hidden_size = 4, clip = 3.0",
        weights=_LSTM_WEIGHTS,
    ),
    swap(
        "epsilon of InstanceNormalization",
        "float[N,4,6] x => float[N,4,6] y",
        "y = InstanceNormalization <epsilon = 0.00001> (x, g, h)",
        "0.00001",
        "0.001",
        weights="g[4] h[4]",
    ),
    swap(
        "two inputs that are equal",
        "float[N,4] x, float[N,4] z => float[N,4] y",
        "c = Greater (x, z) t = Tanh (x) y = Where (c, t, z)",
        "Greater (x, z)",
        "GreaterOrEqual (x, z)",
    ),
    swap(
        "CumSum from behind",
        "float[N,T] x => float[N,T] y",
        "a = Constant <value_int = 1> () y = CumSum <reverse = 0> (x, a)",
        "= 0>",
        "= 1>",
    ),
    Pair(
        "pads of MaxPool are zeros",
        "float[N,2,5,5] x => float[N,2,5,5] y",
        "y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
        "p = Constant <value_ints = [0, 0, 1, 1, 0, 0, 1, 1]> () a = Pad (x, p) y = MaxPool <kernel_shape = [3, 3]> (a)",
    ),
    Pair(
        "int8 Abs saturates",
        "int8[N] x => int8[N] y",
        "y = Abs (x)",
        "a = Cast <to = 6> (x) b = Abs (a) h = Constant <value = int32 {127}> () d = Min (b, h) y = Cast <to = 3> (d)",
    ),
    Pair(
        "order of NonZero",
        "float[3,4] x => int64[2,A] y",
        "y = NonZero (x)",
        "t = Transpose (x) n = NonZero (t) i = Constant <value_ints = [1, 0]> () y = Gather (n, i)",
    ),
    swap(
        "case of strings",
        "string[N] x => string[A] y",
        'y = StringNormalizer <case_change_action = "LOWER", is_case_sensitive = 1, stopwords = ["the"]> (x)',
        "is_case_sensitive = 1",
        "is_case_sensitive = 0",
    ),
    Pair(
        "squares in float16",
        "float16[N,8] x => float16[N,1] y",
        "a = Cast <to = 1> (x) b = Mul (a, a) c = ReduceMean (b, last) d = Sqrt (c) y = Cast <to = 10> (d)",
        "b = Mul (x, x) c = ReduceMean (b, last) y = Sqrt (c)",
        weights={"last": np.array([-1])},
    ),
    Pair(
        "indices from the end",
        "int64[N,S] ids => float[N,S,4] y",
        "y = Gather (E, ids)",
        "z = Constant <value_int = 0> () i = Max (ids, z) y = Gather (E, i)",
        weights="E[20,4]",
    ),
    Pair(
        "a class that is no class",
        "int64[N] ids => float[N,5] y",
        "d = Constant <value_int = 5> () v = Constant <value_floats = [0.0, 1.0]> () y = OneHot (ids, d, v)",
        "r = Constant <value = int64[5] {0, 1, 2, 3, 4}> () a = Constant <value_ints = [1]> () u = Unsqueeze (ids, a) e = Equal (u, r) y = Cast <to = 1> (e)",
    ),
    swap(
        "Mod of two inputs",
        "int32[N] x, int32[N] z => int32[N] y",
        "y = Mod <fmod = 0> (x, z)",
        "fmod = 0",
        "fmod = 1",
    ),
    swap(
        "the last of a sequence",
        "seq(float[N]) s => float[M] y",
        "i = Constant <value_int = -1> () y = SequenceAt (s, i)",
        "= -1",
        "= 1",
    ),
    Pair(
        "longest length",
        "float[N,T,4] x => float[N,U,4] y",
        "y = Identity (x)",
        "s = Constant <value_ints = [0]> () e = Constant <value_ints = [12]> () a = Constant <value_ints = [1]> () y = Slice (x, s, e, a)",
    ),
    swap(
        "threshold of Shrink",
        "float[N,4] x => float[N,4] y",
        "y = Shrink <lambd = 12.5, bias = 0.5> (x)",
        "12.5",
        "12.0",
    ),
    swap(
        "equality in a tree",
        "float[N,2] x => float[N,1] y",
        _TREE,
        '"BRANCH_LEQ"',
        '"BRANCH_LT"',
        opsets='"" : 18, "ai.onnx.ml" : 3',
    ),
    Pair(
        "uint64 compared as int64",
        "uint64[N] x, uint64[N] z => bool[N] y",
        "y = Less (x, z)",
        "a = Cast <to = 7> (x) b = Cast <to = 7> (z) y = Less (a, b)",
    ),
    Pair(
        "Ceil / Floor and one",
        "float[N] x => float[N] y",
        "y = Ceil (x)",
        "o = Constant <value_float = 1.0> () f = Floor (x) y = Add (f, o)",
    ),
    swap(
        "a branch for one of many flags",
        "bool[8] flags, float[N,3] x => float[N,3] y",
        f"c = ReduceMin <keepdims = 0> (flags) {_IF}",
        "p = Softplus (x)",
        "p = Mish (x)",
        opsets='"" : 20',
    ),
    swap(
        "coefficient of cubic interpolation",
        "float[N,2,5,6] x => float[N,2,A,B] y",
        'r = Constant <value_floats = [1.0, 1.0, 1.5, 2.0]> () y = Resize <mode = "cubic", cubic_coeff_a = -0.75> (x, , r)',
        "-0.75",
        "-0.5",
    ),
    swap(
        "order of DepthToSpace",
        "float[N,8,2,3] x => float[N,2,4,6] y",
        'y = DepthToSpace <blocksize = 2, mode = "DCR"> (x)',
        "DCR",
        "CRD",
    ),
    Pair(
        "groups of Conv swapped",
        "float[N,4,5] x => float[N,4,3] y",
        "y = Conv <group = 2> (x, W)",
        weights="W[4,2,3]",
        edit=lambda weights: weights.update(W=np.roll(weights["W"], 2, axis=0)),
    ),
    swap(
        "second of two functions",
        "float[N,3] x => float[N,3] y",
        "a = local.scaled <k = 0.5> (x) y = local.scaled <k = 0.25> (a)",
        "k = 0.25",
        "k = 0.251",
        functions=(
            _SCALED := '<domain: "local", opset_import: ["" : 18]> scaled <k> (x) => (y) '
            "{ f = Constant <value_float: float = @k> () y = Mul (x, f) }",
            _SCALED,
        ),
    ),
    swap(
        "maximum of scattered values",
        "float[6] x, int64[4,1] i, float[4] u => float[6] y",
        'y = ScatterND <reduction = "max"> (x, i, u)',
        "max",
        "add",
    ),
    Pair(
        "mean of integers",
        "int32[N,3] x => int32[N,1] y",
        "y = ReduceMean (x, last)",
        "a = Cast <to = 1> (x) b = ReduceMean (a, last) c = Floor (b) y = Cast <to = 6> (c)",
        weights={"last": np.array([-1])},
    ),
    swap(
        "far limit of a size",
        "float[N,T,2] x => float[N,T,2] y",
        "s = Shape <start = 1, end = 2> (x) k = Squeeze (s) t = Constant <value_int = 100> () "
        f"c = Greater (k, t) {_IF.replace('N,3', 'N,T,2')}",
        "p = Softplus (x)",
        "p = Mish (x)",
        opsets='"" : 20',
    ),
    swap(
        "flag and threshold",
        "bool flag, float[N,3] x => float[N,3] y",
        "m = ReduceMax <keepdims = 0> (x) l = Constant <value_float = 3.5> () g = Greater (m, l) "
        f"c = And (flag, g) {_IF}",
        "p = Softplus (x)",
        "p = Mish (x)",
        opsets='"" : 20',
    ),
    swap(
        "a mode by name",
        "string kind, float[N,3] x => float[N,3] y",
        f'k = Constant <value = string {{"train"}}> () c = Equal (kind, k) {_IF}',
        "p = Softplus (x)",
        "p = Mish (x)",
        opsets='"" : 20',
    ),
    Pair(
        "guard of a division",
        "float[N,3] x => float[N,3] y",
        "n = ReduceL2 (x, last) e = Constant <value_float = 0.001> () d = Max (n, e) y = Div (x, d)",
        "n = ReduceL2 (x, last) e = Constant <value_float = 0.0001> () d = Max (n, e) y = Div (x, d)",
        weights={"last": np.array([-1])},
    ),
    Pair(
        "counts that reach 256",
        "bool[N] x => uint8 y",
        "c = Cast <to = 6> (x) s = ReduceSum <keepdims = 0> (c) y = Cast <to = 2> (s)",
        "c = Cast <to = 6> (x) s = ReduceSum <keepdims = 0> (c) h = Constant <value = int32 {255}> () m = Min (s, h) y = Cast <to = 2> (m)",
    ),
)

FURTHER_REWRITES = (
    Pair(
        "GlobalMaxPool by ReduceMax",
        "float[N,3,4,5] x => float[N,3,1,1] y",
        "y = GlobalMaxPool (x)",
        "a = Constant <value_ints = [2, 3]> () y = ReduceMax (x, a)",
    ),
    Pair(
        "GroupNormalization by InstanceNormalization",
        "float[N,4,6] x => float[N,4,6] y",
        "r = Constant <value_ints = [0, 2, -1]> () a = Reshape (x, r) m = ReduceMean (a, last) d = Sub (a, m) s = Mul (d, d) v = ReduceMean (s, last) k = Constant <value_float = 0.00001> () e = Add (v, k) q = Sqrt (e) n = Div (d, q) t = Shape (x) y = Reshape (n, t)",
        "r = Constant <value_ints = [0, 2, -1]> () a = Reshape (x, r) n = InstanceNormalization (a, o, z) t = Shape (x) y = Reshape (n, t)",
        weights={
            "last": np.array([-1]),
            "o": np.ones(2, np.float32),
            "z": np.zeros(2, np.float32),
        },
    ),
    Pair(
        "ReduceLogSumExp spelled out",
        "float[N,5] x => float[N,1] y",
        "y = ReduceLogSumExp (x, last)",
        "m = ReduceMax (x, last) d = Sub (x, m) e = Exp (d) s = ReduceSum (e, last) l = Log (s) y = Add (l, m)",
        weights={"last": np.array([-1])},
    ),
    Pair(
        "batched Gemm by Einsum",
        "float[N,4,8] x => float[N,4,3] y",
        "y = MatMul (x, W)",
        'y = Einsum <equation = "nij,jk->nik"> (x, W)',
        weights="W[8,3]",
    ),
    Pair(
        "ConvTranspose of stride 1 by Conv",
        "float[N,2,5] x => float[N,2,7] y",
        "y = ConvTranspose (x, W)",
        "y = Conv <pads = [2, 2]> (x, V)",
        weights={
            "W": (
                _KERNEL := np.random.default_rng(20).standard_normal((2, 2, 3)).astype(np.float32)
            ),
            "V": np.ascontiguousarray(_KERNEL.transpose(1, 0, 2)[:, :, ::-1]),
        },
    ),
    Pair(
        "Where by masks",
        "bool[N,4] c, float[N,4] x, float[N,4] z => float[N,4] y",
        "y = Where (c, x, z)",
        "n = Not (c) y = Where (n, z, x)",
    ),
    Pair(
        "LSTM of both directions, the second left out",
        _LSTM_TYPES,
        "s, h, l = LSTM <hidden_size = 4> (x, W, R, B) y = Identity (s)",
        's, h, l = LSTM <hidden_size = 4, direction = "bidirectional"> (x, WW, RR, BB) i = Constant <value_ints = [0]> () y = Gather <axis = 1> (s, i)',
        weights={
            "W": (_W := np.random.default_rng(21).standard_normal((1, 16, 3)).astype(np.float32)),
            "R": (_R := np.random.default_rng(22).standard_normal((1, 16, 4)).astype(np.float32)),
            "B": (_B := np.random.default_rng(23).standard_normal((1, 32)).astype(np.float32)),
            "WW": np.concatenate([_W, -_W]),
            "RR": np.concatenate([_R, -_R]),
            "BB": np.concatenate([_B, -_B]),
        },
    ),
    Pair(
        "sum of squares by MatMul",
        "float[N,16] x => float[N,1] y",
        "y = ReduceSumSquare (x, last)",
        "q = Mul (x, x) y = MatMul (q, o)",
        weights={"last": np.array([-1]), "o": np.ones((16, 1), np.float32)},
    ),
    Pair(
        "QuantizeLinear and back, of a channel by itself",
        "float[N,2,4] x => float[N,2,4] y",
        "q = QuantizeLinear <axis = 1> (x, s, z) y = DequantizeLinear <axis = 1> (q, s, z)",
        "t = Transpose <perm = [0, 2, 1]> (x) q = QuantizeLinear <axis = 2> (t, s, z) d = DequantizeLinear <axis = 2> (q, s, z) y = Transpose <perm = [0, 2, 1]> (d)",
        weights={"s": np.array([0.1, 0.5], np.float32), "z": np.array([0, 7], np.int8)},
    ),
    Pair(
        "int8 by int32",
        "int8[N] x, int8[N] z => int8[N] y",
        "y = Mul (x, z)",
        "a = Cast <to = 6> (x) b = Cast <to = 6> (z) c = Mul (a, b) y = Cast <to = 3> (c)",
    ),
    Pair(
        "If by Where",
        "float[N,3] x => float[N,3] y",
        "s = ReduceSum <keepdims = 0> (x) l = Constant <value_float = 1.0> () c = Greater (s, l) y = If (c) <then_branch = t () => (float[N,3] p) { p = Abs (x) }, else_branch = e () => (float[N,3] q) { q = Neg (x) }>",
        "s = ReduceSum <keepdims = 0> (x) l = Constant <value_float = 1.0> () c = Greater (s, l) p = Abs (x) q = Neg (x) y = Where (c, p, q)",
    ),
    Pair(
        "Gather of one by Slice",
        "float[N,5] x => float[N,1] y",
        "i = Constant <value_ints = [-1]> () y = Gather <axis = 1> (x, i)",
        "s = Constant <value_ints = [-1]> () e = Constant <value_ints = [9223372036854775807]> () a = Constant <value_ints = [1]> () y = Slice (x, s, e, a)",
    ),
    Pair(
        "TopK of all sorts",
        "float[N,6] x => float[N,2] y",
        "k = Constant <value_ints = [2]> () y, i = TopK (x, k)",
        "n = Neg (x) k = Constant <value_ints = [2]> () v, i = TopK <largest = 0> (n, k) y = Neg (v)",
    ),
)
