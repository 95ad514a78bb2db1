"""A pair: a site as two small models, which is all that its check needs.

This module imports nothing of the engine: a process that checks pairs never plans a conversion.
"""

from __future__ import annotations

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
        non_negative: the inputs that have no negative elements, as the nodes before the site show.
        stabler: whether the replacement may differ where intermediate values overflow or underflow.
        is_of_finite: whether the replacement may differ where an input is NaN or infinite.
    """

    reference: ModelProto
    candidate: ModelProto
    moved: bool
    full: bool
    promised: dict[str, Dims]
    sizes: dict[str, Sizes]
    constants: tuple[str, ...] = ()
    non_negative: tuple[str, ...] = ()
    stabler: bool = False
    is_of_finite: bool = False

    @property
    def key(self) -> bytes:
        """A key of the pair: equal keys mean equal pairs."""
        sides = (self.reference, self.candidate)
        parts = [side.SerializeToString(deterministic=True) for side in sides]
        known = (sorted(self.sizes.items()), self.non_negative)
        return b"\0".join([*parts, repr(known).encode()])


class DistinctSite(NamedTuple):
    """Equivalent sites of a conversion, and the pairs to check them by.

    Attributes:
        number: the number of the site among the distinct ones.
        node: the first node's name, or a description by its output.
        op_type: its operator.
        scope: the label of its scope; empty for the main graph.
        result: the operators that replace it.
        sites: how many sites there are.
        pairs: the pairs, all of which must agree: one, or one for each combination of attributes
            that calls of the function set; none if one of them cannot be made.
        reason: why it cannot be made; else empty.
        contractions: the keys of the contractions that the sites are; empty if they are none.
    """

    number: int
    node: str
    op_type: str
    scope: str
    result: tuple[str, ...]
    sites: int
    pairs: tuple[Pair, ...]
    reason: str
    contractions: tuple[ContractionKey, ...] = ()

    @property
    def key(self) -> tuple[bytes, ...]:
        """A key of the pairs: equal keys mean equal pairs."""
        return tuple(pair.key for pair in self.pairs)
