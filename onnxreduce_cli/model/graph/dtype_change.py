"""The change of a dtype to another throughout a model, except for the data of weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    numpy_helper,
)

from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import Scope, called_key, function_key, scopes
from onnxreduce_cli.model.graph.values import dtype_name, numpy_dtype
from onnxreduce_cli.text import NAME, printable

#: Attributes that hold the number of a dtype.
_DTYPES = frozenset(
    {
        "to",
        "dtype",
        "output_dtype",
        "output_datatype",
        "stash_type",
        "softmax_precision",
        "precision",
    }
)

#: Operators whose output is float by default, with the attribute that states its dtype.
_FLOATS = {
    "RandomNormal": "dtype",
    "RandomUniform": "dtype",
    "MelWeightMatrix": "output_datatype",
    "HannWindow": "output_datatype",
    "HammingWindow": "output_datatype",
    "BlackmanWindow": "output_datatype",
}


class DtypeChange:
    """Changes a dtype to another throughout a model, except for the data of tensors.

    Attributes:
        tensors: the tensors to change, whose dtype and data are still the old ones.
        edits: descriptions of the edits of each node, by its identity.
        fixed: by the identity of each scope, constants and other values that keep the old dtype.
        types: whether a type that the model states, or an attribute, changed.
    """

    def __init__(
        self,
        model: ModelProto,
        before: int,
        after: int,
        kept: Iterable[str],
        cast: Collection[str] = (),
        staying: Mapping[int, Collection[int]] | None = None,
        unchanged: Collection[int] = (),
        found: Sequence[Scope] | None = None,
        inside: Mapping[int, frozenset[str]] | None = None,
    ) -> None:
        """Edit a model, in place.

        Args:
            model: the model.
            before: the dtype to replace.
            after: the dtype to put in its place.
            kept: inputs and outputs of the main graph that keep their dtype.
            cast: the outputs among them that a Cast makes, which is left as it is.
            staying: the places of inputs that keep it, by the identity of the node.
            unchanged: the identities of nodes whose attributes keep it.
            found: the scopes of the model, where they are known.
            inside: other values that keep it, by the identity of their scope.
        """
        self._staying, self._unchanged = staying or {}, frozenset(unchanged)
        self._cast = frozenset(cast)
        self._before, self._after = before, after
        self._parameters = _parameters(model)
        self._keys = {function_key(function): function for function in model.functions}
        self.tensors: list[TensorProto] = []
        self.edits: dict[int, list[str]] = {}
        self.types = False
        names = frozenset(kept)
        found = found or scopes(model)
        others = inside or {}
        fixed = self.fixed = {
            owner: names_ | others.get(owner, frozenset())
            for owner, names_ in self._fixed(found, names).items()
        }
        for scope in found:
            own = fixed.get(id(scope), frozenset())
            self._change_scope(scope, names if scope is found[0] else frozenset(), own)

    def _fixed(self, found: Sequence[Scope], kept: frozenset[str]) -> dict[int, frozenset[str]]:
        """Return, by scope, constants that only inputs read which do not take the new dtype.

        Inputs and outputs of the main graph that keep the old dtype count as such inputs.
        """
        old, new = (f"tensor({dtype_name(item)})" for item in (self._before, self._after))
        wanted, others = defaultdict[int, set[str]](set), defaultdict[int, set[str]](set)
        wanted[id(found[0])].update(kept)
        for scope in found:
            for name in scope.outputs:
                if scope is not found[0] or name not in kept:
                    others[id(scope.resolve(name))].add(name)
            for node in scope.nodes:
                known = is_default(node.domain) and schemas.exists(node.op_type, scope.opset or 0)
                allowed = schemas.allowed_types(node.op_type, scope.opset or 0) if known else {}
                staying = self._staying.get(id(node), ())
                for index, name in enumerate(node.input):
                    takes = allowed.get(f"in{index}", ())
                    stays = index in staying or (old in takes and new not in takes)
                    read = wanted if stays else others
                    read[id(scope.resolve(name))].add(name)
        return {
            id(scope): frozenset((wanted[id(scope)] & _constants(scope)) - others[id(scope)])
            for scope in found
        }

    def _change_scope(self, scope: Scope, kept: frozenset[str], fixed: frozenset[str]) -> None:
        """Change the values and nodes of a scope, except for values that keep their dtype.

        Args:
            scope: the scope.
            kept: inputs and outputs that keep it. A constant that is an output may change.
            fixed: constants and other values that keep it.
        """
        container = scope.container
        infos = [*container.value_info]
        if isinstance(container, GraphProto):
            infos += [*container.input, *container.output]
            given = kept.intersection(scope.inputs)
            sparse = [item.values for item in container.sparse_initializer]
            for tensor in (*container.initializer, *sparse):
                if tensor.name not in fixed and tensor.name not in given:
                    self._change_tensor(tensor)
        for info in infos:
            if info.name not in kept and info.name not in fixed:
                self._change_type(info.type)
        if isinstance(container, FunctionProto):
            named = self._parameters[function_key(container)]
            for attribute in container.attribute_proto:
                self._change_attribute(attribute, attribute.name in named)
        for node in container.node:
            is_fixed = node.op_type == "Constant" and fixed.intersection(node.output)
            is_last = node.op_type == "Cast" and kept and self._cast.intersection(node.output)
            if not is_fixed and not is_last and id(node) not in self._unchanged:
                self._change_node(node)

    def _change_type(self, proto: TypeProto) -> None:
        """Change the dtype in a type, but not in a map: operators name those of its values."""
        kind = proto.WhichOneof("value")
        while kind in ("sequence_type", "optional_type"):
            proto = getattr(proto, kind).elem_type
            kind = proto.WhichOneof("value")
        if kind in ("tensor_type", "sparse_tensor_type"):
            tensor = getattr(proto, kind)
            if tensor.elem_type == self._before:
                tensor.elem_type = self._after
                self.types = True

    def _change_tensor(self, tensor: TensorProto) -> bool:
        if tensor.data_type == self._before:
            self.tensors.append(tensor)
        return tensor.data_type == self._before

    def _change_node(self, node: NodeProto) -> None:
        function = self._keys.get(called_key(node))
        named: Iterable[str] = _DTYPES
        if function is not None:
            named = self._parameters[function_key(function)]
        elif self._before == TensorProto.INT64 and not is_default(node.domain):
            return  # What its attributes mean is not known.
        elif self._before == TensorProto.FLOAT and is_default(node.domain):
            self._state_float(node)
        elif self._before == TensorProto.INT64:
            _state_integers(node)
        edits = [
            changes
            for attribute in node.attribute
            for changes in self._change_attribute(attribute, attribute.name in named)
        ]
        if edits:
            self.edits[id(node)] = edits
            self.types = True

    def _change_attribute(self, attribute: AttributeProto, is_dtype: bool) -> list[str]:
        """Change an attribute's value; return a description of the change, if any."""
        name = attribute.name
        if attribute.type == AttributeProto.INT and is_dtype and attribute.i == self._before:
            attribute.i = self._after
            return [f"{name} {self._before} → {self._after}"]
        if attribute.type == AttributeProto.STRING and is_dtype:
            old = dtype_name(self._before).upper().encode()
            if attribute.s == old:  # As in Cast before opset 6.
                attribute.s = dtype_name(self._after).upper().encode()
                return [f'{name} "{old.decode()}" → "{attribute.s.decode()}"']
        for proto in (attribute.tp, *attribute.type_protos):
            self._change_type(proto)
        held = [attribute.t] if attribute.HasField("t") else []
        sparse = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
        held += [item.values for item in (*sparse, *attribute.sparse_tensors)]
        found = [self._change_tensor(tensor) for tensor in (*held, *attribute.tensors)]
        return [f"{name} rewritten"] if any(found) else []

    def _state_float(self, node: NodeProto) -> None:
        """Add the attribute that states a node's dtype, where it is float by default."""
        given = {item.name: item for item in node.attribute}
        if node.op_type in _FLOATS and _FLOATS[node.op_type] not in given:
            node.attribute.add(
                name=_FLOATS[node.op_type], type=AttributeProto.INT, i=TensorProto.FLOAT
            )
        values: Any = None
        if node.op_type == "ConstantOfShape" and "value" not in given:
            values = np.zeros(1, np.float32)
        elif node.op_type == "Constant" and "value_float" in given:
            values = np.float32(given["value_float"].f)
        elif node.op_type == "Constant" and "value_floats" in given:
            values = np.array(given["value_floats"].floats, np.float32)
        if values is not None and not any(item.ref_attr_name for item in node.attribute):
            del node.attribute[:]
            tensor = numpy_helper.from_array(np.asarray(values))
            node.attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(tensor)


