"""The runtimes that take a model as it is, and those that take it after a conversion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnx import TensorProto

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.engine.avoidance import blocked_by_domain
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.operator_coverage import operators_of_other_domains
from onnxreduce_cli.engine.reach import OpsetReach, Reach
from onnxreduce_cli.engine.runtime import opsets_of
from onnxreduce_cli.model.graph.domains import default_opset
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.targets.forms import may_have_form
from onnxreduce_cli.targets.reading import read_runtime, runtime_names
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.rows import Quirk
from onnxreduce_cli.targets.verdict import default_domain_nodes
from onnxreduce_cli.targets.versions import Version

#: How many opsets are tried for one version: if none of the likeliest suits, hardly any does.
_TRIED = 6

#: The opsets to try after the model's own and the one that a runtime is best at. Many runtimes take
#: them, so that what was planned for one holds for others.
_LIKELY = (13, 17, 11, 9)


@dataclass(frozen=True, slots=True)
class Runtimes:
    """The runtimes that take a model, of those of which something is known.

    Attributes:
        as_it_is: the versions, as text, that are known to take all operators of the model and to
            compute nothing wrong, by the name of the runtime; an empty text stands for all
            versions.
        converted: the versions that take it once it is converted for them.
        refused: the versions that the model cannot be converted for.
        wrong: the operators of the model that are computed wrong without an error, by the name of
            the runtime, each with the versions that do, as text.
        unknown: the operators of the model of which it is not known whether a runtime takes them,
            though nothing else is in the way, by its name, each with the versions, as text.
    """

    as_it_is: dict[str, str]
    converted: dict[str, str]
    refused: dict[str, str]
    wrong: dict[str, dict[str, str]]
    unknown: dict[str, dict[str, str]]


def runtimes_of(reach: Reach, outcomes: Mapping[int, OpsetReach]) -> Runtimes:
    """Return which runtimes take a model.

    Args:
        reach: the model.
        outcomes: the outcomes of planning its conversion, by opset.
    """
    form = _source_form(reach)
    as_it_is, converted, refused = _Versions(), _Versions(), _Versions()
    wrong: defaultdict[str, _Versions] = defaultdict(_Versions)
    unknown: defaultdict[str, _Versions] = defaultdict(_Versions)
    for name, version, target in _known_versions():
        for op_type in form.operators_wrong_in(target):
            wrong[name][op_type].append(version)
        if not form.is_taken(target):
            group = converted if _is_convertible(target, reach, outcomes) else refused
            group[name].append(version)
            continue
        not_known = form.operators_not_known_in(target)
        for operator in not_known:
            unknown[name][operator].append(version)
        if not not_known:
            as_it_is[name].append(version)
    return Runtimes(
        _spans(as_it_is),
        _spans(converted),
        _spans(refused),
        *(
            {name: _spans_of(name, found) for name, found in group.items()}
            for group in (wrong, unknown)
        ),
    )


def _is_convertible(target: Target, reach: Reach, outcomes: Mapping[int, OpsetReach]) -> bool:
    """Return whether a model can be converted for a runtime that does not take it as it is."""
    possible = [opset for opset in opsets_of(target, reach.own) if not outcomes[opset].blockers]
    best = target.best or reach.own or 0

    def unlikeliness(opset: int) -> tuple[int, int]:
        first = (reach.own, target.best, *_LIKELY)
        return first.index(opset) if opset in first else len(first), abs(opset - best)

    likeliest = sorted(possible, key=unlikeliness)
    return any(outcomes[opset].suits(target) for opset in likeliest[:_TRIED])


def runtimes_taking(conversion: Conversion) -> dict[str, str]:
    """Return which runtimes are known to take a converted model and to compute nothing wrong.

    Args:
        conversion: the conversion, which is not applied yet.

    Returns:
        the versions, as text, by the name of the runtime; an empty text stands for all versions.
    """
    found = _Versions()
    if conversion.source is not None and not conversion.blockers:
        form = _converted_form(conversion)
        for name, version, target in _known_versions():
            if form.is_taken(target) and not form.operators_not_known_in(target):
                found[name].append(version)
    return _spans(found)


def _known_versions() -> Iterator[tuple[str, Version, Target]]:
    """Yield each version of a runtime whose opsets or operators are known."""
    for name in runtime_names():
        found = read_runtime(name)
        for row in found.rows:
            target = Target(found, f"{name} {row.version}", [row])
            if target.newest is not None or target.knows_operators:
                yield name, row.version, target


class _Versions(defaultdict[str, list[Version]]):
    """Versions by a name."""

    def __init__(self) -> None:
        super().__init__(list)


def _spans_of(name: str, found: Mapping[str, list[Version]]) -> dict[str, str]:
    """Return the versions of one runtime as text, by what they have."""
    return {what: read_runtime(name).span(versions) for what, versions in found.items()}


def _spans(versions: Mapping[str, list[Version]]) -> dict[str, str]:
    return {name: read_runtime(name).span(found) for name, found in versions.items()}


class _ModelForm:
    """The opset, IR version, operators and forms of a model, compared with what runtimes take."""

    def __init__(
        self,
        opset: int | None,
        ir_version: int,
        nodes: Mapping[str, Sequence[NodeFacts]],
        facts: Facts,
    ) -> None:
        """Describe a model.

        Args:
            opset: its opset; None where it imports no default domain.
            ir_version: its IR version.
            nodes: its nodes of the default domain by their operators.
            facts: the facts of the source model, which has the same nodes of other domains.
        """
        self._opset, self._ir_version = opset, ir_version
        self._nodes = nodes
        self._of_other_domains = operators_of_other_domains(facts)
        self._forms: dict[tuple[str, str], bool] = {}
        self._refusals: dict[Hashable, bool] = {}
        self._dtypes: dict[str, frozenset[str]] = {}

    def is_taken(self, target: Target) -> bool:
        """Return whether nothing is known to be in the way of the model in a runtime."""
        opset, newest = self._opset, target.ir_version
        if opset is None or opset not in opsets_of(target, opset):
            return False
        if newest is not None and self._ir_version > newest:
            return False
        if any(self._hit_by(quirk, opset) for quirk in target.quirks):
            return False
        if any(self._is_refused(target, op_type, opset) for op_type in self._nodes):
            return False
        return not self.has_other_domains(target)

    def _is_refused(self, target: Target, op_type: str, opset: int) -> bool:
        """Return whether a runtime does not take some node of an operator."""
        key = op_type, target.key("", op_type, opset, self._dtypes_of(op_type))
        if key not in self._refusals:
            self._refusals[key] = target.may_refuse(op_type, opset) and any(
                target.answer("", op_type, opset, node).value == "not taken"
                for node in self._nodes[op_type]
            )
        return self._refusals[key]

    def _dtypes_of(self, op_type: str) -> frozenset[str]:
        """Return the dtypes that the nodes of an operator read and make."""
        if op_type not in self._dtypes:
            found = {
                node.elem_type(name)
                for node in self._nodes[op_type]
                for name in (*node.node.input, *node.node.output)
            }
            names = (TensorProto.DataType.Name(item).lower() for item in found if item)
            self._dtypes[op_type] = frozenset(names)
        return self._dtypes[op_type]

    def operators_not_known_in(self, target: Target) -> list[str]:
        """Return the operators of which it is not known whether a runtime takes them."""
        opset = self._opset or 0
        found = {
            op_type
            for op_type in self._nodes
            if target.answer("", op_type, opset).value == "not known"
        }
        found |= {
            f"{domain}.{op_type}"
            for domain, op_type, imported in self._of_other_domains
            if target.answer(domain, op_type, imported).value == "not known"
        }
        return sorted(found)

    def operators_wrong_in(self, target: Target) -> list[str]:
        """Return the operators that a runtime computes wrong, if it takes the model's opset."""
        opset = self._opset
        if opset is None or opset not in opsets_of(target, opset):
            return []
        wrong = [quirk for quirk in target.quirks if quirk.effect == "wrong"]
        return sorted({op_type for quirk in wrong for op_type in self._hit_by(quirk, opset)})

    def _hit_by(self, quirk: Quirk, opset: int) -> list[str]:
        """Return the model's operators that a quirk applies to."""
        found = self._nodes.keys() & quirk.operators if quirk.at(opset) else ()
        return [op_type for op_type in found if self._has(op_type, quirk.form)]

    def has_other_domains(self, target: Target) -> bool:
        """Return whether a runtime does not take some node of another domain."""
        return any(
            blocked_by_domain(target, domain, op_type, imported) is not None
            for domain, op_type, imported in self._of_other_domains
        )

    def _has(self, op_type: str, form: str) -> bool:
        """Return whether some node of an operator is of a form."""
        key = op_type, form
        if key not in self._forms:
            self._forms[key] = any(may_have_form(node, form) for node in self._nodes[op_type])
        return self._forms[key]


def _source_form(reach: Reach) -> _ModelForm:
    model = reach.facts.model
    nodes = _by_operator(default_domain_nodes(reach.facts))
    return _ModelForm(default_opset(model), model.ir_version, nodes, reach.facts)


def _converted_form(conversion: Conversion) -> _ModelForm:
    """Return the form of the model that a conversion leads to; it is not applied yet."""
    nodes = _by_operator(conversion.nodes_after())
    return _ModelForm(conversion.target, conversion.ir_version, nodes, conversion.source_facts)


def _by_operator(nodes: Iterable[NodeFacts]) -> dict[str, list[NodeFacts]]:
    found: dict[str, list[NodeFacts]] = {}
    for node in nodes:
        found.setdefault(node.node.op_type, []).append(node)
    return found
