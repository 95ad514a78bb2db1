"""Runs a model in OpenVINO, on the CPU."""

import sys

import numpy as np
import openvino

model, inputs, outputs = sys.argv[1:]
if hasattr(openvino, "Core"):
    core, options = openvino.Core(), {"INFERENCE_PRECISION_HINT": "f32"}
else:  # Before 2023, when 32 bits were asked for in another way.
    from openvino.runtime import Core

    core, options = Core(), {"ENFORCE_BF16": "NO"}
compiled = core.compile_model(model, "CPU", options)
arrays = dict(np.load(inputs))
# An input that a node gives as it is goes by the names of both.
names = [next(name for name in port.names if name in arrays) for port in compiled.inputs]
result = compiled([arrays[name] for name in names])
np.savez(outputs, **{str(index): result[port] for index, port in enumerate(compiled.outputs)})
