"""A pair: a site as two small models, which is all that its check needs.

This module imports nothing of the engine: a process that checks pairs never plans a conversion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from onnx import ModelProto

from onnxreduce_cli.model.graph.values import Dims

if TYPE_CHECKING:
    from onnxreduce_cli.engine.changes import ContractionKey

#: A partly known list of integers: each is its value, or the tensor and axis whose size it is, or
#: None.
Sizes = tuple[int | tuple[str, int] | None, ...]


class UncheckableError(Exception):
    """A site cannot be run on its own; the message says why."""


class Pair(NamedTuple):
    """The node and its replacement as models of the same inputs and outputs.

    Attributes:
        reference: the original node at its own opset.
        candidate: its replacement at the target opset.
        moved: whether the replacement is one node of the same operator.
        full: whether it is the site as it is: no dimension was made smaller, no constant drawn.
        promised: the dimensions that the source model has for the outputs; empty if a dimension of
            an input was made smaller.
        sizes: the known elements of lists of integers that are drawn, by input.
        constants: the inputs that are constants of the source model, but are drawn.
        stabler: whether the replacement may differ where intermediate values overflow or underflow.
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
        """A key of the pair: equal keys mean equal pairs."""
        sides = (self.reference, self.candidate)
        parts = [side.SerializeToString(deterministic=True) for side in sides]
        return b"\0".join([*parts, repr(sorted(self.sizes.items())).encode()])


class DistinctSite(NamedTuple):
    """Equivalent sites of a conversion, and the pairs to check them by.

    Attributes:
        node: the first node's name, or a description by its output.
        op_type: its operator.
        scope: the label of its scope; empty for the main graph.
        result: the operators that replace it.
        sites: how many sites there are.
        pair: the node on small tensors; None if no pair can be made.
        reason: why no pair can be made; else empty.
        others: the pair of the true dimensions and constants, if that is not `pair`, then one of
            the smallest tensors for which the same operators result. Few sites need them, so each
            is made when it is drawn, or raises `UncheckableError`.
        contractions: the keys of the contractions that the sites are; empty if they are none.
    """

    node: str
    op_type: str
    scope: str
    result: tuple[str, ...]
    sites: int
    pair: Pair | None
    reason: str
    others: Iterator[Pair]
    contractions: tuple[ContractionKey, ...] = ()
