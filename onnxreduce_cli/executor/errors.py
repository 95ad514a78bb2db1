"""What the executor raises: one type for what it cannot do, one for what a model does wrong."""

from __future__ import annotations

from onnxreduce_cli.text import joined


class ExecutorError(RuntimeError):
    """A model, or one of its nodes, could not be run.

    `node` is the node's name (or its first output when it has none), `operator` its
    `domain.op_type` (the domain left out for ai.onnx), `opset` the version imported for
    that domain and `reason` one sentence. The first three are None when the trouble is
    with the model as a whole.
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
    """The executor has no implementation that is right for this node at its opset."""


class ExecutionError(ExecutorError):
    """The model or its inputs are invalid, or a node failed while running."""


#: How kernels fail where shapes or values do not fit: as NumPy does, and the kernels of onnx.
FAILURES = (
    ArithmeticError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Invalid(Exception):  # noqa: N818 - a kernel's word to the runner, never seen by callers
    """Raised by a kernel: the node or its inputs break the operator's specification."""


class NotSupported(Exception):  # noqa: N818 - a kernel's word to the runner
    """Raised by a kernel: the specification allows this, but the kernel does not do it."""
