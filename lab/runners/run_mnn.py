"""Runs a model in MNN, converted by its own tool."""

import os
import sys

import MNN
import numpy as np

# It would send a record of its use, and install what it needs for that.
sys.modules["MNN.tools.utils.log"] = None

from MNN.tools import mnnconvert  # noqa: E402

model, inputs, outputs = sys.argv[1:]
made = model + ".mnn"
sys.argv[1:] = ["-f", "ONNX", "--modelFile", model, "--MNNModel", made, "--bizCode", "lab"]
mnnconvert.main()
if not os.path.exists(made):
    sys.exit("not converted")
arrays = dict(np.load(inputs))
interpreter = MNN.Interpreter(made)
session = interpreter.createSession({"precision": "high"})
for name, tensor in interpreter.getSessionInputAll(session).items():
    data = np.ascontiguousarray(arrays[name])
    interpreter.resizeTensor(tensor, data.shape)
interpreter.resizeSession(session)
for name, tensor in interpreter.getSessionInputAll(session).items():
    data = np.ascontiguousarray(arrays[name])
    floats = data.dtype.kind == "f"
    data = data.astype(np.float32 if floats else np.int32)
    kind = MNN.Halide_Type_Float if floats else MNN.Halide_Type_Int
    given = MNN.Tensor(data.shape, kind, data, MNN.Tensor_DimensionType_Caffe)
    tensor.copyFrom(given)
interpreter.runSession(session)
found = {}
for index, (_, tensor) in enumerate(sorted(interpreter.getSessionOutputAll(session).items())):
    shape = tensor.getShape()
    if 0 in shape:
        sys.exit("not computed")
    kind, dtype = tensor.getDataType(), np.float32
    if kind != MNN.Halide_Type_Float:
        dtype = np.int32
    host = MNN.Tensor(shape, kind, np.zeros(shape, dtype), MNN.Tensor_DimensionType_Caffe)
    tensor.copyToHostTensor(host)
    found[str(index)] = np.array(host.getNumpyData()).reshape(shape)
np.savez(outputs, **found)
