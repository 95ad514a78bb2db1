"""A site's nodes as they stand in a model of their own, where no function calls them."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, NodeProto, TensorProto, helper

from onnxreduce_cli.model.calls import UNKNOWN, Calls
from onnxreduce_cli.model.scope import Scope, with_inner
from onnxreduce_cli.model.skeleton import bind
from onnxreduce_cli.model.tensors import tensors
from onnxreduce_cli.verification.errors import UncheckableError

#: Said of nodes that draw random numbers.
RANDOM = "its results are random"


def bound(calls: Calls, scope: Scope, node: NodeProto) -> NodeProto:
    """A copy of a node without its texts, its attribute references resolved.

    Args:
        calls: what is known of the callers of the model's functions.
        scope: where the node is.
        node: the node.

    Raises:
        UncheckableError: callers set an attribute differently.
    """
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.doc_string = ""
    del copy.metadata_props[:]
    values = {}
    for attribute in _references(copy):
        value = calls.resolve_attribute(scope, attribute)
        if value is UNKNOWN:
            raise UncheckableError(
                f"its attribute {attribute.name!r} is set by the function's callers"
            )
        if value is not None:
            values[attribute.ref_attr_name] = helper.make_attribute(
                attribute.name, value, attr_type=attribute.type or None
            )
    if values or any(True for _ in _references(copy)):
        bind(copy, values)
    return copy


def _references(node: NodeProto) -> Iterator[AttributeProto]:
    """The attributes that refer to one of the function, of a node and those in its graphs."""
    for item in with_inner([node]):
        for attribute in item.attribute:
            if attribute.ref_attr_name:
                yield attribute


def refuse_external(node: NodeProto) -> None:
    """Refuse a node that holds a tensor without its data.

    Raises:
        UncheckableError: it holds one.
    """
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors(node)):
        raise UncheckableError("its tensor is large, or external data, which is not read")
