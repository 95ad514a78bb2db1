"""Starting up: whole processes, from outside."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.harness import PROGRAM, measured
from benchmarks.models import SMALL

ROUNDS = 15


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "out.onnx")
        convert = [PROGRAM, "convert", str(SMALL), "--opset", "13", "-o", str(target), "-q"]
        commands = {
            "python -c 'import onnx'": [sys.executable, "-c", "import onnx"],
            "onnxreduce convert --no-check": [*convert, "--no-check"],
            "onnxreduce convert": convert,
            "onnxreduce --help": [PROGRAM, "--help"],
        }
        found = [
            min(run.wall for run in runs) for runs in measured([*commands.values()], target, ROUNDS)
        ]
    print("| start-up, a model of nine nodes | wall s | ratio |\n|---|--:|--:|")
    for name, own in zip(commands, found, strict=True):
        print(f"| {name} | {own:.3f} | {own / found[0]:.2f} |")
