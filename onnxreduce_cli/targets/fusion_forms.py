"""Forms of nodes that a runtime takes for a part of another operator."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from onnx import NodeProto

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.targets.binary_forms import constant_shape, is_scaled_next
from onnxreduce_cli.targets.reduction_forms import keeps_dims, reduction_axes

#: Operators that scale or shift, their weights being constant.
_SCALING = frozenset({"Add", "BatchNormalization", "Div", "Mul", "Sub"})


class _GeluLike(NamedTuple):
    """The nodes around an Add of what is, or looks like, a Gelu: ``x * (Erf(x / a) + b) * c``.

    Attributes:
        div: the Div.
        erf: the value that the Erf gives.
        add: the Add.
        product: the Mul by x.
        result: the Mul by c.
    """

    div: NodeProto
    erf: str
    add: NodeProto
    product: NodeProto
    result: NodeProto


def misleads_gelu(node: NodeFacts) -> bool:
    """Return whether an Add looks like that of a Gelu to a runtime that looks for
    ``Mul(Mul(x, Add(Erf(Div(x, a)), b)), c)``, the operands in any order, but is not.

    Such a runtime takes the second operands of Div, Add and the last Mul for constants.
    """
    return _misleads(node, lambda _: True)


def misleads_gelu_in_order(node: NodeFacts) -> bool:
    """Return whether `misleads_gelu` is true of the operands in the order written there."""

    def is_in_order(found: _GeluLike) -> bool:
        return (
            found.add.input[0] == found.erf
            and found.product.input[1] == found.add.output[0]
            and found.result.input[0] == found.product.output[0]
        )

    return _misleads(node, is_in_order)


def is_quantized(node: NodeFacts) -> bool:
    """Return whether the data is dequantized, and the result may be quantized."""
    readers = node.readers(node.node.output[0])
    quantized = readers is None or any(item.op_type == "QuantizeLinear" for item in readers)
    return quantized and _maker(node, node.input(0), "DequantizeLinear") is not None


def is_second_relu(node: NodeFacts) -> bool:
    """Return whether the first input is the Relu of a Conv, then scaled or shifted by constants.

    A runtime that computes all of these nodes at once may take both activations for one.
    """
    name: str = node.input(0)
    scaled = False
    while (maker := node.maker(name)) is not None and maker.op_type in _SCALING:
        computed = [given for given in maker.input[:2] if constant_shape(node, given) is None]
        name, scaled = next(iter(computed), ""), True
    return scaled and _maker(node, _maker(node, name, "Relu"), "Conv") is not None


def _misleads(node: NodeFacts, matches: Callable[[_GeluLike], bool]) -> bool:
    add = node.node
    for erf in add.input[:2]:
        div = _maker(node, _maker(node, erf, "Erf"), "Div")
        if div is None or not _may_be_root_of_2(node, div.input[1]):
            continue
        products = _multiplications(node, add.output[0])
        if products is None:
            return True
        for product in products:
            for result in _multiplications(node, product.output[0]) or ():
                found = _GeluLike(div, erf, add, product, result)
                if matches(found) and not _is_gelu(node, found):
                    return True
    return False


def _may_be_root_of_2(node: NodeFacts, name: str) -> bool:
    array = node.constant(name)
    return array is None or not array.size or math.isclose(array.flat[0], 2**0.5, rel_tol=1e-5)


def _maker(node: NodeFacts, value: str | NodeProto | None, op_type: str) -> NodeProto | None:
    """Return the node of an operator that makes a value, or the first input of a node."""
    name = value.input[0] if isinstance(value, NodeProto) else value
    maker = node.maker(name) if name else None
    return maker if maker is not None and maker.op_type == op_type else None


def _multiplications(node: NodeFacts, name: str) -> list[NodeProto] | None:
    """Return the Mul nodes that read a value; None if they are not known."""
    readers = node.readers(name)
    return None if readers is None else [item for item in readers if item.op_type == "Mul"]


def _is_gelu(node: NodeFacts, found: _GeluLike) -> bool:
    """Return whether nodes are those of a Gelu, with its constants where they are looked for."""
    div, erf, add, product, result = found
    constants = (div.input[1], add.input[1], result.input[1])
    return (
        all(_is_tensor(node, name) for name in constants)
        and add.input[0] == erf
        and div.input[0] in product.input
    )


def _is_tensor(node: NodeFacts, name: str) -> bool:
    """Return whether a value is an initializer, or a Constant that is a tensor."""
    maker = node.maker(name)
    if maker is not None:
        return maker.op_type == "Constant" and attributes.find(maker, "value") is not None
    return constant_shape(node, name) is not None


def is_scaled_beside_batch(node: NodeFacts) -> bool:
    """Return whether a number scales or shifts what keeps the batch as it was, or loses it.

    Either channels are reduced to 1 beside a batch, in rank 3; or the batch is dropped and channels
    stay, from rank 4 on. The number may come with the next node, as a difference holds -1.
    """
    known, axes = node.type(node.input(0)), reduction_axes(node)
    if not axes or known is None or known.dims is None:
        return False
    dims = known.dims
    if keeps_dims(node):
        found = len(dims) == 3 and 1 in axes and 0 not in axes and dims[0] != 1
    else:
        found = len(dims) > 3 and 0 in axes and 1 not in axes
    output = node.node.output[0]
    readers = node.readers(output) if found else ()
    subtracted = readers and any(
        reader.op_type == "Sub" and reader.input[1] == output for reader in readers
    )
    return found and bool(subtracted or is_scaled_next(node))
