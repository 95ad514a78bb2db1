"""Blockers of nodes that depend on a value of unknown type: one for each such value.

Shape inference does not see through operators of other domains: the types of all values that are
computed from such an output are unknown too, and are known once its type is stated.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from onnx import NodeProto

from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import Scope, subgraphs
from onnxreduce_cli.model.graph.values import elem_type_of
from onnxreduce_cli.model.types.facts import Facts

#: An example of dimensions.
_SHAPE = "[N,3,224]"


class UnknownValue(NamedTuple):
    """A value whose type, or rank, is unknown although those of its node's inputs are known.

    Attributes:
        scope: its scope.
        node: the node that makes it.
        name: its name.
    """

    scope: Scope
    node: NodeProto
    name: str


def report(blocked: Sequence[Site], facts: Facts) -> tuple[Blocker, ...]:
    """Return the blockers of nodes: one for all that depend on the same value of unknown type.

    A single node that depends on an operator of the default domain gets its own blocker.
    """
    behind: dict[tuple[int, str], list[Site]] = {}
    roots: dict[tuple[int, str], UnknownValue] = {}
    found: list[Site | tuple[int, str]] = []
    for site in blocked:
        root = _root_of(facts, site)
        if root is None:
            found.append(site)
            continue
        key = (id(root.scope), root.name)
        if key not in behind:
            found.append(key)
            roots[key] = root
        behind.setdefault(key, []).append(site)
    return tuple(
        item.blocker if isinstance(item, Site) else _blocker(facts, roots[item], behind[item])
        for item in found
    )


def _root_of(facts: Facts, site: Site) -> UnknownValue | None:
    """Return the value whose unknown type blocks a node; None if there is none."""
    assert site.blocked is not None
    name = site.blocked.dtype_of or site.blocked.rank_of
    if not name or site.scope.function is not None:
        return None
    dtype = facts.kind(site.scope, name) is None
    if site.blocked.dtype_of and not dtype:
        return None  # The value is no tensor.
    return _first_unknown(facts, site.scope, name, dtype=dtype)


def _first_unknown(facts: Facts, scope: Scope, name: str, *, dtype: bool) -> UnknownValue | None:
    """Return the value that is the reason why the dtype or rank of another is unknown.

    Args:
        facts: the types of the values.
        scope: where the value is read.
        name: its name.
        dtype: whether its dtype is unknown; otherwise its rank is.

    Returns:
        the first unknown value that it depends on, made by a node of the model; None where
        there is none.
    """
    seen: set[tuple[int, str]] = set()
    while True:
        generated = facts.generated.node(scope, name)
        made = generated or _maker(scope, name)
        if made is None or (id(made[0]), name) in seen:
            return None
        place, node = made
        seen.add((id(place), name))
        following = _unknown_input(facts, place, node, dtype=dtype)
        if following is None:
            own = generated is None and facts.calls.function_of(node) is None
            return UnknownValue(place, node, name) if own else None
        scope, name = following


def _maker(scope: Scope, name: str) -> tuple[Scope, NodeProto] | None:
    owner = scope.resolve(name)
    node = None if owner is None else owner.producers.get(name)
    return None if owner is None or node is None else (owner, node)


def _unknown_input(
    facts: Facts, scope: Scope, node: NodeProto, *, dtype: bool
) -> tuple[Scope, str] | None:
    """Return a value that a node's outputs depend on and whose dtype, or rank, is unknown.

    That is an input, or an output of a graph within the node.
    """
    if not is_default(node.domain):
        return None
    # The rank of Reshape's output depends on its second input alone.
    names = node.input[1:] if node.op_type == "Reshape" and not dtype else node.input[:]
    read = [(scope, name) for name in names if name]
    for _, graph in subgraphs(node):
        inner = facts.inner(graph)
        if inner is not None:
            read += [(inner, output.name) for output in graph.output]
    for place, name in read:
        known = facts.type(place, name)
        if known is None or (not dtype and known.dims is None and known.elem_type):
            return place, name
    return None


def _blocker(facts: Facts, root: UnknownValue, behind: Sequence[Site]) -> Blocker:
    node, domain = root.node, root.node.domain
    if len(behind) == 1 and is_default(domain):
        return behind[0].blocker
    kind = facts.kind(root.scope, root.name)
    needs_rank = any(site.blocked is not None and site.blocked.rank_of for site in behind)
    what = "type" if kind is None else "rank"
    of_domain = "" if is_default(domain) else f" as a node of domain {domain!r}"
    nodes = "a node" if len(behind) == 1 else f"{len(behind)} nodes"
    example = behind[0]
    stated = f"{root.name}={_likely(facts, root)}{_SHAPE if needs_rank else ''}"
    return Blocker(
        root.scope.describe(node),
        node.op_type,
        root.scope.opset or 0,
        root.scope.label,
        f"the {what} of {root.name!r}, which it gives{of_domain}, is not known: {nodes} behind it "
        f"cannot be converted ({example.node.op_type} node "
        f"{example.scope.describe(example.node)}{', ...' if len(behind) > 1 else ''})",
        f"state it, such as: --type {shlex.quote(stated)}",
    )


def _likely(facts: Facts, root: UnknownValue) -> str:
    """Return an example of a dtype: the value's own if known, else one that its nodes take."""
    kind = facts.kind(root.scope, root.name)
    allowed = {kind} if kind is not None else facts.allowed_kinds(root.scope, root.name)
    tensors = {item for item in allowed or () if elem_type_of(item) is not None}
    chosen = "tensor(float)" if "tensor(float)" in tensors or not tensors else min(tensors)
    return chosen[len("tensor(") : -1]
