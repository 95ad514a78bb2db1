"""Runs a model in RKNN-Toolkit2's simulator, not quantized."""

import sys

import numpy as np
from rknn.api import RKNN

model, inputs, outputs = sys.argv[1:]
rknn = RKNN(verbose=False)
rknn.config(target_platform="rk3588", optimization_level=0)
for code in (
    rknn.load_onnx(model=model),
    rknn.build(do_quantization=False),
    rknn.init_runtime(),
):
    if code:
        sys.exit("refused")
arrays = list(np.load(inputs).values())
found = rknn.inference(inputs=arrays, data_format=["nchw"] * len(arrays))
np.savez(outputs, **{str(index): array for index, array in enumerate(found)})
