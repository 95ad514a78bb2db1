"""Reads the models of a folder in OpenCV and runs them; prints a line for each: what it said.

Each is run in a process of its own, as some break it.
"""

import os
import sys
from pathlib import Path

import cv2
import numpy as np


def load(path):
    """Print what OpenCV says of a model."""
    net = cv2.dnn.readNetFromONNX(path.read_bytes())
    for index in range(9):
        try:
            net.setInput(np.ones((1, 2, 3, 4), np.float32), f"x{index}")
        except cv2.error:
            break
    net.forward()


for path in sorted(Path(sys.argv[1]).glob("*.onnx")):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            load(path)
        except Exception as error:
            os.write(writer, " ".join(str(error).split()).encode()[:4000])
        else:
            os.write(writer, b"loaded")
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as said:
        print("said:", said.read() or "broke", flush=True)
