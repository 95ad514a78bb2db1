"""Sizes that onnx's shape inference counts otherwise than runtimes: of pools, and of some others.

Sizes are those of runtimes. With ``ceil_mode=1`` the last window may begin in the padding behind
the data: onnx counts it below opset 22, runtimes leave it out at every opset. With ``auto_pad`` of
the same size a ConvTranspose multiplies sizes by its strides, to which onnx adds its
``output_padding``, and ONNX Runtime pads a pool as if it were not dilated. Below opset 11 onnx
overlooks axes of a Squeeze that are not in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from onnx import FunctionProto, ModelProto, NodeProto, helper

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import UNKNOWN_DOMAIN, default_opset, is_default
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope, with_inner

_MISCOUNTED = frozenset({"AveragePool", "ConvTranspose", "LpPool", "MaxPool", "Squeeze"})

#: The attributes that sizes follow from.
_SIZES = (
    *("auto_pad", "ceil_mode", "dilations", "kernel_shape"),
    *("axes", "output_padding", "output_shape", "pads", "strides"),
)

#: The opset from which onnx leaves that window out.
_LEFT_OUT = 22

#: The opset from which onnx finds the axes of a Squeeze in any order.
_ANY_ORDER = 11

_SAME = ("SAME_UPPER", "SAME_LOWER")


def corrected(node: NodeProto, opset: int) -> NodeProto | None:
    """Return a node of which onnx infers the sizes that runtimes give a node; None for none.

    That is the node itself where onnx infers the same of it, and where it is another operator.
    """
    if node.op_type not in _MISCOUNTED or not is_default(node.domain):
        return node
    sizes = [item for item in node.attribute if item.name in _SIZES]
    if any(item.ref_attr_name for item in sizes):
        return None if _may_decide(node, {item.name for item in sizes}, opset) else node
    values = {item.name: attributes.value(item) for item in sizes}
    if node.op_type == "Squeeze":
        axes = values.get("axes", [])
        in_order = opset >= _ANY_ORDER or axes == sorted(axes)
        return node if in_order else _changed(node, axes=sorted(axes))
    same = values.get("auto_pad") in _SAME
    if node.op_type == "ConvTranspose":
        if not same or "output_shape" in values or not any(values.get("output_padding", ())):
            return node
        added = _added_at_run_time(values)
        return None if added is None else _changed(node, output_padding=added)
    if same and any(step > 1 for step in values.get("dilations", ())):
        ends = _ends_if_dilated(values)
        if ends is None:
            return None
        return _changed(node, "auto_pad", "ceil_mode", pads=[0] * len(ends) + ends)
    if not values.get("ceil_mode") or opset >= _LEFT_OUT:
        return node
    if same:
        return _changed(node, "ceil_mode")
    pads = _pads(values)
    if pads is None:
        return node
    return _changed(node, "auto_pad", "ceil_mode", pads=pads)


def _may_decide(node: NodeProto, names: Collection[str], opset: int) -> bool:
    """Return whether values of the named attributes, which calls set, may decide how to count."""
    if node.op_type == "Squeeze":
        return opset < _ANY_ORDER
    if node.op_type == "ConvTranspose":
        return "output_padding" in names and "auto_pad" in names
    if "ceil_mode" in names and opset < _LEFT_OUT:
        return True
    return "dilations" in names and "auto_pad" in names


def _changed(node: NodeProto, *dropped: str, **values: Any) -> NodeProto:
    """Return a copy of a node without some attributes, and with others."""
    result = NodeProto()
    result.CopyFrom(node)
    attributes.drop(result, (*dropped, *values))
    result.attribute.extend(helper.make_attribute(name, value) for name, value in values.items())
    return result


def is_miscounted(node: NodeProto, opset: int) -> bool:
    """Return whether a node is one of which onnx may infer other sizes than runtimes give."""
    return corrected(node, opset) is not node


def has_miscounted(scope: Scope) -> bool:
    """Return whether a scope has a node of which onnx may infer other sizes than runtimes give."""
    return not _MISCOUNTED.isdisjoint(scope.op_types) and any(
        is_miscounted(node, scope.opset or 0) for node in scope.nodes
    )


def _pads(values: Mapping[str, Any]) -> list[int] | None:
    """Return the pads that give the sizes of runtimes without ceil_mode.

    One stride less 1 rounds up; one window less 1 is what a window takes that begins at the last
    element, and none that begins behind it. None where the second never matters.
    """
    kernel, mode = values.get("kernel_shape", ()), values.get("auto_pad", "NOTSET")
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


def _added_at_run_time(values: Mapping[str, Any]) -> list[int] | None:
    """Return the output_padding by which onnx infers the sizes of a ConvTranspose with auto_pad.

    It only adds what a window shorter than the stride leaves of that. None if the window is not
    known, or if the attributes do not fit each other.
    """
    kernel, added = values.get("kernel_shape", ()), values["output_padding"]
    strides, dilations = (
        values.get(name) or [1] * len(kernel) for name in ("strides", "dilations")
    )
    if {len(added), len(strides), len(dilations)} != {len(kernel)}:
        return None
    windows = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    return [
        max(0, min(more, stride - window))
        for more, stride, window in zip(added, strides, windows, strict=True)
    ]


def _ends_if_dilated(values: Mapping[str, Any]) -> list[int] | None:
    """Return the pads at the ends that give the sizes of a dilated pool with padding to its size.

    The padding is the one without dilations. None where it depends on the size of the data.
    """
    kernel, dilations = values.get("kernel_shape", ()), values["dilations"]
    strides = values.get("strides") or [1] * len(kernel)
    if values.get("ceil_mode") or {len(strides), len(dilations)} != {len(kernel)}:
        return None
    ends = []
    for size, step, stride in zip(kernel, dilations, strides, strict=True):
        beyond = (size - 1) * (step - 1)  # By how much the window is longer.
        if beyond and size < stride:
            return None
        ends.append(size - 1 + beyond + -beyond // stride * stride)
    return ends


def correct_sizes(model: ModelProto) -> None:
    """Replace the nodes of which onnx infers other sizes than runtimes give, in place.

    Args:
        model: a copy of a model, or of a part of it, for shape inference.
    """
    functions = {(item.domain, item.name) for item in model.functions}
    owners: list[ModelProto | FunctionProto] = [model, *model.functions]
    for owner in owners:
        opset = default_opset(owner) or 0
        unknown = False
        for node in _may_be_miscounted(owner):
            if (node.domain, node.op_type) in functions:
                continue
            counted = corrected(node, opset)
            if counted is None:
                node.domain, unknown = UNKNOWN_DOMAIN, True
            elif counted is not node:
                node.CopyFrom(counted)
        if unknown:
            owner.opset_import.add(domain=UNKNOWN_DOMAIN, version=1)


def _may_be_miscounted(owner: ModelProto | FunctionProto) -> Iterator[NodeProto]:
    nodes = owner.node if isinstance(owner, FunctionProto) else owner.graph.node
    looked_at = _MISCOUNTED | GRAPH_OPERATORS
    for node in with_inner(node for node in nodes if node.op_type in looked_at):
        if node.op_type in _MISCOUNTED and is_default(node.domain):
            yield node
