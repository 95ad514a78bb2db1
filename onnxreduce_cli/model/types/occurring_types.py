"""The types that may occur in a model, by what brings them in; no types are inferred for this.

A dtype comes into a model by an input, a tensor, an attribute that names it, or an operator that
always gives it. Where none of these brings a dtype in, no value has it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import NamedTuple

from onnx import AttributeProto, FunctionProto, GraphProto, TensorProto
from onnx.defs import OpSchema

from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph.calls import Calls
from onnxreduce_cli.model.graph.domains import LEARNING, is_default
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.model.graph.values import kind_of

#: What is in types as schemas spell them: `seq`, `tensor` and `float` of ``seq(tensor(float))``.
_WORD = re.compile(r"\w+")

#: The dtypes by their numbers.
_DTYPES = {number: name.lower() for name, number in TensorProto.DataType.items() if number}

#: What operators give where no attribute names another dtype.
_USUAL = frozenset({"tensor", "float", "int64", "string"})
_DEFAULTS = {"QuantizeLinear": frozenset({"uint8"})}

#: Attributes that name the dtype of an output, by name: those that hold a tensor or a type do, too.
_NAMING = frozenset({"to", "dtype", "output_dtype", "output_datatype", "stash_type", "cast_to"})

#: The most types of an output that are taken to occur wherever its operator does.
_FEW = 4


class OccurringTypes:
    """The types that values of a model may have."""

    def __init__(self, scopes: Sequence[Scope], calls: Calls) -> None:
        """Prepare; they are found when first asked for.

        Args:
            scopes: all scopes of the model.
            calls: the calls of its functions.
        """
        self._scopes, self._calls = scopes, calls

    @cached_property
    def _words(self) -> set[str] | None:
        """The words that the types are made of; None where any type may occur."""
        return _words(self._scopes, self._calls)

    def may_be(self, kind: str) -> bool:
        """Return whether a value may have a type, as schemas spell it."""
        return self._words is None or self._words.issuperset(_WORD.findall(kind))


def _words(scopes: Iterable[Scope], calls: Calls) -> set[str] | None:
    """Return the words of the types that occur; None where an operator may give any type."""
    found = {*_USUAL}
    for scope in scopes:
        found.update(_of_container(scope.container))
        for node, op_type in zip(scope.nodes, scope.op_types, strict=True):
            if op_type in calls.op_types and calls.function_of(node) is not None:
                # Its attributes may name dtypes in the body of the function.
                for attribute in node.attribute:
                    found.update(_of_attribute(attribute))
                continue
            given = _given_by(op_type, "" if is_default(node.domain) else node.domain)
            if given is None:
                return None
            found |= given.words
            if given.attributes:
                for attribute in node.attribute:
                    if attribute.name in given.attributes:
                        found.update(_of_attribute(attribute))
    return found


def _of_container(container: GraphProto | FunctionProto) -> Iterator[str]:
    """Yield the words of the types of a graph's inputs and initializers."""
    if isinstance(container, FunctionProto):
        for attribute in container.attribute_proto:
            yield from _of_attribute(attribute)
        return
    for value in container.input:
        yield from _WORD.findall(kind_of(value.type) or "")
    for tensor in container.initializer:
        yield _DTYPES.get(tensor.data_type, "")
    for sparse in container.sparse_initializer:
        yield from ("sparse_tensor", _DTYPES.get(sparse.values.data_type, ""))


def _of_attribute(attribute: AttributeProto) -> Iterator[str]:
    """Yield the words of the types that an attribute names, or that its tensors have."""
    for tensor in (attribute.t, *attribute.tensors):
        yield _DTYPES.get(tensor.data_type, "")
    if attribute.HasField("sparse_tensor"):
        yield from ("sparse_tensor", _DTYPES.get(attribute.sparse_tensor.values.data_type, ""))
    if attribute.HasField("tp"):
        yield from _WORD.findall(kind_of(attribute.tp) or "")
    yield _DTYPES.get(attribute.i, "")
    # Before opset 6 Cast has the name of the dtype.
    yield attribute.s.decode(errors="replace").lower()


class _Given(NamedTuple):
    """The types that an operator gives its outputs, beside those of its inputs.

    Attributes:
        words: the words of those that it may always give.
        attributes: the names of the attributes that decide on others.
    """

    words: frozenset[str]
    attributes: frozenset[str]


@cache
def _given_by(op_type: str, domain: str) -> _Given | None:
    """Return the types that an operator gives by any of its definitions; None if it has none.

    What nodes with graphs give, the nodes in these tell.
    """
    since = schemas.versions(op_type, domain) if domain in ("", LEARNING) else ()
    words: set[str] = set(_DEFAULTS.get(op_type, ()))
    attributes: set[str] = set()
    for schema in [schemas.schema(op_type, version, domain) for version in since]:
        free = [] if op_type in GRAPH_OPERATORS else [*_free_outputs(schema)]
        deciding = {name: item for name, item in schema.attributes.items() if _decides(item)}
        for types in free:
            found = {word for kind in types for word in _WORD.findall(kind)}
            few = len(types) <= _FEW and not deciding and op_type not in _DEFAULTS
            words |= found if few or domain else found.difference(_DTYPES.values())
        if free:
            attributes |= deciding.keys()
            defaults = (item.default_value.i for item in deciding.values())
            words |= {_DTYPES[number] for number in defaults if number in _DTYPES}
    return _Given(frozenset(words), frozenset(attributes)) if since else None


def _free_outputs(schema: OpSchema) -> Iterator[Collection[str]]:
    """Yield the types of each output that need not be the type of an input, which must be there."""
    optional = OpSchema.FormalParameterOption.Optional
    given = {
        item.type_str for item in schema.inputs if item.is_homogeneous and item.option != optional
    }
    for made in schema.outputs:
        if made.type_str not in given:
            yield made.types


def _decides(attribute: OpSchema.Attribute) -> bool:
    """Return whether an attribute names the dtype of an output, or holds what has it."""
    kinds = OpSchema.AttrType
    holding = (kinds.TENSOR, kinds.SPARSE_TENSOR, kinds.TYPE_PROTO)
    return attribute.name in _NAMING or attribute.type in holding
