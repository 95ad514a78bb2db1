"""Functions that are alike: what was planned for one of them holds for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx import FunctionProto

from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.scope import Scope

#: What functions that are alike differ in.
_OWN = ("name", "overload")


def add_alike(plan: SitePlan, model_input: ConversionInput) -> None:
    """Add the sites of functions that a plan leaves out, as others are like them.

    Args:
        plan: one without blockers, of `model_input.distinct()`.
        model_input: the model with all its functions.
    """
    alike = plan.input.alike
    planned: dict[int, list[Site]] = {}
    for site in plan.sites:
        planned.setdefault(id(site.scope), []).append(site)
    #: For each function that others are like: its sites, with their places and what they drop.
    own: dict[int, list[tuple[int, Site, Sequence[str]]]] = {}
    for like in {id(scope): scope for scope in alike.values()}.values():
        places = {id(node): place for place, node in enumerate(like.nodes)}
        own[id(like)] = [
            (places[id(site.node)], site, site.dropped) for site in planned.get(id(like), ())
        ]
    sites: list[Site] = []
    for scope in model_input.scopes:
        first = alike.get(id(scope))
        if first is None:
            sites += planned.get(id(scope), ())
            continue
        nodes = scope.container.node
        sites += [
            site.of_another(scope, nodes[place], gone) for place, site, gone in own[id(first)]
        ]
    plan.sites = sites
    plan.input = replace(model_input, alike=alike)


def copy_alike(plan: SitePlan) -> None:
    """Make functions what those that are like them became; their names stay."""
    alike = plan.input.alike
    firsts = {id(first): first for first in alike.values()}
    contents = {key: _without_own(first) for key, first in firsts.items()}
    for scope in plan.input.alike_scopes:
        function, names = scope.function, scope.function_key
        assert function is not None
        assert names is not None
        has_overload = function.HasField("overload")
        # A third of what copying takes.
        function.ParseFromString(contents[id(alike[id(scope)])])
        function.name = names[1]
        if has_overload:
            function.overload = names[2]


def _without_own(scope: Scope) -> bytes:
    """A function without what differs, serialized; it has no graphs, so it nests no deeper."""
    assert scope.function is not None
    function = FunctionProto()
    function.CopyFrom(scope.function)
    for name in _OWN:
        function.ClearField(name)
    content: bytes = function.SerializeToString()
    return content
