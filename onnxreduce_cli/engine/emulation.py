"""Emulations: replacements that are right, but seldom what anyone wants.

They bring control flow that the node did not have, or very many nodes; only a user who says so gets
them.
"""

from __future__ import annotations

from collections import Counter

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.steps.reduction import REDUCE, SOFTMAX

#: More nodes than these in place of one are an emulation, or are told of a plan.
MOST_NODES, MANY_NODES = 128, 32

#: From this opset on axes known at run time only are promised for these.
_PROMISED_FROM = 11
_PROMISED = frozenset({*REDUCE, *SOFTMAX})


def refuse(site: Site, target: int) -> None:
    """Block a site whose replacement is an emulation.

    Args:
        site: a node and what replaces it.
        target: the opset that the conversion leads to.

    Raises:
        Blocked: it is one; the reason says what it would take.
    """
    if site.node.op_type in _PROMISED and target >= _PROMISED_FROM:
        return
    nodes, control_flow = site.nodes, site.control_flow
    if nodes <= MOST_NODES and not control_flow:
        return
    said = site.description or ()
    rest = {
        name: number
        for name, number in Counter(control_flow).items()
        if not any(name in text for text in said)
    }
    parts = [f"{number} {name}{'s' if number > 1 else ''}" for name, number in rest.items()]
    text = f"{nodes:,} nodes" + (f", with {' and '.join(parts)}" if parts else "")
    site.result = ()
    later = ", or choose a later opset" if target < (site.scope.opset or 0) else ""
    raise Blocked(
        f"it can only be emulated at opset {target}: {'; '.join([*said, text])}",
        f"--emulate (emulate=True) accepts that{later}",
    )
