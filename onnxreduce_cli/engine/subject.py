"""The subject of a conversion, a model with its facts, and its route from opset to opset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from onnx import FunctionProto, ModelProto

from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.ir_version import Wanted
from onnxreduce_cli.model.scope import Scope, scopes

if TYPE_CHECKING:
    from onnxreduce_cli.model.specialisation import Specialisation
    from onnxreduce_cli.targets.requirement import Target


class Route(NamedTuple):
    """The source and target opset of a conversion, and its options.

    Attributes:
        source: the model's opset; None where it imports no default domain.
        target: the opset to reach.
        expand: operators to replace by their function bodies.
        ir_version: the IR version to give the model; see `ir_version.choose`.
        types: what the user stated of the model's types, which it states now: ``y=float``.
        emulate: whether emulations are wanted; see `onnxreduce_cli.engine.emulation`.
        contract: operators to put in place of the nodes that stand for them.
        runtime: where the model is to run; None for anywhere.
    """

    source: int | None
    target: int
    expand: frozenset[str]
    ir_version: Wanted
    types: tuple[str, ...] = ()
    emulate: bool = False
    contract: frozenset[str] = frozenset()
    runtime: Target | None = None


@dataclass(frozen=True)
class Subject:
    """A model that a plan is made for: the user's, or a copy that a pass has edited.

    Attributes:
        model: the model.
        scopes: its scopes, with those of function copies in place of the originals'.
        facts: what is known of its values.
        specialisation: the copies of functions that it has beside those in `model`, if any.
        alike: by the identity of the scope of a function that another is planned for, as they are
            alike, the scope of that.
    """

    model: ModelProto
    scopes: Sequence[Scope]
    facts: Facts
    specialisation: Specialisation | None = None
    alike: Mapping[int, Scope] = field(default_factory=dict)

    @staticmethod
    def of(model: ModelProto, base_dir: str) -> Subject:
        """A model as it is; external data is relative to `base_dir`."""
        found = scopes(model)
        return Subject(model, found, Facts(model, found, base_dir))

    def distinct(self) -> Subject:
        """The same with one of the functions that are alike, from which follows all of others."""
        alike = self.facts.alike_functions
        if not alike:
            return self
        found = replace(self, alike=alike)
        return replace(found, scopes=found.distinct_scopes)

    @cached_property
    def distinct_scopes(self) -> Sequence[Scope]:
        """Those of `scopes` that something is planned for."""
        alike = self.alike
        return [item for item in self.scopes if id(item) not in alike] if alike else self.scopes

    @property
    def alike_scopes(self) -> Iterator[Scope]:
        """Those that others are planned for."""
        return (scope for scope in self.scopes if id(scope) in self.alike)

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
