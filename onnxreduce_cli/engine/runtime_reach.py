"""Which runtimes take a model as it is, and which after a conversion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.engine.avoidance import blocked_by_domain
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.reach import Outcome, Reach
from onnxreduce_cli.engine.runtime import opsets_of, preference
from onnxreduce_cli.model.domains import default_opset, is_default
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.targets.forms import may_have_form
from onnxreduce_cli.targets.reading import read_runtime, runtime_names
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.rows import Quirk
from onnxreduce_cli.targets.verdict import default_domain_nodes
from onnxreduce_cli.targets.versions import Version

#: Opsets that are tried for one version: where none of the likeliest will do, hardly any will.
_TRIED = 4


@dataclass(frozen=True, slots=True)
class Runtimes:
    """Which runtimes take a model, of those whose opsets are known.

    Attributes:
        as_it_is: those that take it, and get nothing wrong: by name the versions, as text; empty
            for all of them.
        converted: those that do when it is converted for them.
        refused: those for which it cannot be converted.
        wrong: what is computed wrong of the model as it is, with no error: by name of the runtime
            the operators, each with the versions that do, as text.
    """

    as_it_is: dict[str, str]
    converted: dict[str, str]
    refused: dict[str, str]
    wrong: dict[str, dict[str, str]]


def runtimes_of(reach: Reach, outcomes: Mapping[int, Outcome]) -> Runtimes:
    """Return which runtimes take a model.

    Args:
        reach: the model.
        outcomes: what planning its conversion to each opset comes to.
    """
    looked = _Looked(reach, outcomes)
    groups: list[dict[str, list[Version]]] = [{}, {}, {}]
    wrong: dict[str, dict[str, list[Version]]] = {}
    for name, version, target in _known():
        groups[looked.verdict(target)].setdefault(name, []).append(version)
        for op_type in looked.form.operators_wrong_in(target):
            wrong.setdefault(name, {}).setdefault(op_type, []).append(version)
    as_it_is, converted, refused = map(_spans, groups)
    spans = {
        name: {op: read_runtime(name).span(versions) for op, versions in found.items()}
        for name, found in wrong.items()
    }
    return Runtimes(as_it_is, converted, refused, spans)


def runtimes_taking(conversion: Conversion) -> dict[str, str]:
    """Return which runtimes take a model as it will be, and get nothing wrong.

    Args:
        conversion: the conversion, which is not applied yet.

    Returns:
        by name the versions, as text; empty for all of them.
    """
    found: dict[str, list[Version]] = {}
    if conversion.source is not None and not conversion.blockers:
        form = _as_converted(conversion)
        for name, version, target in _known():
            if form.is_taken(target):
                found.setdefault(name, []).append(version)
    return _spans(found)


def _known() -> Iterator[tuple[str, Version, Target]]:
    """Each version of a runtime of which the opsets that it takes are known."""
    for name in runtime_names():
        found = read_runtime(name)
        for row in found.rows:
            target = Target(found, f"{name} {row.version}", [row])
            if target.newest is not None:
                yield name, row.version, target


def _spans(versions: Mapping[str, list[Version]]) -> dict[str, str]:
    return {name: read_runtime(name).span(found) for name, found in versions.items()}


class _Form:
    """A model as runtimes see it."""

    def __init__(
        self,
        opset: int | None,
        ir_version: int,
        operators: Collection[str],
        has: Callable[[str, str], bool],
        facts: Facts,
    ) -> None:
        """Take the opset and the operators, and what tells whether a node of one has a form.

        Nodes of other domains, which no conversion changes, are those of `facts`.
        """
        self._opset, self._ir_version = opset, ir_version
        self._operators, self._ask = frozenset(operators), has
        self._facts = facts
        self._forms: dict[tuple[str, str], bool] = {}

    def is_taken(self, target: Target) -> bool:
        """Return whether a runtime takes it as it is, and gets nothing wrong."""
        opset, newest = self._opset, target.ir_version
        if opset is None or opset not in opsets_of(target, opset):
            return False
        if newest is not None and self._ir_version > newest:
            return False
        if any(target.lacks(op_type, opset) is not None for op_type in self._operators):
            return False
        if any(self._hit_by(quirk, opset) for quirk in target.quirks):
            return False
        return not self.has_other_domains(target)

    def operators_wrong_in(self, target: Target) -> list[str]:
        """Return the operators that a runtime which takes the model's opset computes wrong."""
        opset = self._opset
        if opset is None or opset not in opsets_of(target, opset):
            return []
        wrong = [quirk for quirk in target.quirks if quirk.effect == "wrong"]
        return sorted({op_type for quirk in wrong for op_type in self._hit_by(quirk, opset)})

    def _hit_by(self, quirk: Quirk, opset: int) -> list[str]:
        """Return the operators of nodes that a quirk is about."""
        found = self._operators & quirk.operators if quirk.at(opset) else ()
        return [op_type for op_type in found if self._has(op_type, quirk.form)]

    def has_other_domains(self, target: Target) -> bool:
        """Return whether there are nodes of other domains that a runtime does not take."""
        imports = {entry.domain: entry.version for entry in self._facts.model.opset_import}
        return any(
            blocked_by_domain(target, node, imports.get(node.domain, 0)) is not None
            for node in self._of_other_domains
        )

    @cached_property
    def _of_other_domains(self) -> list[NodeProto]:
        """The nodes of other domains that call no function."""
        return [
            node
            for scope in self._facts.scopes
            for node in scope.nodes
            if not is_default(node.domain) and self._facts.calls.function_of(node) is None
        ]

    def _has(self, op_type: str, form: str) -> bool:
        """Return whether some node of an operator is of a form."""
        key = op_type, form
        if key not in self._forms:
            self._forms[key] = self._ask(op_type, form)
        return self._forms[key]


