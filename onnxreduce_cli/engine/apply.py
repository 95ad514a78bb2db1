"""Apply a plan: make the edits that were planned; no step runs and nothing is decided here."""

from __future__ import annotations

from collections import defaultdict

from onnx import GraphProto, ModelProto

from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.stated_types import state_types, types_to_state, uninferred_types
from onnxreduce_cli.model.graph.domains import set_learning_version
from onnxreduce_cli.model.graph.edit import Edits, apply_edits, set_ir_version, set_opset
from onnxreduce_cli.model.graph.imports import remove_imports
from onnxreduce_cli.model.graph.values import forget_negative_dims, stated_in
from onnxreduce_cli.model.types.skeleton import adopt


def apply_plan(plan: SitePlan, model: ModelProto) -> None:
    """Edit a model as planned, in place.

    Args:
        plan: a finished plan without blockers, of the model or of a copy without weights.
        model: the model.
    """
    _edit(plan)
    if plan.input.model is not model:
        adopt(model, plan.input.model)


def _edit(plan: SitePlan) -> None:
    model_input, request = plan.input, plan.request
    # Computed before the first edit: facts are read from the model as it was.
    stated = list(types_to_state(plan.facts, request.target, model_input.scopes, plan.sites))
    if not plan.changes_nothing:
        _withdraw_shapes(plan)
    if model_input.specialisation is not None:
        model_input.specialisation.direct_calls()
    edits = _edits(plan)
    for scope in model_input.scopes:
        constants = plan.constants.get(id(scope))
        if constants is None:
            continue
        edits[id(scope)].initializers += constants.initializers
        edits[id(scope)].first += constants.nodes
        if isinstance(scope.container, GraphProto):
            uninferred = uninferred_types(plan.facts, request.target, scope, constants.nodes, ())
            scope.container.value_info.extend(uninferred)
    for graph, infos in stated:
        state_types(graph, infos)
    # Inner graphs first: a node that replaces an If takes over branches that are done.
    for scope in reversed(model_input.scopes):
        if id(scope) in edits:
            apply_edits(scope, edits[id(scope)])
    for owner, _, version in list(plan.learning_versions):
        set_learning_version(owner, version)
    set_opset(model_input.model, request.target)
    set_ir_version(model_input.model, model_input.scopes, plan.ir_version)
    if model_input.specialisation is not None:
        model_input.specialisation.install()
    for function in model_input.model.functions:
        set_opset(function, request.target)
    if plan.unread:
        remove_imports(model_input.model, plan.unread)


def _edits(plan: SitePlan) -> defaultdict[int, Edits]:
    """Return the replacements and removals by the identity of a scope."""
    edits: defaultdict[int, Edits] = defaultdict(Edits)
    for site in plan.sites:
        made = (site.result, site.successors, site.taken_over, site.initializers)
        edits[id(site.scope)].replace(site.node, *made)
    for scope in plan.dead.scopes:
        edits[id(scope)].remove(plan.dead.of(scope))
    return edits


def _withdraw_shapes(plan: SitePlan) -> None:
    """Remove shapes from the model's value infos that need not hold in every run.

    These are negative dimensions, and shapes that follow from the default value of an initializer
    that callers can override: ONNX Runtime plans its memory by the shapes that value infos state.
    """
    stated = plan.facts.stated
    for scope in plan.input.scopes:
        forget_negative_dims(stated_in(scope.container))
    for scope in plan.input.scopes if stated.overridable else ():
        for info in scope.container.value_info:
            if info.type.tensor_type.HasField("shape") and stated.follows(scope, info.name):
                info.type.tensor_type.ClearField("shape")
