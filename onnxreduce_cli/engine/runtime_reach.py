"""The runtimes that take a model as it is, and those that take it after a conversion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.engine.avoidance import blocked_by_domain
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.reach import PlanOutcome, Reach
from onnxreduce_cli.engine.runtime import opsets_of, preference
from onnxreduce_cli.model.graph.domains import default_opset, is_default
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.targets.forms import may_have_form
from onnxreduce_cli.targets.reading import read_runtime, runtime_names
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.rows import Quirk
from onnxreduce_cli.targets.verdict import default_domain_nodes
from onnxreduce_cli.targets.versions import Version

#: How many opsets are tried for one version: if none of the likeliest suits, hardly any does.
_TRIED = 4


@dataclass(frozen=True, slots=True)
class Runtimes:
    """The runtimes that take a model, of those whose opsets are known.

    Attributes:
        as_it_is: the versions, as text, that take the model and compute nothing wrong, by the name
            of the runtime; an empty text stands for all versions.
        converted: the versions that do once the model is converted for them.
        refused: the versions that the model cannot be converted for.
        wrong: the operators of the model that are computed wrong without an error, by the name of
            the runtime, each with the versions that do, as text.
    """

    as_it_is: dict[str, str]
    converted: dict[str, str]
    refused: dict[str, str]
    wrong: dict[str, dict[str, str]]


def runtimes_of(reach: Reach, outcomes: Mapping[int, PlanOutcome]) -> Runtimes:
    """Return which runtimes take a model.

    Args:
        reach: the model.
        outcomes: the outcomes of planning its conversion, by opset.
    """
    verdicts = _RuntimeVerdicts(reach, outcomes)
    groups: list[dict[str, list[Version]]] = [{}, {}, {}]
    wrong: dict[str, dict[str, list[Version]]] = {}
    for name, version, target in _known_versions():
        groups[verdicts.verdict(target)].setdefault(name, []).append(version)
        for op_type in verdicts.form.operators_wrong_in(target):
            wrong.setdefault(name, {}).setdefault(op_type, []).append(version)
    as_it_is, converted, refused = map(_spans, groups)
    spans = {
        name: {op: read_runtime(name).span(versions) for op, versions in found.items()}
        for name, found in wrong.items()
    }
    return Runtimes(as_it_is, converted, refused, spans)


def runtimes_taking(conversion: Conversion) -> dict[str, str]:
    """Return which runtimes take a converted model and compute nothing wrong.

    Args:
        conversion: the conversion, which is not applied yet.

    Returns:
        the versions, as text, by the name of the runtime; an empty text stands for all versions.
    """
    found: dict[str, list[Version]] = {}
    if conversion.source is not None and not conversion.blockers:
        form = _converted_form(conversion)
        for name, version, target in _known_versions():
            if form.is_taken(target):
                found.setdefault(name, []).append(version)
    return _spans(found)


def _known_versions() -> Iterator[tuple[str, Version, Target]]:
    """Yield each version of a runtime whose opsets are known."""
    for name in runtime_names():
        found = read_runtime(name)
        for row in found.rows:
            target = Target(found, f"{name} {row.version}", [row])
            if target.newest is not None:
                yield name, row.version, target


def _spans(versions: Mapping[str, list[Version]]) -> dict[str, str]:
    return {name: read_runtime(name).span(found) for name, found in versions.items()}


class _ModelForm:
    """The opset, IR version, operators and forms of a model, compared with what runtimes take."""

    def __init__(
        self,
        opset: int | None,
        ir_version: int,
        operators: Collection[str],
        has: Callable[[str, str], bool],
        facts: Facts,
    ) -> None:
        """Describe a model.

        Args:
            opset: its opset; None where it imports no default domain.
            ir_version: its IR version.
            operators: the operators of its nodes.
            has: returns whether some node of an operator has a form.
            facts: the facts of the source model, which has the same nodes of other domains.
        """
        self._opset, self._ir_version = opset, ir_version
        self._operators, self._has_form = frozenset(operators), has
        self._facts = facts
        self._forms: dict[tuple[str, str], bool] = {}

    def is_taken(self, target: Target) -> bool:
        """Return whether a runtime takes the model and computes nothing wrong."""
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
        """Return the operators that a runtime computes wrong, if it takes the model's opset."""
        opset = self._opset
        if opset is None or opset not in opsets_of(target, opset):
            return []
        wrong = [quirk for quirk in target.quirks if quirk.effect == "wrong"]
        return sorted({op_type for quirk in wrong for op_type in self._hit_by(quirk, opset)})

    def _hit_by(self, quirk: Quirk, opset: int) -> list[str]:
        """Return the model's operators that a quirk applies to."""
        found = self._operators & quirk.operators if quirk.at(opset) else ()
        return [op_type for op_type in found if self._has(op_type, quirk.form)]

    def has_other_domains(self, target: Target) -> bool:
        """Return whether a runtime does not take some node of another domain."""
        imports = {entry.domain: entry.version for entry in self._facts.model.opset_import}
        return any(
            blocked_by_domain(target, node, imports.get(node.domain, 0)) is not None
            for node in self._nodes_of_other_domains
        )

    @cached_property
    def _nodes_of_other_domains(self) -> list[NodeProto]:
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
            self._forms[key] = self._has_form(op_type, form)
        return self._forms[key]


def _source_form(reach: Reach) -> _ModelForm:
    facts = reach.facts
    model = facts.model
    nodes: dict[str, list[NodeFacts]] = {}
    for node in default_domain_nodes(facts):
        nodes.setdefault(node.node.op_type, []).append(node)
    operators = {name for scope in facts.scopes for name in scope.op_types}

    def has(op_type: str, form: str) -> bool:
        return any(may_have_form(node, form) for node in nodes.get(op_type, ()))

    return _ModelForm(default_opset(model), model.ir_version, operators, has, facts)


def _converted_form(conversion: Conversion) -> _ModelForm:
    """Return the form of the model that a conversion leads to; it is not applied yet."""
    nodes: dict[str, list[NodeFacts]] = {}
    for node in conversion.nodes_after():
        nodes.setdefault(node.node.op_type, []).append(node)
    return _ModelForm(
        conversion.target,
        conversion.ir_version,
        nodes,
        lambda op_type, form: any(may_have_form(node, form) for node in nodes[op_type]),
        conversion.source_facts,
    )


class _RuntimeVerdicts:
    """The verdicts of runtimes on a model."""

    def __init__(self, reach: Reach, outcomes: Mapping[int, PlanOutcome]) -> None:
        self._reach, self._outcomes = reach, outcomes
        self.form = _source_form(reach)
        scopes = reach.facts.scopes
        self._operators = frozenset(name for scope in scopes for name in scope.op_types)

    def verdict(self, target: Target) -> int:
        """Return 0 if a runtime takes the model as it is, 1 if it does once converted, else 2."""
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
        """Return whether a runtime takes all operators of the converted model at an opset."""
        found = self._operators | self._outcomes[opset].operators
        return not any(target.lacks(name, opset) is not None for name in found) and not any(
            quirk.at(opset) and found & quirk.operators for quirk in target.quirks
        )
