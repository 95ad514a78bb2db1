"""Functions with equal bodies: what became of one is taken for others that answer the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from onnx import NodeProto

from onnxreduce_cli.engine.node_converter import NodeConverter
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.domains import LEARNING, imported_version
from onnxreduce_cli.model.graph.scope import Scope, holds_graphs
from onnxreduce_cli.model.types.questions import Questions

#: The most functions with one body that are kept, each planned in another way.
_MOST = 16


class _Planned(NamedTuple):
    """A function that was planned.

    Attributes:
        scope: the scope of its body.
        sites: its sites, by the indices of their nodes.
        questions: what was asked about the values of its body.
        swept: how many generated nodes were removed again.
    """

    scope: Scope
    sites: Sequence[tuple[int, Site]]
    questions: Questions
    swept: int


class EqualFunctions:
    """The functions that were planned, to take the sites of others with equal bodies from them.

    Equal bodies have equal names, so whatever is generated for them is the same.
    """

    def __init__(self, converter: NodeConverter, scopes: Iterable[Scope]) -> None:
        """Prepare for the scopes of a model; nothing is planned yet."""
        self._converter = converter
        bodies = {id(scope.body): scope.body for scope in scopes if scope.body is not scope}
        self._planned: dict[int, list[_Planned]] = {
            key: [] for key, body in bodies.items() if _depends_on_answers(body)
        }

    def sites(self, scope: Scope, plan: Callable[[Scope], list[Site]]) -> list[Site]:
        """Return the sites of a scope: those of an equal function, or what `plan` returns."""
        known = self._planned.get(id(scope.body))
        if known is None:
            return plan(scope)
        facts, converter = self._converter.facts, self._converter
        for planned in known:
            answers = planned.questions.answers.items()
            if all(facts.answer_key(scope, *asked) == answer for asked, answer in answers):
                converter.take_over(scope, planned.scope, planned.swept)
                return [_repeated(site, scope, scope.nodes[at]) for at, site in planned.sites]
        questions, swept = Questions(scope), converter.swept
        with facts.noting(questions):
            sites = plan(scope)
        if len(known) < _MOST and questions.complete and all(map(_is_whole, sites)):
            places = {id(node): index for index, node in enumerate(scope.nodes)}
            placed = [(places[id(site.node)], site) for site in sites]
            known.append(_Planned(scope, placed, questions, converter.swept - swept))
        return sites


def _depends_on_answers(body: Scope) -> bool:
    """Return whether a body's plan follows from what is asked of its values.

    Not with graphs, which are planned apart, as nodes of ai.onnx.ml are; nor with references to
    attributes, which the calls decide.
    """
    assert body.function is not None
    return imported_version(body.function, LEARNING) is None and not any(
        holds_graphs(node) or any(item.ref_attr_name for item in node.attribute)
        for node in body.nodes
    )


def _is_whole(site: Site) -> bool:
    """Return whether a site has nothing that refers to its own scope, as graphs do."""
    return not site.initializers and not any(map(holds_graphs, site.result))


def _repeated(site: Site, scope: Scope, node: NodeProto) -> Site:
    result = site.result
    if any(made is site.node for made in result):
        result = [node if made is site.node else made for made in result]
    return replace(site, scope=scope, node=node, result=result, equal=site.equal or site)
