"""If, Loop and Scan with bfloat16 in and out of their graphs, below 16."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.support import converts, model

X = np.array([[0.3, -7.5, np.inf], [np.nan, -0.0, 3.14]]).astype(ml_dtypes.bfloat16)

IF = """<ir_version: 8, opset_import: ["" : 16]>
    g (bool c, bfloat16[n,3] x) => (bfloat16[a,b] y, float[n,3] z) {
        y, z = If(c) <
            then_branch = t () => (bfloat16[m,3] y1, float[n,3] z1) {
                y1 = Add(x, x)
                z1 = Cast<to = 1>(x)
            },
            else_branch = e () => (y2, z2) {
                y2 = Transpose(x)
                z3 = Cast<to = 1>(x)
                z2 = Neg(z3)
            }>
    }"""
LOOP = """<ir_version: 8, opset_import: ["" : 16]>
    g (int64 n, bfloat16[2,3] x) => (bfloat16[2,3] last, bfloat16[r,2,3] all, int64[r] numbers) {
        last, all, numbers = Loop(n, , x) <body = b (int64 i, bool go, bfloat16[2,3] v)
            => (bool on, bfloat16[2,3] w, bfloat16[2,3] u, int64 j) {
                on = Identity(go)
                w = Mul(v, v)
                u = Sub(v, x)
                j = Identity(i)
            }>
    }"""
SCAN = """<ir_version: 8, opset_import: ["" : 16]>
    g (bfloat16[3] s, bfloat16[2,3] x) => (bfloat16[3] sum, float[2,3] each) {
        sum, each = Scan<num_scan_inputs = 1, body = b (bfloat16[3] v, bfloat16[3] row)
            => (bfloat16[3] w, float[3] out) {
                w = Add(v, row)
                out = Cast<to = 1>(w)
            }>(s, x)
    }"""
READ = """<ir_version: 8, opset_import: ["" : 16]>
    g (float[3] s, bfloat16[2,3] x) => (float[3] sum) {
        sum = Scan<num_scan_inputs = 1, body = b (float[3] v, bfloat16[3] row)
            => (float[3] w) {
                wide = Cast<to = 1>(row)
                w = Add(v, wide)
            }>(s, x)
    }"""
UNUSED = """<ir_version: 8, opset_import: ["" : 16]>
    g (int64 n, bfloat16[2,3] x) => (float[r,2,3] all) {
        last, all = Loop(n, , x) <body = b (int64 i, bool go, bfloat16[2,3] v)
            => (bool on, bfloat16[2,3] v2, float[2,3] u) {
                on = Identity(go)
                v2 = Add(v, v)
                u = Cast<to = 1>(v)
            }>
    }"""


@pytest.mark.parametrize("text", [IF, LOOP, SCAN, READ, UNUSED])
@pytest.mark.parametrize("target", [15, 13])
def test_graphs_in_float(text: str, target: int) -> None:
    source = model(text)
    if text is UNUSED:
        source.graph.node[0].output[0] = ""
    inputs = {"n": np.array(3), "x": X, "s": X[1].astype(np.float32 if text is READ else X.dtype)}
    choices = [{"c": np.array(choice), **inputs} for choice in (True, False)]
    result = converts(source, target, *choices, exact=True, in_numpy=True)
    assert result.graph.node != source.graph.node


def test_one_in_another() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (bool c, int64 n, bfloat16[2,3] x) => (bfloat16[2,3] y) {
            y = If(c) <
                then_branch = t () => (bfloat16[2,3] y1) {
                    y1 = Loop(n, , x) <body = b (int64 i, bool go, bfloat16[2,3] v)
                        => (bool on, bfloat16[2,3] w) {
                            on = Identity(go)
                            w = LeakyRelu(v)
                        }>
                },
                else_branch = e () => (bfloat16[2,3] y2) { y2 = Identity(x) }>
        }""")
    inputs = {"c": np.array(True), "n": np.array(2), "x": X}
    down = converts(source, 13, inputs, {**inputs, "c": np.array(False)}, in_numpy=True)
    converts(down, 18, inputs, in_numpy=True)
