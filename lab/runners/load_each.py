"""Loads the models of a folder in a runtime and prints a line for each: what it said.

Each is loaded in a process of its own, as some break it.
"""

import os
import sys
from pathlib import Path


def openvino():
    """Return what reads a model in OpenVINO."""
    try:
        from openvino import Core
    except ImportError:  # Up to 2022.
        from openvino.runtime import Core

    core = Core()
    return lambda path: core.read_model(str(path))


def opencv():
    """Return what reads a model in OpenCV, and runs it: some names are looked up only then."""
    import cv2
    import numpy as np

    def load(path):
        net = cv2.dnn.readNetFromONNX(str(path))
        for index in range(9):
            try:
                net.setInput(np.ones((1, 2, 3, 4), np.float32), f"x{index}")
            except cv2.error:
                break
        net.forward()

    return load


runtime, folder = sys.argv[1:]
load = {"openvino": openvino, "opencv": opencv}[runtime]()
for path in sorted(Path(folder).glob("*.onnx")):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            load(path)
        except Exception as error:
            # The errors of runtimes have no other class in common.
            os.write(writer, " ".join(str(error).split()).encode()[:4000])
        else:
            os.write(writer, b"loaded")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, errors="replace") as said:
        print("said:", said.read() or "broke", flush=True)
    os.waitpid(child, 0)
