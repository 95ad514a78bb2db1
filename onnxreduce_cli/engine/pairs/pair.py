"""A site as two small models: all that whoever checks it needs to know.

This imports nothing of the engine: a process that checks pairs never plans a conversion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from onnx import ModelProto

from onnxreduce_cli.model.graph.values import Dims

#: A partly known list of integers: each one's value, or the tensor and axis of which it is the
#: size, or None.
Sizes = tuple[int | tuple[str, int] | None, ...]


class UncheckableError(Exception):
    """A site cannot be run on its own; the message says why."""


class Pair(NamedTuple):
    """The node and its replacement as models of the same inputs and outputs.

    Attributes:
        reference: the original node at its own opset.
        candidate: its replacement at the target opset.
        moved: whether only attributes and inputs moved: the same operator, once.
        full: whether it is the site as it stands: no dimension was made smaller, no constant drawn.
        promised: the dimensions that the model states of its outputs, by output, where none was
            made smaller: smaller inputs lead to others.
        sizes: the known elements of lists of integers that are drawn, by input.
        constants: the inputs that are constants of the model, which are drawn.
        stabler: whether the replacement may differ where inner values over- or underflow.
    """

    reference: ModelProto
    candidate: ModelProto
    moved: bool
    full: bool
    promised: dict[str, Dims]
    sizes: dict[str, Sizes]
    constants: tuple[str, ...] = ()
    stabler: bool = False

    @property
    def key(self) -> bytes:
        """A key by which distinct sites are recognised: equal keys, equal sites."""
        sides = (self.reference, self.candidate)
        parts = [side.SerializeToString(deterministic=True) for side in sides]
        return b"\0".join([*parts, repr(sorted(self.sizes.items())).encode()])


class DistinctSite(NamedTuple):
    """Equivalent sites of a conversion, and the pairs that they can be checked by.

    Attributes:
        node: the first node's name, or a description by its output.
        op_type: its operator.
        scope: where it is: empty for the main graph.
        result: the operators that replace it.
        sites: how many sites there are.
        pair: the node on small tensors; None where no pair can be made.
        reason: why none can be made; empty where one can.
        others: the pair of the true dimensions and constants, if that is not `pair`, then one of
            the smallest tensors for which the same operators result. Few sites need them: each is
            made when it is asked for, and raises `UncheckableError` where that cannot be.
    """

    node: str
    op_type: str
    scope: str
    result: tuple[str, ...]
    sites: int
    pair: Pair | None
    reason: str
    others: Iterator[Pair]
