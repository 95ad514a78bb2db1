"""Rewrite nodes that a runtime computes wrong or refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from onnxreduce_cli.emit.blocked import Blocked, NotTaken
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.steps.dispatch import AS_BEFORE, alternatives
from onnxreduce_cli.targets.operators import OperatorTable

if TYPE_CHECKING:
    from onnx import NodeProto

    from onnxreduce_cli.steps.registry import Alternative
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
    """The nodes that one runtime computes wrong or refuses at one opset, and their rewrites.

    Attributes:
        asked: the operators that were asked for, each with whether the runtime may compute nodes of
            it wrong, or refuse them.
    """

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
        self.asked: dict[str, bool] = {}

    def affects(self, op_type: str) -> bool:
        """Return whether the runtime may compute nodes of an operator wrong, or refuse them."""
        if op_type not in self.asked:
            refused = self._runtime.may_refuse(op_type, self._opset)
            self.asked[op_type] = refused or op_type in self._operators
        return self.asked[op_type]

    def affects_given(self, op_type: str, may_be: Callable[[str], bool]) -> bool:
        """Return the same of nodes whose values have only types that `may_be` allows."""
        return self.affects(op_type) and (
            op_type in self._operators or self._runtime.may_refuse(op_type, self._opset, may_be)
        )

    def hit(self, site: Site, context: Context) -> TargetProblem | None:
        """Return what the runtime computes wrong for a node, or why it refuses it; None if neither.

        Args:
            site: the site that the node belongs to, on which the result is noted.
            context: the node, as it would be in the model.
        """
        found = self.problem(context)
        if found is not None:
            site.lookups.note(more=True)
            site.avoided += (found,)
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
        op_type, form = context.node.op_type, hit.form
        from onnxreduce_cli.targets.forms import form_blocker

        # A rewrite that is right for one form may be wrong for others.
        unknown = form_blocker(context, form)
        if unknown is not None:
            failed.append(unknown)
            return
        last: list[Blocked] = []
        for name, item in untried(op_type, form, tried):
            fresh = context.afresh()
            try:
                item.apply(fresh)
            except Blocked as error:
                reason = f"{item.description}, it fails: {error.reason}"
                # Another opset does not help where the runtime takes the operator at none.
                helps = hit.quirk is not None or not error.advice.startswith("choose opset")
                found = Blocked(reason, error.advice if helps else "")
                # What its own rewrites lack says more than what an older opset does.
                (last if item.description == AS_BEFORE and not found.advice else failed).append(
                    found
                )
                continue
            if not fresh.unchanged:
                yield Rewrite(fresh, name, f"{self.label} {_effect_text(hit)}: {item.description}")
        failed += last

    def blocked(
        self, site: Site, hit: TargetProblem, context: Context, failed: Sequence[Blocked]
    ) -> Blocked:
        """Return why a node blocks that cannot be rewritten.

        Args:
            site: the site that the node belongs to.
            hit: why the runtime must not get the node.
            context: the node.
            failed: why the rewrites are not possible.
        """
        op_type = context.node.op_type
        what = _effect_text(hit, marked=True)
        if op_type != site.node.op_type:
            what = re.sub(r"\bit\b", lambda _: op_type, what, count=1)
        reason = f"{self.label} {what}"
        lacking = [
            item for item in failed if isinstance(item, NotTaken) and op_type not in item.operators
        ]
        others = [item for item in failed if not item.reason.startswith(reason)]
        advice = []
        if lacking and hit.quirk is None:
            reason += self._needs(min(lacking, key=lambda item: len(item.operators)))
            others = [item for item in others if not isinstance(item, NotTaken)]
        else:
            reason += f", and nothing else can be written in its place at opset {self._opset}"
        for first in others[:1]:
            reason = f"{reason}; {first.reason}"
            advice += [first.advice] if first.advice else []
        if hit.quirk is not None:
            return Blocked(reason, "; or ".join(advice or [self._runtime.advice]))
        advice += _ways_out(self._runtime, op_type, self._opset)
        return NotTaken(reason, "; or ".join(advice or [self._runtime.advice]), (op_type,))

    def blocked_form(self, node: NodeProto, lacking: NotTaken) -> NotTaken:
        """Return why a node of another domain blocks that needs operators the runtime lacks."""
        reason = f"{self.label} does not take {node.domain}.{node.op_type}{self._needs(lacking)}"
        return NotTaken(reason, lacking.advice, lacking.operators)

    def _needs(self, lacking: NotTaken) -> str:
        answers = (self._runtime.answer("", name, self._opset) for name in lacking.operators)
        never = any(answer.value == "not taken" for answer in answers)
        which = "which" if never else "of dtypes or in a form that"
        return (
            f"; what it can be written in needs {', '.join(lacking.operators)}, {which} "
            f"{self.label} does not take either"
        )

    @property
    def label(self) -> str:
        """The runtime, as the user named it."""
        return self._runtime.label


def untried(op_type: str, form: str, tried: AttemptedRewrites) -> Iterator[tuple[str, Alternative]]:
    """Yield the alternatives to a node in a form that did not lead to it, each with its name."""
    for item in alternatives(op_type, form):
        name = f"{op_type}: {item.description}"
        if name not in tried:
            yield name, item


def _ways_out(runtime: Target, op_type: str, opset: int) -> Iterator[str]:
    """Yield what can be done about an operator that a runtime does not take at an opset."""
    name = runtime.runtime.name
    for row in reversed(runtime.runtime.rows):
        table = OperatorTable.load(name, row.version)
        if table is not None and table.answer("", op_type, opset).value in ("taken", "taken if"):
            yield f"{name} {row.version} takes {op_type}"
            return


def _effect_text(hit: TargetProblem, *, marked: bool = False) -> str:
    """Return what the runtime does with a node, with a mark of the source if that is wanted."""
    mark = hit.source.kind if marked and hit.source else ""
    if hit.effect == "refused":
        return f"{hit.what} ({mark})" if mark else hit.what
    return f"gets it wrong ({hit.what}{f'; {mark}' if mark else ''})"


def blocked_by_domain(runtime: Target, domain: str, op_type: str, imported: int) -> Blocked | None:
    """Return why a runtime does not take an operator of another domain; None if it may.

    Args:
        runtime: the runtime.
        domain: the operator's domain.
        op_type: the operator; it is no function of the model.
        imported: the version of the domain that the model gets.
    """
    if runtime.answer(domain, op_type, imported).value == "not taken":
        return Blocked(
            f"{runtime.label} does not take {domain}.{op_type}, which is not converted",
            runtime.advice,
        )
    return None
