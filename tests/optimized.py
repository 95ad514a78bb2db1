"""Models as ONNX Runtime's own optimiser and quantizer write them, made on the spot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto, numpy_helper, parser
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions

EXPORTS = Path(__file__).parent / "data" / "exports"

Feeds = dict[str, np.ndarray]

_HEADS, _SIZE, _WORDS, _LENGTH = 2, 8, 23, 6


class _Weights:
    """Initializers that a text of a graph refers to as it names them."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.arrays: dict[str, np.ndarray] = {}

    def __call__(self, name: str, *shape: int, around: float = 0.0) -> str:
        drawn = self._rng.normal(scale=0.3, size=shape) + around
        self.arrays[name] = drawn.astype(np.float32)
        return name

    def value(self, name: str, value: Any) -> str:
        self.arrays[name] = np.asarray(value)
        return name


def _model(text: str, weights: _Weights, opset: int) -> ModelProto:
    found: ModelProto = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')
    found.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.arrays.items()
    )
    for node in found.graph.node:  # The quantizer tells nodes by their names.
        node.name = node.output[0]
    return found


def _norm(w: _Weights, x: str, y: str) -> str:
    """LayerNormalization as exporters write it below opset 17."""
    width = _HEADS * _SIZE
    w.value("two", np.float32(2)), w.value("small", np.float32(1e-5))
    return f"""
      {y}_m = ReduceMean<axes = [-1]>({x})  {y}_d = Sub({x}, {y}_m)  {y}_p = Pow({y}_d, two)
      {y}_v = ReduceMean<axes = [-1]>({y}_p)  {y}_e = Add({y}_v, small)  {y}_s = Sqrt({y}_e)
      {y}_n = Div({y}_d, {y}_s)  {y}_g = Mul({y}_n, {w(y + "_gain", width, around=1)})
      {y} = Add({y}_g, {w(y + "_shift", width)})"""


def _rms(w: _Weights, x: str, y: str) -> str:
    w.value("two", np.float32(2)), w.value("small", np.float32(1e-5))
    return f"""
      {y}_p = Pow({x}, two)  {y}_v = ReduceMean<axes = [-1]>({y}_p)  {y}_e = Add({y}_v, small)
      {y}_s = Sqrt({y}_e)  {y}_n = Div({x}, {y}_s)
      {y} = Mul({w(y + "_gain", _HEADS * _SIZE, around=1)}, {y}_n)"""


def _gelu(w: _Weights, x: str, y: str) -> str:
    w.value("root", np.float32(2**0.5)), w.value("one", np.float32(1))
    w.value("half", np.float32(0.5))
    return f"""
      {y}_r = Div({x}, root)  {y}_f = Erf({y}_r)  {y}_o = Add({y}_f, one)
      {y}_x = Mul({x}, {y}_o)  {y} = Mul({y}_x, half)"""


def _dense(w: _Weights, x: str, y: str, rows: int, columns: int, bias: bool = True) -> str:
    weight = w(f"{y}_w", rows, columns)
    if not bias:
        return f" {y} = MatMul({x}, {weight}) "
    return f" {y}_u = MatMul({x}, {weight})  {y} = Add({w(f'{y}_b', columns)}, {y}_u) "


def _attention(w: _Weights, x: str, y: str, added: str, bias: bool = True) -> str:
    width = _HEADS * _SIZE
    w.value("split", np.array([0, 0, _HEADS, _SIZE], np.int64))
    w.value("whole", np.array([0, 0, width], np.int64))
    w.value("scale", np.float32(_SIZE**0.5))
    text = ""
    for part, perm in (("q", "0, 2, 1, 3"), ("k", "0, 2, 3, 1"), ("v", "0, 2, 1, 3")):
        name = f"{y}_{part}"
        text += _dense(w, x, f"{name}0", width, width, bias)
        text += f" {name}1 = Reshape({name}0, split)  {name} = Transpose<perm = [{perm}]>({name}1) "
    masked = f"{y}_m = Add({y}_c, {added})" if added else f"{y}_m = Identity({y}_c)"
    text += f"""
      {y}_a = MatMul({y}_q, {y}_k)  {y}_c = Div({y}_a, scale)  {masked}
      {y}_p = Softmax<axis = -1>({y}_m)  {y}_h = MatMul({y}_p, {y}_v)
      {y}_t = Transpose<perm = [0, 2, 1, 3]>({y}_h)  {y}_r = Reshape({y}_t, whole)"""
    return text + _dense(w, f"{y}_r", y, width, width, bias)


