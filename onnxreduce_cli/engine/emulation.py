"""Emulations: correct replacements with control flow that the node did not have.

Few users want them, so they are made only with ``--emulate``.
"""

from __future__ import annotations

from collections import Counter

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS
from onnxreduce_cli.schemas import REDUCE, SOFTMAX

#: How many nodes may replace one, unless it may be emulated.
MOST_NODES = 128
#: If more nodes than this replace one, a plan mentions it.
MANY_NODES = 32

#: From this opset on the Reduce and Softmax family is converted without ``--emulate``.
_FAMILY_FROM = 11
_FAMILY = frozenset({*REDUCE, *SOFTMAX})

#: The operators, besides those on sequences, that a Loop or an If may replace.
EMULATED = _FAMILY | {"ScatterElements", "ScatterND"}


def may_loop(op_type: str) -> bool:
    """Return whether control flow may replace an operator, or it is control flow itself."""
    return op_type in EMULATED or op_type in GRAPH_OPERATORS


def refuse_emulation(site: Site, target: int, *, emulate: bool, emulated: bool) -> None:
    """Block a site whose replacement is too large, or an emulation without ``--emulate``.

    Args:
        site: a node and its replacement.
        target: the opset to reach.
        emulate: whether the user allows emulations.
        emulated: whether the node's operator has emulations.

    Raises:
        Blocked: the replacement has control flow that was not there, or too many nodes.
    """
    if site.stays or (site.node.op_type in _FAMILY and target >= _FAMILY_FROM):
        return
    nodes, control_flow = site.nodes, site.control_flow
    if (nodes <= MOST_NODES and not control_flow) or (emulate and emulated):
        return
    site.result = ()
    later = target < (site.scope.opset or 0)
    if not emulated:
        what = "control flow" if control_flow else f"{nodes:,} nodes, more than {MOST_NODES},"
        why = f"the runtime {site.avoided[0].what}; in other operators " if site.avoided else ""
        raise Blocked(
            f"{why}it would take {what} at opset {target}", "choose a later opset" if later else ""
        )
    said = site.description or ()
    rest = {
        name: number
        for name, number in Counter(control_flow).items()
        if not any(name in text for text in said)
    }
    parts = [f"{number} {name}{'s' if number > 1 else ''}" for name, number in rest.items()]
    text = f"{nodes:,} nodes" + (f", with {' and '.join(parts)}" if parts else "")
    raise Blocked(
        f"it can only be emulated at opset {target}: {'; '.join([*said, text])}",
        "--emulate accepts that" + (", or choose a later opset" if later else ""),
    )
