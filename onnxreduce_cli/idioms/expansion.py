"""Writing out an idiom in place of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.idioms.writer import Writer

#: Emits a reduction, given the operator, the tensor, and whether dimensions are kept.
Reduce = Callable[[str, str, bool], str]


class Expansion(Writer):
    """Writes out an idiom in place of a context's node."""

    def __init__(self, context: Context, working: int, reduce: Reduce | None = None) -> None:
        """Write by a context.

        Args:
            context: the node.
            working: the `TensorProto.DataType` to compute in.
            reduce: emits reductions over the node's axes, if it has any.
        """
        self.op = context.op
        self._context = context
        self._working = working
        self._reduce = reduce

    def number(self, value: float | str, default: float | None = None) -> Value:
        """Return a constant of rank 0 in the dtype to compute in: see `Writer.number`."""
        if isinstance(value, str):
            return self._context.scalar(self._context.value(value, default), value, self._working)
        return self._context.scalar(value, "number", self._working)

    def reduced(self, op_type: str, data: str, *, keep: bool = True) -> str:
        """Return a reduction over the node's axes: see `Writer.reduced`."""
        assert self._reduce is not None
        return self._reduce(op_type, data, keep)


def replace_by_last(context: Context, result: str, to: int, working: int) -> None:
    """Give the node's name, output and metadata to the node that was emitted last, or to a Cast.

    Args:
        context: the node.
        result: the output of the node that was emitted last.
        to: the dtype of the node's output; a Cast is emitted if `working` is another.
        working: the dtype of `result`.
    """
    output = [context.node.output[0]]
    if to != working:
        context.replace("Cast", [result], output, keep=(), to=to)
        return
    last = context.emitted.pop().node
    assert list(last.output) == [result]
    attributes: dict[str, Any] = {item.name: item for item in last.attribute}
    context.replace(last.op_type, list(last.input), output, keep=(), **attributes)
