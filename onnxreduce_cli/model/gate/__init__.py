"""The gate: one pass over a model that was loaded, which looks at each node by itself.

What passes has names that are text, nodes with as many inputs and outputs as their operators
allow, attributes of the kinds that their operators define with a value of that kind, tensors whose
data fits their dimensions, graphs within nodes with the inputs and outputs that the node gives
them, and functions that do not call themselves. What only types, shapes and constants tell, or the
text of a definition, it does not know: see CONTRIBUTING.md. What `onnx.checker` refuses beyond
that, such as a graph without a name, steps need not care for.
"""

from __future__ import annotations

from onnx import ModelProto

from onnxreduce_cli.model.gate.model import check_model
from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.types.facts import Facts

__all__ = ["admit", "check"]


def admit(model: ModelProto, base_dir: str = "") -> Facts:
    """Look a model over, and return its facts, of which none is computed yet.

    Args:
        model: the model.
        base_dir: the folder that external data is relative to.

    Raises:
        InvalidModelError: what is wrong with it, and where.
    """
    found = scopes(model)
    check_model(model, found)
    return Facts(model, found, base_dir)
