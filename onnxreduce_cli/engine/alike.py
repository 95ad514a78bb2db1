"""Functions that are alike: what was planned for one of them holds for all."""

from __future__ import annotations

from dataclasses import replace

from onnx import FunctionProto

from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.engine.subject import Subject


def add_alike(plan: SitePlan, subject: Subject) -> None:
    """Add the sites of functions that a plan leaves out, as others are like them.

    Args:
        plan: one without blockers, of `subject.distinct()`.
        subject: the model with all its functions.
    """
    alike = plan.subject.alike
    plan.subject = replace(subject, alike=alike)
    own: dict[int, list[tuple[int, Site]]] = {id(scope): [] for scope in alike.values()}
    for site in plan.sites:
        if id(site.scope) in own:
            places = {id(node): place for place, node in enumerate(site.scope.nodes)}
            own[id(site.scope)].append((places[id(site.node)], site))
    order: dict[int, int] = {}
    for place, scope in enumerate(subject.scopes):
        order[id(scope)] = place
        like = alike.get(id(scope))
        if like is not None and own[id(like)]:
            nodes = scope.container.node
            plan.sites += [site.of_another(scope, nodes[index]) for index, site in own[id(like)]]
    plan.sites.sort(key=lambda site: order[id(site.scope)])


def copy_alike(plan: SitePlan) -> None:
    """Make functions what those that are like them became; their names stay."""
    for scope in plan.subject.alike_scopes:
        function, other = scope.container, plan.subject.alike[id(scope)].container
        assert isinstance(function, FunctionProto)
        assert isinstance(other, FunctionProto)
        name, overload = function.name, function.overload
        function.CopyFrom(other)
        function.name = name
        if overload:
            function.overload = overload
        else:
            function.ClearField("overload")
