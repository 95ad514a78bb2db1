"""Specialisation of functions: a copy of a function for each distinct way to call it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.types.specialisation import Specialisation


def specialise_functions(plan: SitePlan) -> SitePlan | None:
    """Plan with a copy of each blocked function for each distinct way to call it.

    Requires: a plan of a model as it is.

    Guarantees: the model with the copies computes what it does without them. The types, constants
    and attribute values of a call hold in the copy that it calls. Copies that are converted to the
    same nodes become one, and a function with one copy keeps its name. The model itself is edited
    when the plan is applied (see `Specialisation.install`).

    Returns:
        a plan of the model with the copies; None if no function is blocked, or all calls of the
        blocked ones are equivalent.
    """
    given = plan.input
    blocked = plan.blocked_functions
    found = Specialisation(given.model, given.scopes, blocked, given.facts) if blocked else None
    if not found:
        return None
    model_input = ConversionInput(given.model, found.scopes, found.facts, found)
    specialised = SitePlan(model_input, plan.request)
    sites = {id(site.node): site for site in specialised.sites}
    found.settle(lambda scope: _result_key(specialised, scope, sites))
    scopes = found.scopes
    kept = {id(scope) for scope in scopes}
    specialised.input = replace(model_input, scopes=scopes)
    specialised.sites = [site for site in specialised.sites if id(site.scope) in kept]
    return specialised


def _result_key(plan: SitePlan, scope: Scope, sites: Mapping[int, Site]) -> Hashable:
    """Return a key of a function copy: equal keys mean that its nodes become the same."""
    found = [
        (index, sites[id(node)]) for index, node in enumerate(scope.nodes) if id(node) in sites
    ]
    constants = plan.maker.read_in(scope, [site.result for _, site in found])
    return (
        *((index, site.result_key) for index, site in found),
        *(message.SerializeToString() for message in (*constants.initializers, *constants.nodes)),
    )