def _as_it_is(reach: Reach) -> _Form:
    facts = reach.facts
    model = facts.model
    nodes: dict[str, list[NodeFacts]] = {}
    for node in default_domain_nodes(facts):
        nodes.setdefault(node.node.op_type, []).append(node)
    operators = {name for scope in facts.scopes for name in scope.op_types}

    def has(op_type: str, form: str) -> bool:
        return any(may_have_form(node, form) for node in nodes.get(op_type, ()))

    return _Form(default_opset(model), model.ir_version, operators, has, facts)


def _as_converted(conversion: Conversion) -> _Form:
    """The form that a conversion, which is not applied yet, gives a model."""
    nodes: dict[str, list[NodeFacts]] = {}
    for node in conversion.nodes_after():
        nodes.setdefault(node.node.op_type, []).append(node)
    return _Form(
        conversion.target,
        conversion.ir_version,
        nodes,
        lambda op_type, form: any(may_have_form(node, form) for node in nodes[op_type]),
        conversion.given_facts,
    )


class _Looked:
    """A model, and what was looked up of it for one runtime after another."""

    def __init__(self, reach: Reach, outcomes: Mapping[int, Outcome]) -> None:
        self._reach, self._outcomes = reach, outcomes
        self.form = _as_it_is(reach)
        scopes = reach.facts.scopes
        self._operators = frozenset(name for scope in scopes for name in scope.op_types)

    def verdict(self, target: Target) -> int:
        """0 where a runtime takes the model as it is, 1 where it is converted first, else 2."""
        if self.form.is_taken(target):
            return 0
        own = self._reach.own
        possible = [opset for opset in opsets_of(target, own) if not self._outcomes[opset].blockers]
        if self.form.has_other_domains(target):
            return 2
        if any(self._is_right_at(target, opset) for opset in possible):
            return 1
        likeliest = sorted(possible, key=lambda opset: preference(opset, target, own))
        return 1 if any(self._reach.suits(target, opset) for opset in likeliest[:_TRIED]) else 2

    def _is_right_at(self, target: Target, opset: int) -> bool:
        """Return whether nothing speaks against any operator of the model at an opset."""
        found = self._operators | self._outcomes[opset].operators
        return not any(target.lacks(name, opset) is not None for name in found) and not any(
            quirk.at(opset) and found & quirk.operators for quirk in target.quirks
        )
