"""The built-in executor: it runs ONNX models on NumPy, each node by its opset's definition.

It is written from the specification alone and apart from the conversion steps, so that
one can catch the other's mistakes.
"""

from onnxreduce_cli.executor.errors import ExecutionError, ExecutorError, UnsupportedError
from onnxreduce_cli.executor.run import Executor, run

__all__ = ["ExecutionError", "Executor", "ExecutorError", "UnsupportedError", "run"]
