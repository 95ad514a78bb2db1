"""Unused opset imports, which a runtime may refuse all the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from onnx import FunctionProto, ModelProto, NodeProto

from onnxreduce_cli.model.graph.domains import MICROSOFT
from onnxreduce_cli.model.graph.scope import Scope, subgraphs


def _is_known(domain: str) -> bool:
    """Return whether a domain is one that ONNX Runtime or onnx imports of itself.

    ONNX Runtime imports PyTorch's in each model that it saves.
    """
    if domain in (MICROSOFT, "org.pytorch.aten"):
        return True
    return domain.startswith(("ai.onnx.", "com.microsoft.", "com.ms."))


def unread_imports(owner: ModelProto | FunctionProto) -> dict[str, int]:
    """Return the imports that a model or a function does not use.

    A model uses what its functions use: their bodies replace the nodes that call them.

    Returns:
        the versions by domain, without the default domain and domains that others define.
    """
    found = {item.domain: item.version for item in owner.opset_import if _is_known(item.domain)}
    if not found:
        return found
    for domain in _read(owner):
        found.pop(domain, None)
        if not found:
            break
    return found


def unread_everywhere(model: ModelProto, scopes: Iterable[Scope]) -> dict[str, int]:
    """Return the `unread_imports` of a model and of the functions among its scopes."""
    found = unread_imports(model)
    for scope in scopes:
        if isinstance(scope.container, FunctionProto):
            found |= unread_imports(scope.container)
    return found


def _read(owner: ModelProto | FunctionProto) -> Iterable[str]:
    """Yield the domains of all nodes, and of functions, in a model or a function."""
    waiting: list[NodeProto] = []
    if isinstance(owner, FunctionProto):
        waiting += owner.node
    else:
        waiting += owner.graph.node
        for function in owner.functions:
            yield function.domain
            waiting += function.node
        for training in owner.training_info:
            waiting += training.initialization.node
            waiting += training.algorithm.node
    while waiting:
        node = waiting.pop()
        yield node.domain
        for _, graph in subgraphs(node):
            waiting += graph.node


def remove_imports(model: ModelProto, domains: Collection[str]) -> None:
    """Remove the imports of domains wherever a model, or a function of it, does not use them."""
    owners: list[ModelProto | FunctionProto] = [model, *model.functions]
    for owner in owners:
        unread = unread_imports(owner).keys() & domains
        for index in reversed(range(len(owner.opset_import))):
            if owner.opset_import[index].domain in unread:
                del owner.opset_import[index]
