"""Blockers of nodes that depend on a value of unknown type: one for each such value.

Shape inference does not see through operators of other domains: the types of all values that are
computed from such an output are unknown too, and are known once its type is stated.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.values import elem_type_of
from onnxreduce_cli.model.types.conversion_facts import ConversionFacts, UnknownValue

#: An example of dimensions.
_SHAPE = "[N,3,224]"


def report(blocked: Sequence[Site], facts: ConversionFacts) -> tuple[Blocker, ...]:
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


def _root_of(facts: ConversionFacts, site: Site) -> UnknownValue | None:
    """Return the value whose unknown type blocks a node; None if there is none."""
    assert site.blocked is not None
    name = site.blocked.dtype_of or site.blocked.rank_of
    if not name or site.scope.function is not None:
        return None
    dtype = facts.kind(site.scope, name) is None
    if site.blocked.dtype_of and not dtype:
        return None  # The value is no tensor.
    return facts.first_unknown(site.scope, name, dtype=dtype)


def _blocker(facts: ConversionFacts, root: UnknownValue, behind: Sequence[Site]) -> Blocker:
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


def _likely(facts: ConversionFacts, root: UnknownValue) -> str:
    """Return an example of a dtype: the value's own if known, else one that its nodes take."""
    kind = facts.kind(root.scope, root.name)
    allowed = {kind} if kind is not None else facts.allowed_kinds(root.scope, root.name)
    tensors = {item for item in allowed or () if elem_type_of(item) is not None}
    chosen = "tensor(float)" if "tensor(float)" in tensors or not tensors else min(tensors)
    return chosen[len("tensor(") : -1]
