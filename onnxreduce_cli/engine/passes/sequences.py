"""Writing out of sequences and optional values as tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import ModelProto

from onnxreduce_cli import schemas
from onnxreduce_cli.containers.operators import OPERATORS
from onnxreduce_cli.containers.rewriting import RewriteError, RewrittenNode, write_out
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.engine.emulation import refuse_emulation
from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.types.skeleton import without_weights

#: Operators that pass on values of any type.
_PASSING_ON = ("Identity", "If", "Loop")


def write_out_sequences(plan: SitePlan) -> tuple[ModelProto, tuple[RewrittenNode, ...]] | None:
    """Write sequences and optional values out as tensors where they block.

    Requires: a plan of a model as it is. Values within functions are left: a function that they
    block is inlined first.

    Guarantees: the copy computes what the model does, at the same opset, with the same inputs and
    outputs; no other value of its main graph, or of subgraphs, is a sequence or an optional. If
    there was a SequenceMap, it is a Loop now, and nothing else is done yet.

    Returns:
        the copy, without weights, and the nodes that were written out; None if none blocks, or if
        it is not possible, or only as an emulation: then the plan's blockers say why.
    """
    # The gate has not checked the operators of scopes that import no opset, or lack them.
    sites = [
        site
        for site in plan.blocked
        if site.scope.function is None and site.scope.opset is not None
        if _has_containers(plan, site)
    ]
    if not sites or not all(_is_defined(site) for site in sites):
        return None
    copy = without_weights(plan.input.model)
    try:
        written = write_out(copy, plan.request.target, plan.input.facts.base_dir)
    except RewriteError as error:
        site = _site(plan, error.place)
        site.blocked = Blocked(error.cause.reason, error.cause.advice)
        blocked = [site]
    else:
        if not written:
            return None  # The blocked nodes read values that no node makes.
        blocked = [] if plan.request.options.emulate else list(_blocked_emulations(plan, written))
    if not blocked:
        return copy, tuple(written)
    gone = {id(item.node) for item in (*sites, *blocked)}
    plan.sites = [item for item in plan.sites if id(item.node) not in gone] + blocked
    return None


def _site(plan: SitePlan, place: tuple[int, int]) -> Site:
    """Return a site for a node, by the index of its scope and its own index there."""
    scope = plan.input.scopes[place[0]]
    return Site(scope, scope.nodes[place[1]])


def _blocked_emulations(plan: SitePlan, written: Iterable[RewrittenNode]) -> Iterator[Site]:
    """Yield the blocked sites of nodes whose replacement is an emulation."""
    for item in written:
        site = _site(plan, item.place)
        site.result = item.made
        try:
            refuse_emulation(site, plan.request.target, emulate=False, emulated=True)
        except Blocked as blocked:
            site.blocked = blocked.kept()
            yield site


def _is_defined(site: Site) -> bool:
    """Return whether the opset of a node has its operator, so that the gate has checked it."""
    return schemas.defines(site.node.op_type, site.scope.opset or 0)


def _has_containers(plan: SitePlan, site: Site) -> bool:
    """Return whether a node has sequences or optional values as inputs or outputs."""
    node = site.node
    if node.op_type not in _PASSING_ON:
        return node.op_type in OPERATORS
    names = [name for name in (*node.input, *node.output) if name]
    kinds = [plan.facts.kind(site.scope, name) for name in names]
    return any(kind is not None and kind.startswith(("seq(", "optional(")) for kind in kinds)
