"""Avoiding what a runtime gets wrong or refuses: such a node is written in another way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from onnx import NodeProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.domains import LEARNING
from onnxreduce_cli.steps.dispatch import alternatives

if TYPE_CHECKING:
    from onnxreduce_cli.targets.requirement import Target
    from onnxreduce_cli.targets.verdict import TargetProblem

#: Names of what was written already on the way to a node: none of it is written again.
Tried = frozenset[str]


class Rewritten(NamedTuple):
    """What is written in place of a node.

    Attributes:
        context: the node, and the nodes that were emitted.
        name: of what was written.
        description: why and how, for people.
    """

    context: Context
    name: str
    description: str


class Avoidance:
    """What one runtime gets wrong or refuses at one opset."""

    def __init__(self, runtime: Target, opset: int) -> None:
        """Prepare.

        Args:
            runtime: the runtime.
            opset: the opset that the model will have.
        """
        self._runtime = runtime
        self._opset = opset
        found = (quirk.operators for quirk in runtime.quirks if quirk.at(opset))
        self._operators: frozenset[str] = frozenset().union(*found)

    def affects(self, op_type: str) -> bool:
        """Return whether there may be something to avoid of nodes of an operator."""
        if op_type in self._operators:
            return True
        return self._runtime.lacks(op_type, self._opset) is not None

    def hit(self, site: Site, context: Context) -> TargetProblem | None:
        """Return what the runtime gets wrong of a node, or why it refuses it, and note it.

        Args:
            site: what is done for.
            context: the node, as it would be in the model.
        """
        op_type = context.node.op_type
        if not self.affects(op_type):
            return None
        from onnxreduce_cli.targets.verdict import target_problems

        found = next(target_problems(self._runtime, context, self._opset), None)
        if found is not None:
            site.lookups.note(more=True)
            site.avoided += (f"{op_type}: {found.what}",)
        return found

    def rewritten(
        self, hit: TargetProblem, context: Context, tried: Tried, failed: list[Blocked]
    ) -> Iterator[Rewritten]:
        """Write a node in each other way that there is.

        Args:
            hit: what speaks against the node.
            context: the node.
            tried: what was written in place of what led to the node.
            failed: is told why some of them cannot be.
        """
        op_type, form = context.node.op_type, "any" if hit.quirk is None else hit.quirk.form
        from onnxreduce_cli.targets.forms import form_blocker

        # What stands for one form may be wrong for others.
        unknown = form_blocker(context, form)
        if unknown is not None:
            failed.append(unknown)
            return
        for item in alternatives(op_type, form):
            name = f"{op_type}: {item.description}"
            if name in tried:
                continue
            fresh = context.afresh()
            try:
                item.apply(fresh)
            except Blocked as error:
                reason = f"{item.description}, it fails: {error.reason}"
                failed.append(Blocked(reason, error.advice))
                continue
            if not fresh.unchanged:
                yield Rewritten(fresh, name, f"{self._label} {_does(hit)}: {item.description}")

    def blocked(self, hit: TargetProblem, failed: Sequence[Blocked]) -> Blocked:
        """What is said of a node in place of which nothing can be written.

        Args:
            hit: what speaks against the node.
            failed: why other ways to write it cannot be; the first is told.
        """
        source = "" if hit.source is None else f" ({hit.source})"
        advice = self._runtime.advice
        reason = (
            f"{self._label} {_does(hit)}, and nothing else can be written in its place at opset "
            f"{self._opset}{source}"
        )
        for first in failed[:1]:
            reason = f"{reason}; {first.reason}"
            advice = first.advice or advice
        return Blocked(reason, advice)

    @property
    def _label(self) -> str:
        return self._runtime.label


def _does(hit: TargetProblem) -> str:
    return hit.what if hit.effect == "refused" else f"gets it wrong ({hit.what})"


def blocked_by_domain(runtime: Target, node: NodeProto, imported: int) -> Blocked | None:
    """Return why a runtime does not take a node of another domain, which stays as it is.

    Args:
        runtime: the runtime.
        node: the node; it does not call one of the model's own functions.
        imported: the version of its domain that the model imports.
    """
    newest = runtime.ml_version
    if node.domain == LEARNING and newest is not None and imported > newest:
        return Blocked(
            f"it is of {LEARNING} {imported}, which is not converted, and {runtime.label} takes "
            f"{newest} at most",
            f"export the model with {LEARNING} {newest}",
        )
    name = f"{node.domain}.{node.op_type}"
    if runtime.all_domains and runtime.lacks(name, imported) is not None:
        return Blocked(f"{runtime.label} has no {name}, which is not converted", runtime.advice)
    return None
