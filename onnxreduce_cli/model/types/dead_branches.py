"""Branches of If nodes that are never taken, as their condition is constant."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from onnxreduce_cli.model.graph.branches import branch
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.types.facts import Facts


def is_dead(facts: Facts, scope: Scope) -> bool:
    """Return whether a scope lies in a branch that is never taken."""
    inner: Scope | None = scope
    while inner is not None and inner.parent is not None:
        node = inner.owner
        if node is not None and node.op_type == "If" and is_default(node.domain):
            condition = truth(facts.constant(inner.parent, node.input[0]))
            if condition is not None and branch(node, condition)[1] is not inner.container:
                return True
        inner = inner.parent
    return False


def truth(array: npt.NDArray[Any] | None) -> bool | None:
    """Return a condition, a bool of one element; None if it is not known before the run."""
    return bool(array.item()) if array is not None and array.size == 1 else None