def bert(layers: int, opset: int) -> tuple[ModelProto, Feeds]:
    """An encoder with embeddings and a mask of keys."""
    w, width = _Weights(layers), _HEADS * _SIZE
    w.value("axes1", np.array([1], np.int64)), w.value("axes2", np.array([2], np.int64))
    w.value("unit", np.float32(1)), w.value("low", np.float32(-10000))
    w.value("places", np.arange(_LENGTH)[None])
    unsqueezed = (
        "m1 = Unsqueeze(mask, axes1)  m2 = Unsqueeze(m1, axes2)"
        if opset >= 13
        else "m1 = Unsqueeze<axes = [1]>(mask)  m2 = Unsqueeze<axes = [2]>(m1)"
    )
    text = f"""
      words = Gather<axis = 0>({w("word_table", _WORDS, width)}, ids)
      kinds = Gather<axis = 0>({w("kind_table", 2, width)}, segments)
      positions = Gather<axis = 0>({w("place_table", 2 * _LENGTH, width)}, places)
      e1 = Add(words, kinds)  e2 = Add(e1, positions)
      {unsqueezed}  m3 = Cast<to = 1>(m2)  m4 = Sub(unit, m3)  m5 = Mul(m4, low)
      {_norm(w, "e2", "x0")}"""
    for layer in range(layers):
        x, y = f"x{layer}", f"x{layer + 1}"
        text += _attention(w, x, f"a{layer}", "m5")
        text += f" s{layer} = Add(a{layer}, {x}) " + _norm(w, f"s{layer}", f"n{layer}")
        text += _dense(w, f"n{layer}", f"f{layer}", width, 2 * width)
        text += _gelu(w, f"f{layer}", f"g{layer}")
        text += _dense(w, f"g{layer}", f"o{layer}", 2 * width, width)
        text += f" r{layer} = Add(o{layer}, n{layer}) " + _norm(w, f"r{layer}", y)
    signature = ", ".join(f"int64[batch, {_LENGTH}] {n}" for n in ("ids", "segments", "mask"))
    text = f"g ({signature}) => (float[batch, {_LENGTH}, {width}] x{layers}) {{ {text} }}"
    rng = np.random.default_rng(layers)
    shape = (3, _LENGTH)
    feeds = {
        "ids": rng.integers(0, _WORDS, size=shape),
        "segments": rng.integers(0, 2, size=shape),
        "mask": (np.arange(_LENGTH) < [[6], [4], [2]]).astype(np.int64),
    }
    return _model(text, w, opset), feeds


def decoder(layers: int, opset: int) -> tuple[ModelProto, Feeds]:
    """Blocks of a language model: RMSNormalization, causal attention and a gated product."""
    w, width = _Weights(layers + 10), _HEADS * _SIZE
    # No lower, as 8 bits hold it together with the scores.
    causal = np.where(np.tri(_LENGTH), 0, -20).astype(np.float32)
    w.value("causal", causal[None, None])
    text = _rms(w, "x", "n0")
    last = "x"
    for layer in range(layers):
        text += _attention(w, f"n{layer}", f"a{layer}", "causal", bias=False)
        text += f" s{layer} = Add({last}, a{layer}) " + _rms(w, f"s{layer}", f"m{layer}")
        for name in "gu":
            text += _dense(w, f"m{layer}", f"{name}{layer}", width, 2 * width, bias=False)
        text += f" z{layer} = Sigmoid(g{layer})  w{layer} = Mul(g{layer}, z{layer}) "
        text += f" t{layer} = Mul(w{layer}, u{layer}) "
        text += _dense(w, f"t{layer}", f"o{layer}", 2 * width, width, bias=False)
        last = f"r{layer}"
        text += f" {last} = Add(s{layer}, o{layer}) " + _rms(w, last, f"n{layer + 1}")
    size = f"float[batch, {_LENGTH}, {width}]"
    text = f"g ({size} x) => ({size} n{layers}) {{ {text} }}"
    feeds = {"x": np.random.default_rng(layers).normal(size=(2, _LENGTH, width))}
    return _model(text, w, opset), {n: array.astype(np.float32) for n, array in feeds.items()}


