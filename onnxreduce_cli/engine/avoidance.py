"""Rewrite nodes that a runtime computes wrong or refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from onnx import NodeProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.domains import LEARNING
from onnxreduce_cli.steps.dispatch import alternatives

if TYPE_CHECKING:
    from onnxreduce_cli.targets.requirement import Target
    from onnxreduce_cli.targets.verdict import TargetProblem

#: Names of the rewrites that led to a node: none of them is made again.
AttemptedRewrites = frozenset[str]


class Rewrite(NamedTuple):
    """Another way to write a node.

    Attributes:
        context: the node, and the nodes that were emitted in its place.
        name: the rewrite's name.
        description: why and how the node is rewritten, for people.
    """

    context: Context
    name: str
    description: str


class Avoidance:
    """The nodes that one runtime computes wrong or refuses at one opset, and their rewrites."""

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
        """Return whether the runtime may compute nodes of an operator wrong, or refuse them."""
        if op_type in self._operators:
            return True
        return self._runtime.lacks(op_type, self._opset) is not None

    def hit(self, site: Site, context: Context) -> TargetProblem | None:
        """Return what the runtime computes wrong for a node, or why it refuses it; None if neither.

        Args:
            site: the site that the node belongs to, on which the result is noted.
            context: the node, as it would be in the model.
        """
        found = self.problem(context)
        if found is not None:
            site.lookups.note(more=True)
            site.avoided += (f"{context.node.op_type}: {found.what}",)
        return found

    def problem(self, context: Context) -> TargetProblem | None:
        """Return the same, without a note."""
        if not self.affects(context.node.op_type):
            return None
        from onnxreduce_cli.targets.verdict import target_problems

        return next(target_problems(self._runtime, context, self._opset), None)

    def rewrites(
        self, hit: TargetProblem, context: Context, tried: AttemptedRewrites, failed: list[Blocked]
    ) -> Iterator[Rewrite]:
        """Rewrite a node in each way that is known.

        Args:
            hit: why the runtime must not get the node.
            context: the node.
            tried: the rewrites that led to the node.
            failed: the reasons why some of the rewrites are not possible are appended.
        """
        op_type, form = context.node.op_type, "any" if hit.quirk is None else hit.quirk.form
        from onnxreduce_cli.targets.forms import form_blocker

        # A rewrite that is right for one form may be wrong for others.
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
                yield Rewrite(fresh, name, f"{self.label} {_effect_text(hit)}: {item.description}")

    def blocked(self, hit: TargetProblem, failed: Sequence[Blocked]) -> Blocked:
        """Return why a node blocks that cannot be rewritten.

        Args:
            hit: why the runtime must not get the node.
            failed: why the rewrites are not possible; the first reason is reported.
        """
        source = "" if hit.source is None else f" ({hit.source})"
        advice = self._runtime.advice
        reason = (
            f"{self.label} {_effect_text(hit)}, and nothing else can be written in its place at "
            f"opset {self._opset}{source}"
        )
        for first in failed[:1]:
            reason = f"{reason}; {first.reason}"
            advice = first.advice or advice
        return Blocked(reason, advice)

    @property
    def label(self) -> str:
        """The runtime, as the user named it."""
        return self._runtime.label


def _effect_text(hit: TargetProblem) -> str:
    return hit.what if hit.effect == "refused" else f"gets it wrong ({hit.what})"


def blocked_by_domain(runtime: Target, node: NodeProto, imported: int) -> Blocked | None:
    """Return why a runtime does not take a node of another domain; None if it does.

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
