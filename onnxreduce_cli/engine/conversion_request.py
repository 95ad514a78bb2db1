"""The input of a conversion, a model with its facts, and what is requested of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from onnx import FunctionProto, ModelProto

from onnxreduce_cli.engine.options import DEFAULTS, Options
from onnxreduce_cli.model.graph.scope import Scope, scopes
from onnxreduce_cli.model.types.facts import Facts

if TYPE_CHECKING:
    from onnxreduce_cli.model.types.specialisation import Specialisation
    from onnxreduce_cli.targets.requirement import Target


class ConversionRequest(NamedTuple):
    """What is requested of a conversion.

    Attributes:
        source: the model's opset; None where it imports no default domain.
        target: the opset to reach.
        options: how.
        contract: operators to put in place of the nodes that stand for them.
        runtime: where the model is to run; None for anywhere.
    """

    source: int | None
    target: int
    options: Options = DEFAULTS
    contract: frozenset[str] = frozenset()
    runtime: Target | None = None


@dataclass(frozen=True)
class ConversionInput:
    """A model that a plan is made for: the user's, or a copy that a pass has edited.

    Attributes:
        model: the model.
        scopes: its scopes, with those of function copies in place of the originals'.
        facts: what is known of its values.
        specialisation: the copies of functions that it has beside those in `model`, if any.
    """

    model: ModelProto
    scopes: Sequence[Scope]
    facts: Facts
    specialisation: Specialisation | None = None

    @staticmethod
    def of(model: ModelProto, base_dir: str) -> ConversionInput:
        """A model as it is; external data is relative to `base_dir`."""
        found = scopes(model)
        return ConversionInput(model, found, Facts(model, found, base_dir))

    def bound(self) -> Iterator[str]:
        """The values that training information refers to by name."""
        for training in self.model.training_info:
            for entry in (*training.initialization_binding, *training.update_binding):
                yield entry.key
                yield entry.value

    def own_function(self, scope: Scope) -> FunctionProto | None:
        """Return the function of `model` that a scope belongs to, itself or by a copy of it."""
        function = scope.function
        if function is None or self.specialisation is None:
            return function
        return self.specialisation.original(function)
