"""Runs a model in PyTorch, converted by onnx2torch."""

import sys

import numpy as np
import onnx
import torch
from onnx2torch import convert

model, inputs, outputs = sys.argv[1:]
module = convert(onnx.load(model)).eval()
with torch.no_grad():
    found = module(*[torch.from_numpy(array) for array in np.load(inputs).values()])
found = found if isinstance(found, (list, tuple)) else [found]
np.savez(outputs, **{str(index): item.numpy() for index, item in enumerate(found)})
