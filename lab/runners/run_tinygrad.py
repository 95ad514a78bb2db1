"""Runs a model in tinygrad, on the CPU."""

import os
import shutil
import sys

import numpy as np

# Kernels are compiled by clang; without it Python computes what they would.
if not shutil.which("clang"):
    os.environ["DEV"] = "PYTHON"

from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

model, inputs, outputs = sys.argv[1:]
runner = OnnxRunner(model)
found = runner({name: Tensor(array) for name, array in np.load(inputs).items()})
np.savez(outputs, **{str(index): item.numpy() for index, item in enumerate(found.values())})
