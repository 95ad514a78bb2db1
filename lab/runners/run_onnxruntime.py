"""Runs a model in ONNX Runtime, on the CPU."""

import sys

import numpy as np
import onnxruntime

model, inputs, outputs = sys.argv[1:]
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
arrays = dict(np.load(inputs))
found = session.run(None, {item.name: arrays[item.name] for item in session.get_inputs()})
np.savez(outputs, **{str(index): array for index, array in enumerate(found)})