def export(name: str) -> tuple[ModelProto, Feeds]:
    """A model as PyTorch exports it."""
    arrays = np.load(EXPORTS / f"{name}.npz")
    model = onnx.load(EXPORTS / f"{name}.onnx")
    return model, {item.name: arrays[item.name] for item in model.graph.input}


class _Reader(CalibrationDataReader):
    def __init__(self, feeds: Feeds) -> None:
        self._left = [feeds]

    def get_next(self) -> Feeds | None:
        return self._left.pop() if self._left else None


def by_session(source: Path, result: Path, feeds: Feeds) -> None:
    """What ONNX Runtime saves of its own optimisations up to the extended ones."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(result)
    options.log_severity_level = 3
    ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def by_transformers(source: Path, result: Path, feeds: Feeds) -> None:
    """What its optimiser for transformers makes, with the lengths of sequences for a mask."""
    _fused(source).save_model_to_file(str(result))


def with_multi_head_attention(source: Path, result: Path, feeds: Feeds) -> None:
    """The same with MultiHeadAttention."""
    options = FusionOptions("bert")
    options.use_multi_head_attention = True
    _fused(source, options).save_model_to_file(str(result))


def in_halves(source: Path, result: Path, feeds: Feeds) -> None:
    """The same with the mask as it is, in float16 between Casts."""
    options = FusionOptions("bert")
    options.use_raw_attention_mask(True)
    found = _fused(source, options)
    found.convert_float_to_float16(keep_io_types=True)
    found.save_model_to_file(str(result))


def _fused(source: Path, options: FusionOptions | None = None) -> Any:
    return optimizer.optimize_model(
        str(source),
        "bert",
        num_heads=_HEADS,
        hidden_size=_HEADS * _SIZE,
        optimization_options=options,
        opt_level=0,
    )


def in_four_bits(source: Path, result: Path, feeds: Feeds) -> None:
    """Weights of 4 bits in blocks."""
    quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=16, is_symmetric=True)
    quantizer.process()
    onnx.save(quantizer.model.model, result)


def dynamically(source: Path, result: Path, feeds: Feeds) -> None:
    """Weights of 7 bits, and data that is quantized as it comes; then optimised."""
    between = result.with_suffix(".quantized.onnx")
    quantize_dynamic(source, between, weight_type=QuantType.QUInt8, reduce_range=True)
    by_session(between, result, feeds)


def statically(source: Path, result: Path, feeds: Feeds) -> None:
    """Weights and data quantized by a calibration, as operators on integers; then optimised."""
    first, between = result.with_suffix(".shapes.onnx"), result.with_suffix(".quantized.onnx")
    quant_pre_process(str(source), str(first), skip_symbolic_shape=True)
    quantize_static(
        first, between, _Reader(feeds), quant_format=QuantFormat.QOperator, reduce_range=True
    )
    by_session(between, result, feeds)


Way = Callable[[Path, Path, Feeds], None]

_ALL: tuple[Way, ...] = (by_session, dynamically, statically)

#: Models by name, each with what writes a file of it.
FILES: dict[str, tuple[Callable[[], tuple[ModelProto, Feeds]], tuple[Way, ...]]] = {
    f"bert_{layers}_{opset}": (
        partial(bert, layers, opset),
        (*_ALL, by_transformers, with_multi_head_attention, in_halves, in_four_bits),
    )
    for layers, opset in ((1, 13), (2, 11), (2, 17))
}
FILES |= {
    f"decoder_{layers}_{opset}": (partial(decoder, layers, opset), (*_ALL, in_four_bits))
    for layers, opset in ((1, 13), (2, 17))
}
FILES |= {
    name: (partial(export, name), (*_ALL, by_transformers)) for name in ("ts_encoder", "dyn_vit")
}
FILES |= {name: (partial(export, name), _ALL) for name in ("ts_resnet", "dyn_mobilenet")}