def _state_integers(node: NodeProto) -> None:
    """Hold the integers of a Constant in a tensor, which has a dtype that can change."""
    for attribute in node.attribute if node.op_type == "Constant" else ():
        if attribute.name in ("value_int", "value_ints") and not attribute.ref_attr_name:
            single = attribute.name == "value_int"
            array = np.array(attribute.i if single else attribute.ints, np.int64)
            del node.attribute[:]
            tensor = numpy_helper.from_array(array)
            node.attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(tensor)
            return


def _constants(scope: Scope) -> set[str]:
    """Return the names of a scope's constants and initializers."""
    made = (node.output[0] for node in scope.nodes if node.op_type == "Constant" and node.output)
    return {*scope.initializers, *made}


def _parameters(model: ModelProto) -> Mapping[Any, set[str]]:
    """Return the attributes of each function that hold the number of a dtype."""
    found: dict[Any, set[str]] = {function_key(function): set() for function in model.functions}
    trees = [scope for scope in scopes(model) if scope.function is not None]
    changed = True
    while changed:
        changed = False
        for scope in trees:
            assert scope.function is not None
            own = found[function_key(scope.function)]
            for name in _referred(scope, found):
                changed |= name not in own
                own.add(name)
    return found


def _referred(scope: Scope, found: Mapping[Any, set[str]]) -> Iterator[str]:
    for node in scope.nodes:
        named = found.get(called_key(node), _DTYPES)
        for attribute in node.attribute:
            if attribute.ref_attr_name and attribute.name in named:
                yield attribute.ref_attr_name


def keep_option(nodes: Iterable[tuple[str, str]]) -> str:
    """Return what to type so that nodes keep their dtypes.

    Nodes without a name, or whose name cannot stand in a list, are named by their operator; all are
    where their names would fill more than a line.

    Args:
        nodes: the name and the operator of each.
    """
    pairs = list(dict.fromkeys(nodes))
    names = [
        name if name and name == printable(name).strip() and not set(name) & set(",'") else op_type
        for name, op_type in pairs
    ]
    text = ",".join(dict.fromkeys(names))
    if len(text) > NAME:
        text = ",".join(dict.fromkeys(op_type for _, op_type in pairs))
    return f"--keep-dtype '{text}'"


def recoding(before: int, after: int) -> Any:
    """Return a function that converts the bytes of one dtype to those of another.

    The nearest integer stands for those beyond the new dtype.
    """
    source, target = numpy_dtype(before), numpy_dtype(after)

    def recode(data: bytes) -> bytes:
        values = np.frombuffer(data, source)
        if target.kind == "i":
            values = np.clip(values, np.iinfo(target).min, np.iinfo(target).max)
        with np.errstate(all="ignore"):
            return values.astype(target).tobytes()

    return recode
