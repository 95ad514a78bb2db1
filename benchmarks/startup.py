"""Starting up: whole processes, from outside."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.models import many_nodes

ROUNDS = 15


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, target = str(Path(folder, "model.onnx")), str(Path(folder, "out.onnx"))
        many_nodes(source, 10)
        program = [sys.executable, "-m", "onnxreduce_cli.cli.main"]
        convert = [*program, "convert", source, "--opset", "18", "-o", target, "-q"]
        commands = {
            "python -c 'import onnx'": [sys.executable, "-c", "import onnx"],
            "onnxreduce convert --no-check": [*convert, "--no-check"],
            "onnxreduce convert": convert,
            "onnxreduce --help": [*program, "--help"],
        }
        least = dict.fromkeys(commands, float("inf"))
        for _ in range(ROUNDS):
            for name, command in commands.items():
                Path(target).unlink(missing_ok=True)  # One that is written over takes longer.
                start = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                least[name] = min(least[name], time.perf_counter() - start)
    base = least["python -c 'import onnx'"]
    print("| start-up, a model of ten nodes | wall s | ratio |\n|---|--:|--:|")
    for name, seconds in least.items():
        print(f"| {name} | {seconds:.2f} | {seconds / base:.2f} |")
