"""The operators of a converted model that a runtime is known to take, and those not known."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.engine.description import OperatorCoverage
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.targets.operators import Answer
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.verdict import TargetProblem


def operator_coverage(
    target: Target,
    nodes: Iterable[NodeFacts],
    foreign: Iterable[tuple[str, str, int]],
    opset: int,
    problems: Iterable[TargetProblem] = (),
) -> OperatorCoverage:
    """Return what is known of a converted model's operators.

    Args:
        target: the runtime.
        nodes: the nodes of the default domain, with facts.
        foreign: its operators of other domains: domain, name, and version of the domain.
        opset: the opset of the default domain.
        problems: what decided the opset or a rewrite, whose sources are named, too.
    """
    answers: dict[str, list[Answer]] = {}
    for node in nodes:
        op_type = node.node.op_type
        found = answers.setdefault(op_type, [])
        if not found:
            found.append(target.answer("", op_type, opset))
        if found[0].value == "taken if":
            found.append(target.answer("", op_type, opset, node))
    for domain, op_type, imported in foreign:
        answers[f"{domain}.{op_type}"] = [target.answer(domain, op_type, imported)]
    conditions = {
        name: tuple(
            dict.fromkeys(
                text
                for answer in (found[1:] or found)
                if answer.value == "taken if"
                for text in answer.conditions
            )
        )
        for name, found in answers.items()
    }
    sources = [answer.source for found in answers.values() for answer in found]
    sources += [problem.source for problem in problems]
    return OperatorCoverage(
        target.label,
        len(answers),
        _of_value("not known", answers),
        tuple((name, texts) for name, texts in sorted(conditions.items()) if texts),
        _of_value("runs on the CPU", answers),
        tuple(dict.fromkeys(str(source) for source in sources if source is not None)),
        target.exact,
    )


def _of_value(value: str, answers: dict[str, list[Answer]]) -> tuple[str, ...]:
    return tuple(sorted(name for name, found in answers.items() if found[-1].value == value))


def operators_of_other_domains(
    facts: Facts, nodes: Iterable[NodeProto] | None = None
) -> Collection[tuple[str, str, int]]:
    """Return the operators of other domains that are no functions of the model, each once.

    Each has its domain, its name, and the version of the domain that the model imports.

    Args:
        facts: the facts of the model.
        nodes: the nodes that it will have; by default those that it has.
    """
    if nodes is None:
        nodes = (node for scope in facts.scopes for node in scope.nodes)
    imports = {entry.domain: entry.version for entry in facts.model.opset_import}
    return dict.fromkeys(
        (node.domain, node.op_type, imports.get(node.domain, 0))
        for node in nodes
        if not is_default(node.domain) and facts.calls.function_of(node) is None
    )
