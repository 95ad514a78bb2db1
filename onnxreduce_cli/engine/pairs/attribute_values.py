"""The values of a function's attributes, by which the sites in its body are run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pairs.nodes import nodes_behind
from onnxreduce_cli.engine.pairs.pair import UncheckableError
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph.attributes import bind
from onnxreduce_cli.model.graph.scope import Scope, with_inner
from onnxreduce_cli.model.graph.used_values import used_values
from onnxreduce_cli.model.graph.values import CONSTANT_DTYPES
from onnxreduce_cli.model.types.facts import Facts

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class AttributeValues:
    """The attributes that a site refers to, as calls of its function set them together.

    Attributes:
        facts: the facts of the model.
        values: the values by name; None for an attribute that is not set.
    """

    facts: Facts
    values: Mapping[str, Any]

    def bound(self, node: NodeProto) -> NodeProto:
        """Return a copy of a node without doc strings, with values in place of references."""
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.doc_string = ""
        del copy.metadata_props[:]
        given = {
            attribute.ref_attr_name: helper.make_attribute(
                attribute.name, value, attr_type=attribute.type or None
            )
            for attribute in _references([copy])
            if (value := self.values[attribute.ref_attr_name]) is not None
        }
        bind(copy, given)
        return copy

    def constant(self, scope: Scope, name: str) -> Array | None:
        """Return a value that is the same in every run of these calls, if it is known.

        Raises:
            UncheckableError: it is one, but not to be read.
        """
        array = self.facts.constant(scope, name)
        reference = constant_reference(scope, name) if array is None else None
        return array if reference is None else self.array(reference)

    def array(self, reference: AttributeProto) -> Array:
        """Return the constant that a reference stands for: of a Constant node, or integers.

        Raises:
            UncheckableError: it is not set, or is not in the model.
        """
        value = self.values[reference.ref_attr_name]
        if value is None or isinstance(value, SparseTensorProto):
            raise UncheckableError(
                f"a call of the function sets no numbers for {reference.ref_attr_name!r}"
            )
        if not isinstance(value, TensorProto):
            return np.array(value, CONSTANT_DTYPES.get(reference.name, np.int64))
        if value.data_location == TensorProto.EXTERNAL:
            raise UncheckableError(
                f"the attribute {reference.ref_attr_name!r} is external data, which is not read"
            )
        return numpy_helper.to_array(value)


def attribute_values(conversion: Conversion, site: Site) -> list[AttributeValues]:
    """Return the values that calls set for what a site refers to, each combination once.

    Raises:
        UncheckableError: they are not known.
    """
    function = site.scope.function
    names = () if function is None else _names(conversion, site)
    if function is None or not names:
        return [AttributeValues(conversion.facts, {})]
    combinations = conversion.facts.calls.values_of_calls(function, names)
    if combinations is None:
        raise UncheckableError(
            f"the values that calls of the function set for {', '.join(names)} are not known"
        )
    return [
        AttributeValues(conversion.facts, dict(zip(names, values, strict=True)))
        for values in combinations
    ]


def _names(conversion: Conversion, site: Site) -> tuple[str, ...]:
    """Return the names of the function's attributes that a site refers to."""
    own = conversion.constants(site.scope)
    nodes = [*nodes_behind(site, own), site.node, *site.result]
    found = [*_references(nodes)]
    for name in used_values(nodes):
        reference = own.references.get(name) or constant_reference(site.scope, name)
        found += [] if reference is None else [reference]
    return tuple(dict.fromkeys(reference.ref_attr_name for reference in found))


def constant_reference(scope: Scope, name: str) -> AttributeProto | None:
    """Return the reference to a function's attribute that a Constant node holds."""
    owner = scope.resolve(name) if scope.function is not None else None
    producer = None if owner is None else owner.producer(name)
    if producer is None or producer.op_type != "Constant":
        return None
    return next(_references([producer]), None)


def _references(nodes: Iterable[NodeProto]) -> Iterator[AttributeProto]:
    """Yield the attributes of nodes, subgraphs included, that refer to a function's attribute."""
    for item in with_inner(nodes):
        for attribute in item.attribute:
            if attribute.ref_attr_name:
                yield attribute
