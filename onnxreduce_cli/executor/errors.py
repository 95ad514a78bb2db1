"""The executor's exceptions: one for what it cannot compute, one for what is wrong in a model."""

from __future__ import annotations

from onnxreduce_cli.text import joined


class ExecutorError(RuntimeError):
    """A model, or one of its nodes, could not be run.

    `node` is the node's name (or its first output when it has none), `operator` its
    `domain.op_type` (the domain left out for ai.onnx), `opset` the version imported for
    that domain and `reason` one sentence. The first three are None if it is about the model as
    a whole.
    """

    def __init__(
        self,
        reason: str,
        *,
        node: str | None = None,
        operator: str | None = None,
        opset: int | None = None,
    ) -> None:
        """Build the message: the node first, where there is one, then the reason."""
        self.reason = reason
        self.node = node
        self.operator = operator
        self.opset = opset
        where = "" if operator is None else f"node {node!r} ({operator}, opset {opset}): "
        super().__init__(joined([where + reason]))


class UnsupportedError(ExecutorError):
    """The executor has no right implementation of a node at its opset."""


class ExecutionError(ExecutorError):
    """The model or its inputs are invalid, or a node failed while running."""


#: The exceptions of kernels where shapes or values do not fit, from NumPy and onnx.reference.
FAILURES = (
    ArithmeticError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Invalid(Exception):  # noqa: N818 - from a kernel to the executor, never seen by callers
    """The node or its inputs break the operator's specification; raised by kernels."""


class NotSupported(Exception):  # noqa: N818 - from a kernel to the executor
    """The specification allows a node, but the kernel cannot compute it; raised by kernels."""
