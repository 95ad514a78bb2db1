"""A site as two tiny models: the node before, and what replaces it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from onnxreduce_cli.conversion import Conversion
from onnxreduce_cli.model import ir_version
from onnxreduce_cli.model.calls import UNKNOWN
from onnxreduce_cli.model.scope import Scope, subgraphs
from onnxreduce_cli.model.skeleton import bind
from onnxreduce_cli.model.tensors import tensors
from onnxreduce_cli.model.values import Dims, ValueType
from onnxreduce_cli.site import Site
from onnxreduce_cli.verification.outcomes import is_random
from onnxreduce_cli.verification.reads import declared, reads

Array = npt.NDArray[Any]

#: Constants up to this size keep their values; of larger ones only small integers do.
_SMALL = 16
_INTEGERS = 1024


class UncheckableError(Exception):
    """A site cannot be run on its own; the message says why."""


@dataclass(frozen=True)
class Pair:
    """The node and its replacement as models of the same inputs and outputs.

    Attributes:
        before: the original node at its own opset.
        after: what it became at the target opset.
        moved: whether only attributes and inputs moved: the same operator, once.
        full: whether the dimensions are the model's own, none of them made smaller.
        promised: what the model says of its outputs' dimensions, by output, where `full`: inputs
            that lead elsewhere are not the model's.
        sizes: what is known of lists of integers that are drawn, by input: for each element its
            number, or the tensor and the axis of which it is the size, or None.
    """

    before: ModelProto
    after: ModelProto
    moved: bool
    full: bool
    promised: dict[str, Dims]
    sizes: dict[str, tuple[int | tuple[str, int] | None, ...]]

    @property
    def key(self) -> bytes:
        """What tells distinct sites apart: equal keys, equal sites."""
        sides = (self.before, self.after)
        parts = [side.SerializeToString(deterministic=True) for side in sides]
        return b"\0".join([*parts, repr(sorted(self.sizes.items())).encode()])


class PairMaker:
    """Makes the pairs of one conversion's sites."""

    def __init__(self, conversion: Conversion) -> None:
        """Prepare; the conversion must not have been applied."""
        self._conversion = conversion
        self._facts = conversion.facts
        self._reads: dict[int, set[str]] = {}

    def signature(self, site: Site) -> tuple[Any, ...]:
        """A cheap key: sites with equal ones are alike; alike ones may have different ones."""
        node, scope = site.node, site.scope
        if site.mould is not None:
            # No value was asked about, so none makes a difference to what is checked.
            return (id(site.mould), *[self._facts.type(scope, name) for name in node.input[:]])
        tokens: dict[str, Any] = {"": ""}
        for name in node.input:
            if name not in tokens:
                tokens[name] = (len(tokens), self._told(site, name))
        for name in node.output:
            tokens.setdefault(name, len(tokens))
        own = self._conversion.constants(scope)
        parts: list[Any] = [scope.opset, id(scope.function), _described(node, tokens)]
        for item in site.result:
            for name in item.input:
                if name not in tokens:
                    held = own.arrays.get(name)
                    tokens[name] = (
                        (len(tokens), name)
                        if held is None
                        else (len(tokens), held[1], held[0].shape, held[0].tobytes())
                    )
            for name in item.output:
                tokens.setdefault(name, len(tokens))
            parts.append(_described(item, tokens))
        parts += [tensor.SerializeToString() for tensor in site.initializers]
        return tuple(parts)

    def _told(self, site: Site, name: str) -> Any:
        """What is known of an input: its type, and its value where that is small."""
        known = self._facts.type(site.scope, name)
        array = self._facts.constant(site.scope, name)
        if array is None:
            return (known, self._sizes(site, name, site.node.input))
        if array.dtype == object or array.size > _INTEGERS:
            return (known, name)
        return (known, array.tobytes())

    def pair(self, site: Site, *, full: bool = False) -> Pair:
        """A site's models.

        Args:
            site: one of the conversion's, without a blocker.
            full: whether dimensions stay as large as they are.

        Raises:
            UncheckableError: it cannot be run on its own.
        """
        scope, node = site.scope, site.node
        if self._is_random(site):
            raise UncheckableError("its results are random")
        if any(True for _ in subgraphs(node)):
            raise UncheckableError("it has subgraphs of its own; their nodes are checked each")
        if any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors(node)):
            raise UncheckableError("its tensor is large, or external data, which is not read")
        if any(tensor.name not in node.output for tensor in site.initializers):
            raise UncheckableError("its large constant is not read")
        before = [self._bound(site, node)]
        after = [self._bound(site, item) for item in site.result]
        renamed = _Renaming()
        given = list(dict.fromkeys(name for name in node.input if name))
        constants = self._constants(site, after, given)
        for name in given:
            renamed.add(name, "i")
        for name in node.output:
            renamed.add(name, "o")
        for name in constants:
            renamed.add(name, "c")
        for name in (*_made(after), *(tensor.name for tensor in site.initializers)):
            renamed.add(name, "t")
        drawn = [name for name in given if name not in constants]
        types = self._types(site, drawn, constants, [*before, *after], full)
        inputs = [helper.make_value_info(renamed[name], proto) for name, proto in types.items()]
        replaced = {tensor.name for tensor in site.initializers}
        given_after = replaced.union(*(item.output for item in after))
        # An output that nobody reads may go; of others, the pair shows that they are missing.
        outputs = [
            name
            for name in node.output
            if name and (name in given_after or name in self._read(scope))
        ]
        opset = scope.opset
        assert opset is not None
        sides = []
        for nodes, version in ((before, opset), (after, self._conversion.target)):
            read = set(reads(nodes))
            initializers = [
                numpy_helper.from_array(array, renamed[name])
                for name, array in constants.items()
                if name in read
            ]
            if nodes is after:
                initializers += [_renamed_tensor(t, renamed[t.name]) for t in site.initializers]
            sides.append(
                self._model(
                    [renamed.node(item, index) for index, item in enumerate(nodes)],
                    inputs,
                    [renamed[name] for name in outputs],
                    initializers,
                    version,
                )
            )
        moved = [item.op_type for item in after] == [node.op_type] or bool(replaced)
        shrunk = any(
            isinstance(dim, int) and dim not in _dims(types[name])
            for name in types
            for dim in self._known_dims(site, name) or ()
        )
        full = full or not shrunk
        promised = {
            renamed[name]: dims
            for name in (outputs if full else ())
            if (dims := self._known_dims(site, name)) is not None
        }
        sizes = {
            renamed[name]: tuple(
                (renamed[item[0]], item[1]) if isinstance(item, tuple) else item for item in found
            )
            for name in drawn
            if (found := self._sizes(site, name, drawn)) is not None
        }
        return Pair(sides[0], sides[1], moved, full, promised, sizes)

    def _sizes(
        self, site: Site, name: str, drawn: Sequence[str]
    ) -> tuple[int | tuple[str, int] | None, ...] | None:
        """What is known of the elements of a list of integers that is computed."""
        known = self._facts.type(site.scope, name)
        if known is None or known.elem_type != TensorProto.INT64 or known.rank != 1:
            return None
        found: list[int | tuple[str, int] | None] = list(
            self._facts.elements(site.scope, name) or ()
        )
        for data in drawn:
            for axis, kept in enumerate(self._facts.kept_dims(site.scope, name, data)):
                if kept:
                    found[axis] = (data, axis)
        return tuple(found) if any(item is not None for item in found) else None

    def _is_random(self, site: Site) -> bool:
        """Whether the node, or what replaces it, may draw random numbers."""
        arrays = {name: self._facts.constant(site.scope, name) for name in site.node.input if name}
        off = [name for name, array in arrays.items() if array is not None and not array.any()]
        target = self._conversion.target
        return is_random(site.node, site.scope.opset, off) or any(
            is_random(node, target, off) for node in site.result
        )

    def _read(self, scope: Scope) -> set[str]:
        """Every name that is read in a scope's tree, or is an output of one of its graphs."""
        root = scope.root
        if id(root) not in self._reads:
            tree = [item for item in self._conversion.scopes if item.root is root]
            names = (item.outputs.union(*(node.input for node in item.nodes)) for item in tree)
            self._reads[id(root)] = set().union(*names)
        return self._reads[id(root)]

    def _known_dims(self, site: Site, name: str) -> Dims | None:
        known = self._facts.type(site.scope, name)
        return None if known is None else known.dims

    def _bound(self, site: Site, node: NodeProto) -> NodeProto:
        """A copy of a node without its texts, its attribute references resolved."""
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.doc_string = ""
        del copy.metadata_props[:]
        values = {}
        for attribute in _references(copy):
            value = self._facts.calls.resolve_attribute(site.scope, attribute)
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

    def _constants(self, site: Site, after: list[NodeProto], given: list[str]) -> dict[str, Array]:
        """The values that both models hold by name, and that are not drawn."""
        found: dict[str, Array] = {}
        own = self._conversion.constants(site.scope)
        read_after = set(reads(after))
        made = set(_made(after)) | {name for name in site.node.output if name}
        for name in given:
            array = self._facts.constant(site.scope, name)
            if array is not None and (
                array.size <= _SMALL
                or (array.dtype.kind in "biuO" and array.size <= _INTEGERS)
                or name not in read_after
            ):
                found[name] = array
        for name in sorted(read_after - {*given} - made):
            if name in own.arrays:
                found[name] = own.arrays[name][0]
            elif name in own.references:
                value = self._facts.calls.resolve_attribute(site.scope, own.references[name])
                if value is UNKNOWN or value is None:
                    raise UncheckableError("what it reads is set by the function's callers")
                found[name] = np.array(value, np.int64)
            else:
                array = self._facts.constant(site.scope, name)
                if array is None:
                    raise UncheckableError(
                        f"what replaces it reads {name!r}, which it did not read itself"
                    )
                found[name] = array
        return found

    def _types(
        self,
        site: Site,
        drawn: list[str],
        constants: dict[str, Array],
        nodes: list[NodeProto],
        full: bool,
    ) -> dict[str, TypeProto]:
        known: dict[str, ValueType] = {}
        for name in drawn:
            found = self._facts.type(site.scope, name)
            if found is None:
                raise UncheckableError(f"the type of {name!r} is not known")
            known[name] = found
        sizes = _Sizes(_numbers(nodes, constants.values()), full)
        return {
            name: _proto(found, None if found.dims is None else [sizes(dim) for dim in found.dims])
            for name, found in known.items()
        }

    def _model(
        self,
        nodes: list[NodeProto],
        inputs: list[Any],
        outputs: list[str],
        tensors: list[TensorProto],
        opset: int,
    ) -> ModelProto:
        graph = helper.make_graph(nodes, "site", inputs, [], tensors)
        for name in outputs:
            graph.output.add().name = name
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", opset)],
            ir_version=max(4, ir_version.least_for_opset(opset)),
        )
        for entry in self._conversion.model.opset_import:
            if entry.domain and entry.domain != "ai.onnx":
                model.opset_import.add().CopyFrom(entry)
        return model


