"""An idiom: a composite operator, and the nodes that exporters write for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.matching import IdiomMatch, NoMatchError
from onnxreduce_cli.idioms.tracing import Definition, Pattern, trace

#: The first opset at which idioms are contracted. Below it operators broadcast and count axes in
#: other ways, and few composite operators exist.
FIRST_OPSET = 13

#: Returns the attributes of the composite node, or raises `NoMatchError` where it does not fit.
Condition = Callable[[NodeFacts, IdiomMatch], Mapping[str, Any]]


def _matched_attributes(_: NodeFacts, found: IdiomMatch) -> Mapping[str, Any]:
    for name, number in found.numbers.items():
        if float(np.float32(number)) != number:
            raise NoMatchError(f"its {name} is {number:g} in double, which no attribute can hold")
    return found.numbers


#: Returns the inputs of the composite node. It may emit nodes, and raise `NoMatchError`.
MakeInputs = Callable[[Context, IdiomMatch], Sequence[str]]


def _matched_inputs(_: Context, found: IdiomMatch) -> Sequence[str]:
    return [found[name] for name in found.match.pattern.inputs]


@dataclass(frozen=True)
class Idiom:
    """A composite operator with the forms in which exporters write it.

    Attributes:
        op_type: the operator.
        forms: definitions of it; the first is the one to write.
        condition: returns the attributes of the node that replaces a match.
        since: the first opset at which the operator has this meaning; 0 for its first opset.
        stabler: whether the operator is right even where inner values of the forms over- or
            underflow. Elsewhere both agree.
        make_inputs: returns the inputs of that node; by default the matched values.
        by_sizes: whether the condition depends on sizes that nodes compute: see `sizes.py`.
    """

    op_type: str
    forms: tuple[Definition, ...]
    condition: Condition = _matched_attributes
    since: int = 0
    stabler: bool = False
    make_inputs: MakeInputs = _matched_inputs
    by_sizes: bool = False

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """The forms as patterns."""
        return tuple(trace(form) for form in self.forms)

    def exists(self, opset: int) -> bool:
        """Return whether an opset has the operator with this meaning."""
        return opset >= max(self.since, FIRST_OPSET) and schemas.defines(self.op_type, opset)
