"""The types of a model's values: stated, inferred, or constrained by schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import FunctionProto, ModelProto

from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.overridable import StatedTypes
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import ValueType, elem_type_of, merge
from onnxreduce_cli.model.types.shape_inference import ShapeInference

if TYPE_CHECKING:
    from onnxreduce_cli.model.types.unification import Unification


class ModelTypes:
    """The types of a model's own values."""

    def __init__(
        self,
        model: ModelProto,
        trees: dict[int, list[Scope]],
        stated: StatedTypes,
        inference: ShapeInference,
    ) -> None:
        """Prepare; types are looked up when needed.

        Args:
            model: the model.
            trees: its scopes, by the identity of the outermost; functions may be added later.
            stated: the types that the model states.
            inference: the types that onnx infers.
        """
        self._model = model
        self._trees = trees
        self._stated = stated
        self._inference = inference
        self._unified: dict[int, Unification] = {}
        self._known: dict[tuple[int, str], ValueType | None] = {}

    def type(self, owner: Scope, name: str) -> ValueType | None:
        """Return the type of a value that `owner` defines; None if it is not known."""
        # A `Value` is a string that refers to the facts, and would keep them in memory.
        key = (id(owner), str(name))
        if key not in self._known:
            self._known[key] = self._type(owner, name)
        return self._known[key]

    def _type(self, owner: Scope, name: str) -> ValueType | None:
        declared = self._stated.type(owner, name)
        if declared is not None and declared.is_whole:
            return declared
        return merge(declared, self._inference.type(owner, name)) or self._unify(owner, name)

    def kind(self, owner: Scope, name: str) -> str | None:
        """Return the same as schemas spell it; cheaper, without shapes."""
        known = owner.declared.get(name) or self._inference.type(owner, name)
        if known is None:
            known = self._unify(owner, name)
        return None if known is None else known.kind

    def allowed_kinds(self, owner: Scope, name: str) -> frozenset[str] | None:
        """Return the types that a value of unknown type may have by the schemas of its nodes."""
        return self._unification(owner.root).allowed(owner, name)

    def forget(self) -> None:
        """Drop the results that were computed before shape inference found more types."""
        self._unified.clear()
        self._known.clear()

    def _unify(self, owner: Scope, name: str) -> ValueType | None:
        kind = self._unification(owner.root).kind(owner, name)
        return None if kind is None else ValueType(kind, elem_type_of(kind) or 0, None)

    def _unification(self, root: Scope) -> Unification:
        """Return the type constraints of one tree's nodes; no tree's constraints affect another."""
        found = self._unified.get(id(root))
        if found is None:
            from onnxreduce_cli.model.types.unification import Unification

            tree = self._trees[id(root)]
            found = Unification(tree, self._opsets(root), self._known_kind)
            self._unified[id(root)] = found
        return found

    def _known_kind(self, owner: Scope, name: str) -> str | None:
        found = owner.declared.get(name) or self._inference.type(owner, name)
        return None if found is None else found.kind

    def _opsets(self, root: Scope) -> dict[str, int]:
        """Return the opset of each domain that the model, or a function, imports."""
        container = root.container
        importing = container if isinstance(container, FunctionProto) else self._model
        return {
            "" if is_default(entry.domain) else entry.domain: entry.version
            for entry in importing.opset_import
        }
