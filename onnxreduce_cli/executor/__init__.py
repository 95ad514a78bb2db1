"""The built-in executor: ONNX models on NumPy, each node by its opset's own definition.

It is written from the specification alone and apart from the conversion steps, so that
one can catch the other's mistakes.
"""

from onnxreduce_cli.executor import (
    activations,
    affine_grid,
    control,
    convert_dtype,
    cumulative,
    deform_conv,
    elementwise,
    indexing,
    linear,
    n_grams,
    normalization,
    pooling,
    quantized,
    recurrent,
    reduce,
    resample,
    sequence,
    shape,
    softmax,
    strings,
    tensor,
)
from onnxreduce_cli.executor.errors import ExecutionError, ExecutorError, UnsupportedError
from onnxreduce_cli.executor.run import Executor, run

# Importing a module of kernels registers them.
KERNEL_MODULES = (
    activations,
    affine_grid,
    control,
    convert_dtype,
    cumulative,
    deform_conv,
    elementwise,
    indexing,
    linear,
    n_grams,
    normalization,
    pooling,
    quantized,
    recurrent,
    reduce,
    resample,
    sequence,
    shape,
    softmax,
    strings,
    tensor,
)

__all__ = ["ExecutionError", "Executor", "ExecutorError", "UnsupportedError", "run"]
