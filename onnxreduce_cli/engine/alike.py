"""Functions that are alike: what was planned for one of them holds for all."""

from __future__ import annotations

from dataclasses import replace

from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.engine.subject import Subject

#: What functions that are alike differ in.
_OWN = ("name", "overload")


def add_alike(plan: SitePlan, subject: Subject) -> None:
    """Add the sites of functions that a plan leaves out, as others are like them.

    Args:
        plan: one without blockers, of `subject.distinct()`.
        subject: the model with all its functions.
    """
    alike = plan.subject.alike
    planned: dict[int, list[Site]] = {}
    for site in plan.sites:
        planned.setdefault(id(site.scope), []).append(site)
    #: For each function that others are like, its sites and the places of their nodes.
    own: dict[int, list[tuple[int, Site]]] = {}
    for like in {id(scope): scope for scope in alike.values()}.values():
        places = {id(node): place for place, node in enumerate(like.nodes)}
        own[id(like)] = [(places[id(site.node)], site) for site in planned.get(id(like), ())]
    sites: list[Site] = []
    for scope in subject.scopes:
        first = alike.get(id(scope))
        if first is None:
            sites += planned.get(id(scope), ())
            continue
        nodes = scope.container.node
        sites += [site.of_another(scope, nodes[place]) for place, site in own[id(first)]]
    plan.sites = sites
    plan.subject = replace(subject, alike=alike)


def copy_alike(plan: SitePlan) -> None:
    """Make functions what those that are like them became; their names stay."""
    for scope in plan.subject.alike_scopes:
        function, other = scope.function, plan.subject.alike[id(scope)].function
        assert function is not None
        assert other is not None
        kept = [(name, getattr(function, name)) for name in _OWN if function.HasField(name)]
        function.CopyFrom(other)
        for name in _OWN:
            function.ClearField(name)
        for name, value in kept:
            setattr(function, name, value)
