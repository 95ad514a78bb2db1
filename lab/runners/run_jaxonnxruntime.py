"""Runs a model in JAX, by jaxonnxruntime."""

import sys

import numpy as np
import onnx
from jaxonnxruntime import call_onnx

model, inputs, outputs = sys.argv[1:]
arrays = dict(np.load(inputs))
function, weights = call_onnx.call_onnx_model(onnx.load(model), arrays)
found = function(weights, arrays)
found = found if isinstance(found, (list, tuple)) else [found]
np.savez(outputs, **{str(index): np.asarray(item) for index, item in enumerate(found)})
