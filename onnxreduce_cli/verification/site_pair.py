"""The two models that a distinct site is checked by, and what that finds.

What checks them takes long to import: this is for those who ask, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from onnx import ModelProto

from onnxreduce_cli.model.values import Dims
from onnxreduce_cli.verification.compare import Errors

#: Why a pair is not checked that would compute too many elements.
TOO_LARGE = "its tensors are too large to try"

#: A partly known list of integers: each one's value, or the tensor and axis of which it is the
#: size, or None.
Sizes = tuple[int | tuple[str, int] | None, ...]


class Pair(NamedTuple):
    """The node and its replacement as models of the same inputs and outputs.

    Attributes:
        before: the original node at its own opset.
        after: its replacement at the target opset.
        moved: whether only attributes and inputs moved: the same operator, once.
        full: whether it is the site as it stands: no dimension was made smaller, no constant drawn.
        promised: the dimensions that the model states of its outputs, by output, where none was
            made smaller: smaller inputs lead to others.
        sizes: the known elements of lists of integers that are drawn, by input.
        constants: the inputs that are constants of the model, which are drawn.
        stabler: whether the replacement may differ where inner values over- or underflow.
    """

    before: ModelProto
    after: ModelProto
    moved: bool
    full: bool
    promised: dict[str, Dims]
    sizes: dict[str, Sizes]
    constants: tuple[str, ...] = ()
    stabler: bool = False

    @property
    def key(self) -> bytes:
        """A key by which distinct sites are recognised: equal keys, equal sites."""
        sides = (self.before, self.after)
        parts = [side.SerializeToString(deterministic=True) for side in sides]
        return b"\0".join([*parts, repr(sorted(self.sizes.items())).encode()])


@dataclass(slots=True)
class Found:
    """The result of checking one pair.

    Attributes:
        pair: what was run.
        errors: the differences, where both sides agree.
        failure: why the sides are not the same; empty if they are, or nothing is known.
        unchecked: why nothing is known; empty if something is.
        refused: whether that is because the node accepted no inputs that were drawn.
        inputs: those on which the sides differ.
        remarks: what people should know of the executors.
    """

    pair: Pair | None = None
    errors: Errors = field(default_factory=Errors)
    failure: str = ""
    unchecked: str = ""
    refused: bool = False
    inputs: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
