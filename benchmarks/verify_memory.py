"""The memory of `verify` beside that of ONNX Runtime on the same inputs, a process each.

The model is the shape of a text detector: convolutions over an image of 640 by 640. Peaks are of
resident memory: of ONNX Runtime's process, and of all processes of `verify` taken together.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IMAGE, CHANNELS, LAYERS, TRIALS = 640, 24, 6, 5
PAUSE = 0.01

RUN = """
import json, resource, sys
import numpy as np
import onnxruntime as ort
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
(given,) = session.get_inputs()
for trial in range(int(sys.argv[2])):
    rng = np.random.default_rng(trial)
    session.run(None, {given.name: rng.standard_normal(given.shape).astype(np.float32)})
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
"""


def detector(path: str) -> None:
    """Write the model: an image becomes a map of its size."""
    rng = np.random.default_rng(0)
    nodes, weights, value, given = [], [], "x", 3
    for layer in range(LAYERS):
        outputs = CHANNELS if layer < LAYERS - 1 else 1
        stride = 2 if layer == 0 else 1
        weight = rng.standard_normal((outputs, given, 3, 3)) / (3 * given**0.5)
        weights.append(numpy_helper.from_array(weight.astype(np.float32), f"w{layer}"))
        names = [value, f"w{layer}"]
        options = {"pads": [1, 1, 1, 1], "strides": [stride, stride]}
        nodes.append(helper.make_node("Conv", names, [f"c{layer}"], **options))
        nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"]))
        value, given = f"r{layer}", outputs
    nodes.append(helper.make_node("Sigmoid", [value], ["y"]))
    half = IMAGE // 2
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, IMAGE, IMAGE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, half, half])],
        weights,
    )
    opset = helper.make_opsetid("", 13)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)


def main() -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "detector.onnx")
        detector(path)
        ran = subprocess.run(
            [sys.executable, "-c", RUN, path, str(TRIALS)],
            check=True,
            capture_output=True,
            text=True,
        )
        plain = float(json.loads(ran.stdout))
        verify = [sys.executable, "-m", "onnxreduce_cli", "verify", path, path]
        both = peak([*verify, "--trials", str(TRIALS)])
    print("| a detector, 640 by 640 | peak MB | ratio |\n|---|--:|--:|")
    print(f"| ONNX Runtime | {plain:.0f} | 1.00 |")
    print(f"| verify, all its processes | {both:.0f} | {both / plain:.2f} |")


def peak(command: list[str]) -> float:
    """The most megabytes that a command and its children have at a time; on Linux."""
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = 0.0
    while started.poll() is None:
        most = max(most, sum(map(resident, family(started.pid))))
        time.sleep(PAUSE)
    if started.returncode:
        raise subprocess.CalledProcessError(started.returncode, command)
    return most


def family(process: int) -> list[int]:
    """A process and those that it started, and so on."""
    found = [process]
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            text = Path(f"/proc/{process}/task/{thread}/children").read_text()
            found += [item for child in text.split() for item in family(int(child))]
    except OSError:
        pass  # It has ended meanwhile.
    return found


def resident(process: int) -> float:
    """The megabytes that a process has; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
