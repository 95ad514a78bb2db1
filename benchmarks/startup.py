"""Starting up: whole processes, from outside."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.harness import PROGRAM, least
from benchmarks.models import many_nodes

ROUNDS = 15


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, target = str(Path(folder, "model.onnx")), str(Path(folder, "out.onnx"))
        many_nodes(source, 10)
        convert = [PROGRAM, "convert", source, "--opset", "18", "-o", target, "-q"]
        commands = {
            "python -c 'import onnx'": [sys.executable, "-c", "import onnx"],
            "onnxreduce convert --no-check": [*convert, "--no-check"],
            "onnxreduce convert": convert,
            "onnxreduce --help": [PROGRAM, "--help"],
        }
        found = least([*commands.values()], target, ROUNDS)
    print("| start-up, a model of ten nodes | wall s | ratio |\n|---|--:|--:|")
    for name, own in zip(commands, found, strict=True):
        print(f"| {name} | {own:.3f} | {own / found[0]:.2f} |")
