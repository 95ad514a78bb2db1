"""Loads the models of a folder in ONNX Runtime, on the CPU, and prints a line for each."""

import sys
from pathlib import Path

import onnxruntime

onnxruntime.set_default_logger_severity(4)
for path in sorted(Path(sys.argv[1]).glob("*.onnx")):
    try:
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        # onnxruntime's errors have no other class in common.
        print(" ".join(str(error).split()))
    else:
        print("loaded")