def _described(node: NodeProto, tokens: dict[str, Any]) -> tuple[Any, ...]:
    return (
        node.domain,
        node.op_type,
        tuple(attribute.SerializeToString() for attribute in node.attribute),
        tuple(tokens[name] for name in node.input),
        tuple(tokens[name] if isinstance(tokens[name], int) else name for name in node.output),
    )


class _Renaming:
    """Names that do not depend on the model, so that equal sites become equal models."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {"": ""}
        self._counts: dict[str, int] = {}

    def add(self, name: str, prefix: str) -> None:
        if name not in self._names:
            count = self._counts[prefix] = self._counts.get(prefix, 0) + 1
            self._names[name] = f"{prefix}{count}"

    def __getitem__(self, name: str) -> str:
        return self._names[name]

    def node(self, node: NodeProto, index: int) -> NodeProto:
        """A renamed copy; in its subgraphs too."""
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.name = f"n{index}"
        waiting = [copy]
        while waiting:
            item = waiting.pop()
            for names in (item.input, item.output):
                names[:] = [self._names.get(name, name) for name in names]
            for _, graph in subgraphs(item):
                waiting += graph.node
                for values in (graph.input, graph.output, graph.value_info):
                    for value in values:
                        value.name = self._names.get(value.name, value.name)
                for tensor in graph.initializer:
                    tensor.name = self._names.get(tensor.name, tensor.name)
                for number, inner in enumerate(graph.node):
                    inner.name = f"{copy.name}_{number}"
                graph.name = "g"
        return copy


class _Sizes:
    """Makes dimensions small, equal ones alike, those that the nodes mention left alone."""

    def __init__(self, mentioned: set[int], full: bool) -> None:
        self._mentioned = mentioned
        self._full = full
        self._chosen: dict[int, int] = {}
        self._symbols: dict[str, str] = {}

    def __call__(self, dim: int | str | None) -> int | str | None:
        if isinstance(dim, str):
            return self._symbols.setdefault(dim, f"d{len(self._symbols)}")
        if dim is None:
            return None
        if self._full or dim <= 8 or dim in self._mentioned:
            return dim
        if dim not in self._chosen:
            taken = {*self._chosen.values(), *self._mentioned}
            self._chosen[dim] = next(n for n in (5, 6, 7, *range(8, 2048)) if n not in taken)
        return self._chosen[dim]


def _proto(found: ValueType, dims: list[int | str | None] | None) -> TypeProto:
    if found.elem_type:
        return helper.make_tensor_type_proto(found.elem_type, dims)
    for prefix in ("seq", "optional"):
        head = f"{prefix}(tensor("
        if found.kind.startswith(head):
            name = found.kind[len(head) : -2]
            inner = helper.make_tensor_type_proto(TensorProto.DataType.Value(name.upper()), None)
            make = {
                "seq": helper.make_sequence_type_proto,
                "optional": helper.make_optional_type_proto,
            }[prefix]
            result: TypeProto = make(inner)
            return result
    raise UncheckableError(f"values of type {found.kind} cannot be drawn")


def _dims(proto: TypeProto) -> list[int]:
    return [dim.dim_value for dim in proto.tensor_type.shape.dim if dim.HasField("dim_value")]


def _references(node: NodeProto) -> Iterator[Any]:
    waiting = [node]
    while waiting:
        item = waiting.pop()
        for attribute in item.attribute:
            if attribute.ref_attr_name:
                yield attribute
        waiting += [inner for _, graph in subgraphs(item) for inner in graph.node]


def _made(nodes: Iterable[NodeProto]) -> list[str]:
    """The names that nodes make, in order, those in their subgraphs too."""
    found: list[str] = []
    for node in nodes:
        found += [name for name in node.output if name]
        for _, graph in subgraphs(node):
            found += declared(graph)
            found += _made(graph.node)
    return found


def _numbers(nodes: list[NodeProto], arrays: Iterable[Array]) -> set[int]:
    """The integers that attributes and constants mention: a dimension may be among them."""
    found: set[int] = set()
    for node in nodes:
        for attribute in node.attribute:
            found.update((attribute.i, *attribute.ints))
            if attribute.HasField("t"):
                found |= _numbers([], [numpy_helper.to_array(attribute.t)])
        for _, graph in subgraphs(node):
            found |= _numbers(list(graph.node), ())
    for array in arrays:
        found.update(array.shape)
        if array.dtype.kind in "iu" and array.size <= _INTEGERS:
            found.update(int(number) for number in array.reshape(-1))
    return found


def _renamed_tensor(tensor: TensorProto, name: str) -> TensorProto:
    copy = TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy
