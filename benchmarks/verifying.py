"""What verifying a pair costs beside the two plain ONNX Runtime runs it contains.

The model has eight layers of 1024 by 1024 weights. The NumPy executor is switched off.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from benchmarks import verify_memory
from onnxreduce_cli.verification.inputs.drawing import Drawer
from onnxreduce_cli.verification.inputs.profiles import profiles
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.equivalence import verify

TRIALS = 5
WIDTH = 1024


def layers(path: str) -> None:
    rng = np.random.default_rng(0)
    nodes, weights, previous = [], [], "x"
    for index in range(8):
        weight = (rng.standard_normal((WIDTH, WIDTH)) / 32).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{index}"))
        nodes.append(helper.make_node("MatMul", [previous, f"w{index}"], [f"m{index}"]))
        nodes.append(helper.make_node("Relu", [f"m{index}"], [f"r{index}"]))
        previous = f"r{index}"
    shape = [512, WIDTH]
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(previous, TensorProto.FLOAT, shape)],
        weights,
    )
    opset = helper.make_opsetid("", 13)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)


def plain(path: str) -> float:
    drawer = Drawer(ModelSource(path, path))
    feeds = []
    for trial in range(TRIALS):
        rng = np.random.default_rng(trial)
        choice = next(drawer.choices(trial, rng))
        feeds.append(drawer.draw(choice, profiles(TRIALS)[trial], rng))
    start = time.perf_counter()
    for _ in range(2):
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        for given in feeds:
            session.run(None, given)
        del session
    return time.perf_counter() - start


def verified(path: str) -> float:
    start = time.perf_counter()
    assert verify(path, path, executors=["onnxruntime"], trials=TRIALS).exit_code == 0
    return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "layers.onnx")
        layers(path)
        # The first of each starts things up.
        times = [(plain(path), verified(path)) for _ in range(6)][1:]
    runs, checks = min(pair[0] for pair in times), min(pair[1] for pair in times)
    print("| a pair of models | wall s | ratio |\n|---|--:|--:|")
    print(f"| two plain ONNX Runtime runs | {runs:.2f} | 1.00 |")
    print(f"| verify --executor onnxruntime | {checks:.2f} | {checks / runs:.2f} |\n")
    verify_memory.main()
