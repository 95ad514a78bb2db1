"""Sizes of pools with ``ceil_mode=1`` below opset 22, which onnx and runtimes count otherwise.

The last window may begin in the padding behind the data. onnx's shape inference counts it there,
runtimes leave it out at every opset, as onnx does from 22 on. Sizes are those of runtimes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onnx import FunctionProto, ModelProto, NodeProto, helper

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import UNKNOWN_DOMAIN, default_opset, is_default
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope, with_inner

_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})

#: The attributes of a pool that its sizes follow from.
_SIZES = ("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")

#: The opset from which onnx leaves that window out.
_LEFT_OUT = 22


def rounded_down(node: NodeProto, opset: int) -> NodeProto:
    """Return a pool without ceil_mode, of which onnx infers the sizes that runtimes give a node.

    That is the node itself where onnx infers the same of it, and where it is no pool.
    """
    if node.op_type not in _POOLS or not is_default(node.domain) or opset >= _LEFT_OUT:
        return node
    sizes = [item for item in node.attribute if item.name in _SIZES and not item.ref_attr_name]
    values = {item.name: attributes.value(item) for item in sizes}
    pads = _pads(values)
    if pads is None:
        return node
    result = NodeProto()
    result.CopyFrom(node)
    attributes.drop(result, ("auto_pad", "ceil_mode", "pads"))
    result.attribute.append(helper.make_attribute("pads", pads))
    return result


def is_miscounted(node: NodeProto, opset: int) -> bool:
    """Return whether a node is a pool of which onnx may infer other sizes than runtimes give."""
    if node.op_type not in _POOLS or not is_default(node.domain) or opset >= _LEFT_OUT:
        return False
    if any(item.ref_attr_name for item in node.attribute if item.name in _SIZES):
        return attributes.find(node, "ceil_mode") is not None  # Each call may decide otherwise.
    return rounded_down(node, opset) is not node


def has_miscounted_pool(scope: Scope) -> bool:
    """Return whether a scope has a pool of which onnx may infer other sizes than runtimes give."""
    return not _POOLS.isdisjoint(scope.op_types) and any(
        is_miscounted(node, scope.opset or 0) for node in scope.nodes
    )


def _pads(values: Mapping[str, Any]) -> list[int] | None:
    """Return the pads that give the sizes of runtimes without ceil_mode.

    One stride less 1 rounds up; one window less 1 is what a window takes that begins at the last
    element, and none that begins behind it. None where the second never matters.
    """
    kernel, mode = values.get("kernel_shape", ()), values.get("auto_pad", "NOTSET")
    if not values.get("ceil_mode") or mode not in ("NOTSET", "VALID"):
        return None
    axes = len(kernel)
    pads = [0] * 2 * axes if mode == "VALID" else values.get("pads") or [0] * 2 * axes
    strides, dilations = (values.get(name) or [1] * axes for name in ("strides", "dilations"))
    if len(pads) != 2 * axes or {len(strides), len(dilations)} != {axes}:
        return None  # It cannot be there, and onnx says so itself.
    reaches = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    rounded_up = [end + stride for end, stride in zip(pads[axes:], strides, strict=True)]
    ends = [min(pair) - 1 for pair in zip(rounded_up, reaches, strict=True)]
    if ends == [end - 1 for end in rounded_up]:
        return None
    return [*pads[:axes], *ends]


def round_pools_down(model: ModelProto) -> None:
    """Replace the pools of which onnx infers other sizes than runtimes give, in place.

    Args:
        model: a copy of a model, or of a part of it, for shape inference.
    """
    functions = {(item.domain, item.name) for item in model.functions}
    owners: list[ModelProto | FunctionProto] = [model, *model.functions]
    for owner in owners:
        opset = default_opset(owner) or 0
        unknown = False
        for node in _pools(owner):
            if (node.domain, node.op_type) in functions:
                continue
            if not is_miscounted(node, opset):
                continue
            if any(item.ref_attr_name for item in node.attribute if item.name in _SIZES):
                node.domain, unknown = UNKNOWN_DOMAIN, True
            else:
                node.CopyFrom(rounded_down(node, opset))
        if unknown:
            owner.opset_import.add(domain=UNKNOWN_DOMAIN, version=1)


def _pools(owner: ModelProto | FunctionProto) -> Iterator[NodeProto]:
    nodes = owner.node if isinstance(owner, FunctionProto) else owner.graph.node
    looked_at = _POOLS | GRAPH_OPERATORS
    for node in with_inner(node for node in nodes if node.op_type in looked_at):
        if node.op_type in _POOLS and is_default(node.domain):
            yield node
