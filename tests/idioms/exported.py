"""Composite operators as PyTorch's exporter, tf2onnx and Keras write them, as text."""

from __future__ import annotations

GROUPS = """<ir_version: 7, opset_import: ["": 13]>
agraph (float[b, 8, h, w] x) => (float[b, 8, h, w] y)
<int64[3] g = {0, 4, -1}, float[4] one = {1, 1, 1, 1}, float[4] zero = {0, 0, 0, 0},
 float[8, 1, 1] s = {1, 2, 3, 4, 5, 6, 7, 8}, float[8, 1, 1] t = {8, 7, 6, 5, 4, 3, 2, 1}> {
  r = Reshape(x, g)
  i = InstanceNormalization<epsilon = 0.00001>(r, one, zero)
  q = Shape(x)
  n = Reshape(i, q)
  m = Mul(n, s)
  y = Add(m, t)
}"""


KERAS = """<ir_version: 7, opset_import: ["": {opset}]>
agraph (float[b, t, 4] x) => (float[b, t, 4] y)
<float e = {{0.001}}, float[1, 1, 4] s = {{1, 2, 3, 4}}, float[1, 1, 4] t0 = {{4, 3, 2, 1}}> {{
  m = GlobalAveragePool(x)
  d = Sub(x, m)
  q = Mul(d, d)
  v = GlobalAveragePool(q)
  w = Add(v, e)
  r = Sqrt(w)
  i = Reciprocal(r)
  f = Mul(i, s)
  a = Mul(x, f)
  {shift}
  y = Add(a, c)
}}"""
SHIFTS = ("n = Neg(m) k = Mul(n, f) c = Add(k, t0)", "k = Mul(m, f) c = Sub(t0, k)")


FUSED = """<ir_version: 7, opset_import: ["": 13]>
agraph (float[b, t, 4] x) => (float[b, t, 4] y)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, float on = {1}, float off = {0},
 int64[4] rows = {1, -1, 4, 1}, int64[3] axes = {0, 2, 3},
 float[4] s = {1, 2, 3, 4}, float[4] u = {4, 3, 2, 1}> {
  q = Shape(x)
  q32 = Cast<to = 6>(q)
  b1 = Slice(q32, zero, one, zero)
  b0 = Squeeze(b1, zero)
  t1 = Slice(q32, one, two, zero)
  t0 = Squeeze(t1, zero)
  p = Mul(b0, t0)
  p1 = Unsqueeze(p, zero)
  p64 = Cast<to = 7>(p1)
  ones = Expand(on, p64)
  zeros = Expand(off, p64)
  r = Reshape(x, rows)
  rq = Shape(r)
  m = ReduceMean<axes = [0, 2, 3]>(r)
  d = Sub(r, m)
  ss = ReduceSumSquare<axes = [0, 2, 3], keepdims = 0>(d)
  m1 = Squeeze(m, axes)
  g = Gather(rq, axes)
  gp = ReduceProd<axes = [0], keepdims = 0>(g)
  n = Cast<to = 1>(gp)
  v = Div(ss, n)
  bn = BatchNormalization<epsilon = 0.001>(r, ones, zeros, m1, v)
  back = Cast<to = 7>(q32)
  k = Reshape(bn, back)
  ks = Mul(k, s)
  y = Add(ks, u)
}"""


MOMENTS = """<ir_version: 7, opset_import: ["": 13]>
agraph (float[n, 3, h, w] x) => (float[n, 3, h, w] y)
<float e = {0.001}, float two = {2}, float[3, 1, 1] s = {1, 2, 3},
 float[1, 3, 1, 1] b = {3, 2, 1}> {
  m = ReduceMean<axes = [2, 3]>(x)
  d = Sub(x, m)
  q = Pow(d, two)
  v = ReduceMean<axes = [2, 3]>(q)
  w0 = Add(v, e)
  r = Sqrt(w0)
  n0 = Div(d, r)
  f = Mul(n0, s)
  y = Add(f, b)
}"""


def attention(scores: str, mask: str = "float[b, 1, 1, s] mask, ") -> str:
    """The nodes of an attention of 2 heads of size 4, with its reshapes."""
    return f"""<ir_version: 7, opset_import: ["": 13]>
        agraph (float[b, s, 8] x, {mask}float[b, s, 8] z) => (float[b, 2, s, 4] y)
        <int64[4] heads = {{0, 0, 2, 4}}, float eight = {{2}}, float half = {{0.5}},
         int64[1] last = {{-1}}, int64[1] end = {{9223372036854775807}}, float[1] one = {{1}}> {{
          q0 = Reshape(x, heads) q = Transpose<perm = [0, 2, 1, 3]>(q0)
          k0 = Reshape(z, heads)
          v0 = Reshape(z, heads) v = Transpose<perm = [0, 2, 1, 3]>(v0)
          {scores}
          p = Softmax<axis = 3>(a)
          y = MatMul(p, v)
        }}"""


SWAPPED = "k = Transpose<perm = [0, 2, 3, 1]>(k0) "
SCORES = {
    "divided": SWAPPED + "c = MatMul(q, k) d = Div(c, eight) a = Add(d, mask)",
    "by heads": "k1 = Transpose<perm = [0, 2, 1, 3]>(k0) k = Transpose<perm = [0, 1, 3, 2]>(k1) "
    "c = MatMul(q, k) d = Mul(half, c) a = Add(mask, d)",
    "sdpa": SWAPPED + "s0 = Shape(q) s1 = Slice(s0, last, end) s2 = Cast<to = 1>(s1) "
    "s3 = Sqrt(s2) s4 = Div(one, s3) s5 = Sqrt(s4) s6 = Sqrt(s4) "
    "t = Mul(q, s5) u = Mul(k, s6) c = MatMul(t, u) a = Add(c, mask)",
    "query": SWAPPED + "t = Mul(q, half) c = MatMul(t, k) a = Add(c, mask)",
}


ROTARY = """<ir_version: 8, opset_import: ["": 13]>
agraph (float[b, 2, s, 4] x, float[b, s, 2] f) => (float[b, 2, s, 4] y)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] end = {9223372036854775807},
 int64[1] axis = {3}, int64[1] half = {2}> {
  e = Concat<axis = -1>(f, f)
  c0 = Cos(e)
  c = Unsqueeze(c0, one)
  s0 = Sin(e)
  t = Unsqueeze(s0, one)
  v = Slice(x, half, end, axis, one)
  n = Neg(v)
  u = Slice(x, zero, half, axis, one)
  r = Concat<axis = -1>(n, u)
  p = Mul(x, c)
  q = Mul(r, t)
  y = Add(p, q)
}"""


LIMITS = """<ir_version: 7, opset_import: ["": 13]>
agraph (float[3, 4] x, float low) => (float[3, 4] y)
<float[1] two = {{2}}, float[1, 1] one = {{1}}, float zero = {{0}}, float a = {{0.2}},
 float h = {{0.5}}, float three = {{3}}, float six = {{6}}> {{ {} }}"""


#: By operator models of it whose forms rest on shapes.
MODELS = {
    "Attention": [attention(scores) for scores in SCORES.values()],
    "Clip": [LIMITS.format("m = Max(x, one) y = Min(m, two)")],
    "GroupNormalization": [GROUPS],
    "InstanceNormalization": [MOMENTS],
    "LayerNormalization": [*(KERAS.format(opset=13, shift=shift) for shift in SHIFTS), FUSED],
    "RotaryEmbedding": [ROTARY],
}
