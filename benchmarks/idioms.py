"""What ONNX Runtime's optimiser makes of composite operators that were written out.

For each model of `composites` as it is and at older opsets: the nodes in the file, those in the
optimised graph, the operators fused there, and the time of a run against the source's: the median
of the ratios of runs that follow each other.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto

import onnxreduce_cli
from benchmarks.composites import MODELS

OPSETS = (18, 17, 13, 11)

#: What composite operators are in an optimised graph, by the name that the table has for them.
FUSED = {
    "LayerNormalization": "LayerNorm",
    "SkipLayerNormalization": "LayerNorm",
    "Gelu": "Gelu",
    "BiasGelu": "Gelu",
    "SimplifiedLayerNormalization": "RMSNorm",
    "SkipSimplifiedLayerNormalization": "RMSNorm",
    "RMSNormalization": "RMSNorm",
    "QuickGelu": "Swish",
    "Swish": "Swish",
    "GroupNormalization": "GroupNorm",
    "RotaryEmbedding": "Rotary",
}

_PAIRS = 15


def optimised(model: ModelProto, folder: str) -> tuple[ort.InferenceSession, Counter[str]]:
    """A session of a model, and how often its optimised graph has each operator."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    path = Path(folder, "optimised.onnx")
    options.optimized_model_filepath = str(path)
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    nodes = onnx.load(path, load_external_data=False).graph.node
    return session, Counter(node.op_type for node in nodes if node.op_type != "Constant")


def ratio(first: ort.InferenceSession, other: ort.InferenceSession) -> float:
    """The median of how much longer a run of the other takes, of pairs in turns."""
    (given,) = first.get_inputs()
    feeds = {given.name: np.random.default_rng(1).normal(size=given.shape).astype(np.float32)}

    def seconds(session: ort.InferenceSession) -> float:
        start = time.perf_counter()
        session.run(None, feeds)
        return time.perf_counter() - start

    for session in (first, other):
        session.run(None, feeds)
    return statistics.median(1 / (seconds(first) / seconds(other)) for _ in range(_PAIRS))


def main() -> None:
    print("Composite operators written out, in ONNX Runtime's optimised graph")
    print(f"{'model':<20}{'opset':>6}{'nodes':>7}{'optimised':>11}{'time':>7}  fused")
    for name, make in MODELS.items():
        source = make()
        with tempfile.TemporaryDirectory() as folder:
            first, counts = optimised(source, folder)
            _row(name, source, counts, 1.0)
            for opset in OPSETS:
                result = onnxreduce_cli.convert(source, opset)
                session, counts = optimised(result, folder)
                _row("", result, counts, ratio(first, session))


def _row(name: str, model: ModelProto, counts: Counter[str], times: float) -> None:
    fused: Counter[str] = Counter()
    for op_type, count in counts.items():
        if op_type in FUSED:
            fused[FUSED[op_type]] += count
    said = ", ".join(f"{count} {item}" for item, count in sorted(fused.items()))
    opset = model.opset_import[0].version
    nodes = sum(node.op_type != "Constant" for node in model.graph.node)
    print(f"{name:<20}{opset:>6}{nodes:>7}{counts.total():>11}{times:>7.2f}  {said}", flush=True)
