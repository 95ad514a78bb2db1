"""Reads the models of a folder in OpenVINO and prints a line for each: what it said."""

import sys
from pathlib import Path

try:
    from openvino import Core
except ImportError:  # Up to 2022.
    from openvino.runtime import Core

core = Core()
for path in sorted(Path(sys.argv[1]).glob("*.onnx")):
    try:
        core.read_model(str(path))
    except Exception as error:
        # OpenVINO's errors have no other class in common.
        print("said:", " ".join(str(error).split()))
    else:
        print("said: loaded")
