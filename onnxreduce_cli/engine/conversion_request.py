"""The input of a conversion: a model with its facts, and what is requested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from onnx import FunctionProto, ModelProto

from onnxreduce_cli.engine.options import DEFAULTS, Options
from onnxreduce_cli.model.graph.domains import learning_version_of
from onnxreduce_cli.model.graph.scope import Scope, scopes
from onnxreduce_cli.model.types.facts import Facts

if TYPE_CHECKING:
    from onnxreduce_cli.engine.changes import ContractionKey
    from onnxreduce_cli.model.types.specialisation import Specialisation
    from onnxreduce_cli.targets.requirement import Target


class ConversionRequest(NamedTuple):
    """What is requested of a conversion.

    Attributes:
        source: the model's opset; None where it imports no default domain.
        target: the opset to reach.
        options: the options of the conversion.
        contract: the operators to contract to.
        runtime: the runtime that the model is for; None for any.
        uncontracted: the contractions that are not to be made, each with the reason.
    """

    source: int | None
    target: int
    options: Options = DEFAULTS
    contract: frozenset[str] = frozenset()
    runtime: Target | None = None
    uncontracted: Mapping[ContractionKey, str] = MappingProxyType({})

    def learning_target(self, own: int) -> int:
        """Return the version of ai.onnx.ml to reach from the model's own.

        That is the one that the options name. Else the runtime lowers it, or an opset below the
        model's own, to the version that onnx released together with that.
        """
        if self.options.ml_opset is not None:
            return self.options.ml_opset
        newest = None if self.runtime is None else self.runtime.ml_version
        if newest is None and self.source is not None and self.target < self.source:
            newest = learning_version_of(self.target)
        return own if newest is None else min(own, newest)


@dataclass(frozen=True)
class ConversionInput:
    """A model to plan a conversion of: the user's, or a copy that a pass has edited.

    Attributes:
        model: the model.
        scopes: its scopes; specialised copies of functions take the place of the originals.
        facts: the types and constants of its values.
        specialisation: the specialised copies of its functions, if any.
    """

    model: ModelProto
    scopes: Sequence[Scope]
    facts: Facts
    specialisation: Specialisation | None = None

    @staticmethod
    def of(model: ModelProto, base_dir: str) -> ConversionInput:
        """Return the input for a model as it is; external data is relative to `base_dir`."""
        found = scopes(model)
        return ConversionInput(model, found, Facts(model, found, base_dir))

    def bound(self) -> Iterator[str]:
        """Yield the names of the values that training information refers to."""
        for training in self.model.training_info:
            for entry in (*training.initialization_binding, *training.update_binding):
                yield entry.key
                yield entry.value

    def own_function(self, scope: Scope) -> FunctionProto | None:
        """Return the function of `model` that a scope, or the original of a copy, belongs to."""
        function = scope.function
        if function is None or self.specialisation is None:
            return function
        return self.specialisation.original(function)
