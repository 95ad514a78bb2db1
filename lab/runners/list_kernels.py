"""Prints the kernels of ONNX Runtime's CPU provider as JSON: 1.16 and later list them."""

import json

from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

kernels = [
    [kernel.domain, kernel.op_name, kernel.version_range, kernel.type_constraints]
    for kernel in get_all_opkernel_def()
    if kernel.provider == "CPUExecutionProvider"
]
print(json.dumps(kernels))
