"""Runs a model in Apache TVM, compiled for the CPU."""

import sys

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model, inputs, outputs = sys.argv[1:]
loaded = onnx.load(model)
module = from_onnx(loaded, keep_params_in_input=False)
built = tvm.compile(relax.transform.DecomposeOpsForInference()(module), target="llvm")
machine = relax.VirtualMachine(built, tvm.cpu())
arrays = dict(np.load(inputs))
held = {tensor.name for tensor in loaded.graph.initializer}
names = [item.name for item in loaded.graph.input if item.name not in held]
given = [tvm.runtime.tensor(arrays[name]) for name in names]
found = machine["main"](*given)
found = [found] if hasattr(found, "numpy") else list(found)
np.savez(outputs, **{str(index): item.numpy() for index, item in enumerate(found)})
