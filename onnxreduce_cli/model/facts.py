"""Facts about values, looked up when a step asks for them and computed once."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    numpy_helper,
)

from onnxreduce_cli import schemas
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model import attributes, folding, stand_ins
from onnxreduce_cli.model.domains import DEFAULT_DOMAINS, is_default
from onnxreduce_cli.model.edit import put_in_order
from onnxreduce_cli.model.folding import Folded
from onnxreduce_cli.model.scope import Scope, by_root, scopes, subgraphs
from onnxreduce_cli.model.skeleton import call_skeleton, model_skeleton
from onnxreduce_cli.model.unification import Unification
from onnxreduce_cli.model.values import (
    Dims,
    ValueType,
    common,
    dtype_name,
    elem_type_of,
    from_proto,
    merge,
    numpy_dtype,
    tensor_type,
)

Array = npt.NDArray[Any]
FunctionKey = tuple[str, str, str]

#: A node that calls a model-local function, with the scope it stands in.
Call = tuple[Scope, NodeProto]

#: What a graph says of values, by name.
_Infos = defaultdict[str, list[ValueInfoProto]]

#: Chains of Identity and other folded operators are followed this far.
_DEPTH = 64


class Unknown:
    """The value of an attribute reference that calls set differently, or that no call sets."""


UNKNOWN = Unknown()


#: Operators of which the result may be known before the run.
_FOLDED = folding.OPERATORS | {"Constant", "Shape", "Size"}

#: Operators whose output's shape follows from the values of inputs.
_SHAPED_BY_VALUES = frozenset(
    {"ConstantOfShape", "Expand", "Pad", "Reshape", "Resize", "Slice", "Tile", "Upsample"}
)


class Facts:
    """Types, constants and attribute values of one model, by scope and name.

    Everything is read from the model as it was given; values that steps generate are registered
    with `declare` and `define`. Shape inference runs at most once over the model, without its
    large tensors, and once for each call of a function whose types are asked for.
    """

    def __init__(self, model: ModelProto, found: list[Scope], base_dir: str = "") -> None:
        """Prepare for `model`, whose scopes are `found`; nothing is computed yet.

        Args:
            model: the model, which must not change while the facts are in use.
            found: `scopes(model)`.
            base_dir: the folder that external data is relative to.
        """
        self._model = model
        self._scopes = list(found)
        self._trees = by_root(found)
        self._holders: dict[int, Scope] = {}
        self._base_dir = base_dir
        self._declared: dict[int, dict[str, ValueType]] = {}
        self._inferred: dict[int, dict[str, ValueType]] = {}
        self._inferred_roots: set[int] = set()
        self._folded: dict[tuple[int, str], Folded | None] = {}
        self._generated: dict[tuple[int, str], tuple[NodeProto, int, Scope]] = {}
        self._generated_types: dict[tuple[int, str], ValueType | None] = {}
        self._generated_constants: dict[tuple[int, str], Array] = {}
        self._marks: dict[tuple[int, str, int], int] = {}
        self._unification: Unification | None = None
        self._generated_folded: dict[tuple[int, str], Folded | None] = {}
        self._unread: dict[int, frozenset[str]] = {}
        self._calls: defaultdict[int, list[Call]] | None = None
        self._directed: dict[int, FunctionProto] = {}
        self.functions: dict[FunctionKey, FunctionProto] = {
            (function.domain, function.name, function.overload): function
            for function in model.functions
        }

    def anew(self) -> Facts:
        """The same facts about the model, without what was generated: for another conversion."""
        other = copy.copy(self)
        other._generated = {}
        other._generated_types = {}
        other._generated_constants = {}
        return other

    def without_functions(self) -> Facts:
        """Facts of the model's graphs alone, to which functions' scopes are added one by one."""
        graphs = [scope for scope in self._scopes if scope.function is None]
        other = Facts(self._model, graphs, self._base_dir)
        # What shape inference found there is the same, whichever copy of a function is called.
        other._inferred_roots = self._inferred_roots & {id(scope) for scope in graphs}
        other._inferred = {
            id(scope): self._inferred[id(scope)] for scope in graphs if id(scope) in self._inferred
        }
        return other

    def inner(self, graph: GraphProto) -> Scope | None:
        """The scope of one of the model's own subgraphs."""
        if not self._holders:
            self._holders = {id(scope.container): scope for scope in self._scopes}
        return self._holders.get(id(graph))

    # Types

    def type(self, scope: Scope, name: str) -> ValueType | None:
        """What is known of a value's type where `scope` reads it; None if nothing is."""
        if not name:
            return None
        key = (id(scope.root), name)
        if key in self._generated_types:
            return self._generated_types[key]
        if key in self._generated:
            self._generated_types[key] = self._infer_generated(key)
            return self._generated_types[key]
        owner = scope.resolve(name)
        if owner is None:
            return None
        declared = self._declarations(owner).get(name)
        if declared is not None and (
            not declared.elem_type
            or (declared.dims is not None and all(isinstance(d, int) for d in declared.dims))
        ):
            return declared
        return merge(declared, self._inference(owner).get(name)) or self._unify(owner, name)

    def elem_type(self, scope: Scope, name: str) -> int | None:
        """A dense tensor's `TensorProto.DataType`, if known."""
        kind = self.kind(scope, name)
        return None if kind is None else elem_type_of(kind)

    def kind(self, scope: Scope, name: str) -> str | None:
        """The value's type as schemas spell it; cheaper than `type`, as shapes are not needed."""
        key = (id(scope.root), name)
        owner = None if key in self._generated else scope.resolve(name)
        if owner is not None:
            known = self._declarations(owner).get(name)
            if known is None and key not in self._generated_types:
                known = self._inference(owner).get(name)
            if known is not None:
                return known.kind
        found = self.type(scope, name)
        return found.kind if found is not None else None

    def declare(self, scope: Scope, node: NodeProto, opset: int, names: Iterable[str]) -> None:
        """Make known that a generated node, read at `opset`, gives the named values."""
        for name in names:
            if name:
                self._generated[id(scope.root), name] = (node, opset, scope)

    def declare_type(self, scope: Scope, name: str, value_type: ValueType | None) -> None:
        """Make a generated value's type known outright."""
        self._generated_types[id(scope.root), name] = value_type

    def define(self, scope: Scope, name: str, array: Array, elem_type: int) -> None:
        """Make a generated constant known."""
        self._generated_constants[id(scope.root), name] = array
        self.declare_type(scope, name, tensor_type(elem_type, array.shape))

    def _declarations(self, scope: Scope) -> dict[str, ValueType]:
        found = self._declared.get(id(scope))
        if found is None:
            found = self._declared[id(scope)] = declarations(scope)
        return found

    def _inference(self, scope: Scope) -> dict[str, ValueType]:
        root = scope.root
        if id(root) not in self._inferred_roots:
            self._inferred_roots.add(id(root))
            if isinstance(root.container, FunctionProto):
                self._infer_function(root)
            else:
                self._infer_model()
        return self._inferred.get(id(scope), {})

    def allowed_kinds(self, scope: Scope, name: str) -> frozenset[str] | None:
        """The types that a value of unknown type may have, by what the schemas around it demand."""
        owner = scope.resolve(name)
        return None if owner is None else self._unified().allowed(owner, name)

    def _unified(self) -> Unification:
        if self._unification is None:
            self._unification = Unification(self._scopes, self._imports(), self._inferred_kind)
        return self._unification

    def _unify(self, owner: Scope, name: str) -> ValueType | None:
        kind = self._unified().kind(owner, name)
        if kind is None:
            return None
        elem_type = elem_type_of(kind)
        return ValueType(kind, elem_type or 0, None)

    def _imports(self) -> dict[int, dict[str, int]]:
        """The opset of each domain, by the identity of the root scope that imports it."""
        found = {}
        for scope in self._scopes:
            if scope.parent is None:
                function = scope.function
                owner = self._model if function is None else function
                found[id(scope)] = {
                    "" if is_default(entry.domain) else entry.domain: entry.version
                    for entry in owner.opset_import
                }
        return found

    def _inferred_kind(self, owner: Scope, name: str) -> str | None:
        found = self._declarations(owner).get(name) or self._inference(owner).get(name)
        return None if found is None else found.kind

    def _infer_model(self) -> None:
        skeleton = model_skeleton(self._model)
        if any(scope.misplaced is not None for scope in self._scopes):
            # Shape inference takes nodes in the order in which they stand.
            for _, twin in list(_twins(self._scopes, skeleton)):
                put_in_order(twin)
        self._infer_from(skeleton)
        if self._inferred and self._state_constants(skeleton):
            self._infer_from(skeleton)
            self._folded.clear()

    def _state_constants(self, skeleton: ModelProto) -> bool:
        """Write computed constants that decide an unknown shape into a skeleton; whether any was.

        Exporters compute the pads of a Pad, say, by operators that shape inference cannot follow.
        """
        found = False
        places = {id(scope): _open_places(scope) for scope in self._scopes}
        if not any(places.values()):
            return False
        for scope, twin in _twins(self._scopes, skeleton):
            if not isinstance(twin.container, GraphProto):
                continue
            stated = _by_name(twin.container)
            for place in places[id(scope)]:
                node, copied = scope.nodes[place], twin.nodes[place]
                found = self._state_shapes(scope, node, twin.container, stated) or found
                if node.op_type not in _SHAPED_BY_VALUES or self._shape_is_known(scope, node):
                    continue
                for index, name in enumerate(node.input):
                    computed = name in scope.producers
                    array = self.constant(scope, name) if computed else None
                    if array is not None:
                        tensor = numpy_helper.from_array(array, f"{name}/constant")
                        twin.container.initializer.append(tensor)
                        copied.input[index] = tensor.name
                        found = True
        # Before IR version 4 shape inference wants initializers among a graph's inputs.
        skeleton.ir_version = max(skeleton.ir_version, 4)
        return found

    def _state_shapes(
        self, scope: Scope, node: NodeProto, graph: GraphProto, stated: _Infos
    ) -> bool:
        """Write what is certain of a node's unknown shapes into a copy of its graph.

        Args:
            scope: the node's.
            node: one of the model's.
            graph: the copy.
            stated: what the copy says of values by name.
        """
        found = False
        for name, dims in zip(node.output, self._certain_dims(scope, node), strict=False):
            known = self.type(scope, name)
            if known is None or not known.elem_type or known.dims is not None or dims is None:
                continue
            info = onnx.helper.make_tensor_value_info(name, known.elem_type, dims)
            for entry in stated[name]:
                entry.CopyFrom(info)
            if not stated[name]:
                graph.value_info.append(info)
                stated[name].append(graph.value_info[-1])
            found = True
        return found

    def _certain_dims(self, scope: Scope, node: NodeProto) -> list[list[int | None] | None]:
        """For each of a node's outputs what is certain of its shape beyond shape inference."""
        if self.function_of(node) is not None:
            return []
        if not is_default(node.domain):
            first = self.type(scope, node.input[0]) if node.input else None
            found = stand_ins.ranks(node, None if first is None else first.rank)
            return [[None] * rank for rank in found]
        if node.op_type == "ConstantOfShape":
            sizes = self.elements(scope, node.input[0])
        elif node.op_type == "Reshape" and len(node.input) > 1:
            sizes = self.elements(scope, node.input[1])
        else:
            return []
        # Zero may stand for a size of the data, and -1 for what is left.
        return [None if sizes is None else [size if size and size > 0 else None for size in sizes]]

    def _shape_is_known(self, scope: Scope, node: NodeProto) -> bool:
        known = self._inferred[id(scope)].get(node.output[0])
        if known is None or known.dims is None:
            return False
        return all(isinstance(dim, int) for dim in known.dims)

    def _infer_from(self, skeleton: ModelProto) -> None:
        inferred = self._infer_shapes(skeleton)
        if inferred is None:
            return
        # Same structure as the model's own, so scopes correspond one to one.
        for scope, other in _twins(self._scopes, inferred):
            self._inferred[id(scope)] = declarations(other)

    def _infer_shapes(self, skeleton: ModelProto) -> ModelProto | None:
        if self._ends_inference:
            return None
        try:
            return onnx.shape_inference.infer_shapes(skeleton, data_prop=True)
        except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError):
            return None  # A model that onnx cannot type: what it declares is all there is.

    @cached_property
    def _ends_inference(self) -> bool:
        """Whether onnx would end the process: on a Split into fewer parts than outputs."""
        for scope in self._scopes:
            if "Split" not in scope.op_types:
                continue
            for node in scope.nodes:
                number = attributes.find(node, "num_outputs") if node.op_type == "Split" else None
                if number is not None and number.i != len(node.output):
                    return True
        return False

    def _infer_function(self, root: Scope) -> None:
        function = root.container
        assert isinstance(function, FunctionProto)
        tree = self._trees[id(root)]
        called = self._called_from(tree)
        accounts: list[list[dict[str, ValueType]]] = []
        for caller, call in self.calls(function):
            types = [self.type(caller, name) for name in call.input]
            bound = self._bound(function, caller, call)
            skeleton = call_skeleton(self._model, function, called, types, bound)
            inferred = self._infer_shapes(skeleton)
            found = [] if inferred is None else [declarations(s) for s in scopes(inferred)]
            accounts.append(found[: len(tree)] or [{} for _ in tree])
        for index, scope in enumerate(tree):
            names = {name for account in accounts for name in account[index]}
            joined = {name: common([a[index].get(name) for a in accounts]) for name in names}
            self._inferred[id(scope)] = {n: t for n, t in joined.items() if t is not None}

    def _infer_generated(self, key: tuple[int, str]) -> ValueType | None:
        node, opset, scope = self._generated[key]
        if not is_default(node.domain):
            return None
        if node.op_type == "If":
            # Its branches read values around them, of which the inference of one node knows none.
            place = list(node.output).index(key[1])
            graphs = [item.g for item in node.attribute if item.HasField("g")]
            return common([self._type_within(scope, opset, graph, place) for graph in graphs])
        return self._infer_node(key) or self._bound_type(key)

    def _type_within(
        self, scope: Scope, opset: int, graph: GraphProto, place: int
    ) -> ValueType | None:
        """The type of what a generated node's graph gives."""
        name = graph.output[place].name
        own = next((inner for inner in self._scopes if name in inner.producers), None)
        if own is not None:
            return self.type(own, name)
        inner = Scope(graph, scope, opset, "", subgraph=True)
        if (id(scope.root), name) not in self._generated:
            for node in inner.nodes:
                self.declare(inner, node, opset, node.output)
        return self.type(inner, name)

    def _bound_type(self, key: tuple[int, str]) -> ValueType | None:
        """The type that a generated node's output shares with an input, or that a Cast names."""
        node, opset, scope = self._generated[key]
        if node.op_type == "Cast" and opset < 6:
            known = self.type(scope, node.input[0])
            to = attributes.find(node, "to")
            number = TensorProto.DataType.Value(to.s.decode()) if to is not None else 0
            return tensor_type(number, None if known is None else known.dims)
        schema = schemas.schema(node.op_type, opset)
        place = min(list(node.output).index(key[1]), len(schema.outputs) - 1)
        spelled = schema.outputs[place].type_str
        for index, name in enumerate(node.input):
            formal = schema.inputs[min(index, len(schema.inputs) - 1)]
            if formal.type_str == spelled and formal.is_homogeneous:
                kind = self.kind(scope, name) if name else None
                if kind is not None:
                    return ValueType(kind, elem_type_of(kind) or 0, None)
        return None

    def _infer_node(self, key: tuple[int, str]) -> ValueType | None:
        node, opset, scope = self._generated[key]
        types, constants = {}, {}
        for name in node.input:
            known = self.type(scope, name)
            if known is None or not known.elem_type:
                types[name] = TypeProto()
                continue
            types[name] = known.to_proto()
            array = self.constant(scope, name)
            if array is not None:
                constants[name] = numpy_helper.from_array(array, name)
        if any(name and name not in types for name in node.input):
            return None  # The inference wants every input's type.
        if node.op_type == "Scan" and opset < 9:
            return None  # It looks into the body, which onnx 1.19 cannot do there, and dies.
        try:
            outputs = onnx.shape_inference.infer_node_outputs(
                onnx.defs.get_schema(node.op_type, opset),
                node,
                types,
                constants,
                opset_imports=[onnx.helper.make_opsetid("", opset)],
                ir_version=self._model.ir_version,
            )
        except (
            onnx.shape_inference.InferenceError,
            onnx.defs.SchemaError,
            onnx.checker.ValidationError,
            ValueError,
        ):
            # It cannot be there with these types, or holds graphs deeper than onnx reads; whoever
            # needs the type says so.
            return None
        proto = outputs.get(key[1])
        return None if proto is None else from_proto(proto)

    # Constants

    def constant(self, scope: Scope, name: str) -> Array | None:
        """A value that is the same for every run: an array, or None where it is not known.

        Found through initializers, every form of Constant, outer scopes, Identity, and small
        computations on constants and known shapes. An initializer that is also a graph input is
        no constant: the caller may override it. In a function, an input that every call gives the
        same constant is one.
        """
        folded = self._fold(scope, name, _DEPTH)
        return None if folded is None else folded.constant

    def elements(self, scope: Scope, name: str) -> tuple[int | None, ...] | None:
        """The elements of a list of integers as far as they are known; None if not their number."""
        folded = self._fold(scope, name, _DEPTH)
        if folded is not None and folded.values.ndim == 1:
            pairs = zip(folded.values.tolist(), folded.known.tolist(), strict=True)
            return tuple(int(value) if known else None for value, known in pairs)
        known_type = self.type(scope, name)
        dims = None if known_type is None else known_type.dims
        if dims is None or len(dims) != 1 or not isinstance(dims[0], int):
            return None
        return (None,) * dims[0]

    def is_read(self, scope: Scope, name: str) -> bool:
        """Whether a node reads the value, or a graph around it gives it out.

        Of a value that no node of the model makes, it was made to be read.
        """
        root = scope.root
        if id(root) not in self._unread:
            tree = self._trees[id(root)]
            made = {value for item in tree for node in item.nodes for value in node.output}
            for item in tree:
                made.difference_update(item.outputs, *(node.input for node in item.nodes))
            self._unread[id(root)] = frozenset(made)
        return name not in self._unread[id(root)]

    def _fold(self, scope: Scope, name: str, depth: int) -> Folded | None:
        made = (id(scope.root), name)
        generated = self._generated_constants.get(made)
        if generated is not None:
            return Folded.whole(generated)
        if made in self._generated:
            if made not in self._generated_folded:
                node, opset, where = self._generated[made]
                found = self._fold_node(where, node, opset, depth - 1) if depth else None
                self._generated_folded[made] = found
            return self._generated_folded[made]
        owner = scope.resolve(name) if name and depth else None
        if owner is None:
            return None
        key = (id(owner), name)
        if key not in self._folded:
            self._folded[key] = self._fold_owned(owner, name, depth - 1)
        return self._folded[key]

    def _fold_owned(self, owner: Scope, name: str, depth: int) -> Folded | None:
        if name in owner.inputs:
            return self._fold_argument(owner, name, depth)
        tensor = owner.initializers.get(name)
        if tensor is not None:
            array = self._array(tensor)
            return None if array is None else Folded.whole(array)
        return self._fold_node(owner, owner.producers[name], owner.opset or 0, depth)

    def _fold_node(self, owner: Scope, node: NodeProto, opset: int, depth: int) -> Folded | None:
        if node.op_type not in _FOLDED or not is_default(node.domain):
            return None
        if self.function_of(node) is not None:
            return None
        # Looked at first: in the chains that models are, the first input tells it.
        if node.op_type in folding.STRICT and any(
            self._fold(owner, item, depth) is None for item in node.input
        ):
            return None
        values = {a.name: self.resolve_attribute(owner, a) for a in node.attribute}
        if any(isinstance(item, Unknown) for item in values.values()):
            return None
        if node.op_type == "Constant":
            array = self._constant_node(values)
            return None if array is None else Folded.whole(array)
        if node.op_type in ("Shape", "Size"):
            known = self.type(owner, node.input[0]) if node.input else None
            if known is None or known.dims is None:
                return None
            if node.op_type == "Shape":
                shape = self._marked_shape(owner, node.input[0], known.dims)
                part = slice(values.get("start", 0), values.get("end"))
                return Folded(shape.values[part], shape.known[part])
            sizes = folding.shape_of(known.dims).constant
            return None if sizes is None else Folded.whole(np.array(sizes.prod(), np.int64))
        if isinstance(values.get("value"), TensorProto):
            values["value"] = self._array(values["value"])
        inputs = [self._fold(owner, item, depth) for item in node.input]
        if node.op_type == "Concat" and any(item is not None for item in inputs):
            pairs = zip(inputs, node.input, strict=True)
            inputs = [item or self._list_of_unknown(owner, name) for item, name in pairs]
        return folding.fold(node.op_type, opset, values, inputs)

    def _marked_shape(self, owner: Scope, name: str, dims: Dims) -> Folded:
        """A value's shape, in which each unknown dimension is a number that stands for just it."""
        shape = folding.shape_of(dims)
        for axis in np.flatnonzero(~shape.known).tolist():
            key = (id(owner), name, axis)
            shape.values[axis] = self._marks.setdefault(key, -1 - len(self._marks))
        return shape

    def kept_dims(self, scope: Scope, sizes: str, data: str) -> tuple[bool, ...]:
        """For each of a list of sizes, whether it is what `data` has there, whatever that is.

        Only for those not known before the run; none where the list is not known at all.
        """
        folded, owner = self._fold(scope, sizes, _DEPTH), scope.resolve(data)
        if folded is None or folded.values.ndim != 1 or owner is None:
            return ()
        pairs = zip(folded.values.tolist(), folded.known.tolist(), strict=True)
        return tuple(
            not known and value == self._marks.get((id(owner), data, axis))
            for axis, (value, known) in enumerate(pairs)
        )

    def _list_of_unknown(self, owner: Scope, name: str) -> Folded | None:
        """A list of integers of which only the length is known; None if that is not."""
        known = self.type(owner, name)
        if known is None or known.elem_type != TensorProto.INT64 or known.rank != 1:
            return None
        length = known.dims[0] if known.dims else None
        if not isinstance(length, int) or length > folding.LIMIT:
            return None
        return Folded(np.zeros(length, np.int64), np.zeros(length, bool))

    def _fold_argument(self, owner: Scope, name: str, depth: int) -> Folded | None:
        function = owner.container
        if not isinstance(function, FunctionProto):
            return None
        position = list(function.input).index(name)
        found: list[Array] = []
        for caller, call in self.calls(function):
            given = call.input[position] if position < len(call.input) else ""
            folded = self._fold(caller, given, depth)
            if folded is None or folded.constant is None:
                return None
            found.append(folded.constant)
        same = found and all(_identical(item, found[0]) for item in found)
        return Folded.whole(found[0]) if same else None

    def _constant_node(self, values: dict[str, Any]) -> Array | None:
        for name, value in values.items():
            if name == "value":
                return self._array(value)
            if name == "sparse_value":
                return self._dense(value)
            if name in ("value_int", "value_ints"):
                return np.array(value, np.int64)
            if name in ("value_float", "value_floats"):
                return np.array(value, np.float32)
            if name in ("value_string", "value_strings"):
                return np.array(value, object)
        return None

    def _array(self, tensor: TensorProto) -> Array | None:
        if np.prod([float(dim) for dim in tensor.dims]) > folding.LIMIT:
            return None
        dtype_name(tensor.data_type)  # Raises where there is no such dtype.
        try:
            return numpy_helper.to_array(tensor, self._base_dir)
        except (OSError, ValueError, TypeError, onnx.checker.ValidationError) as error:
            if tensor.data_location == TensorProto.EXTERNAL:
                return None  # It cannot be read here; whoever runs the model says so.
            raise InvalidModelError(
                f"the data of tensor {tensor.name!r} does not fit its dimensions "
                f"{list(tensor.dims)} of {dtype_name(tensor.data_type)}; mend the model"
            ) from error

    def _dense(self, sparse: onnx.SparseTensorProto) -> Array | None:
        values, indices = self._array(sparse.values), self._array(sparse.indices)
        dims = tuple(sparse.dims)
        if values is None or indices is None or np.prod([float(d) for d in dims]) > folding.LIMIT:
            return None
        dense = np.zeros(dims, numpy_dtype(sparse.values.data_type))
        where = np.unravel_index(indices, dims) if indices.ndim == 1 else tuple(indices.T)
        dense[where] = values
        return dense

    # Functions

    def function_of(self, node: NodeProto) -> FunctionProto | None:
        """The model-local function that a node calls, if it is such a call."""
        directed = self._directed.get(id(node))
        return directed or self.functions.get((node.domain, node.op_type, node.overload))

    def calls(self, function: FunctionProto) -> list[Call]:
        """Every node that calls a function, with the scope it stands in."""
        if self._calls is None:
            self._calls = defaultdict(list)
            self._find_calls(self._scopes)
        return self._calls.get(id(function), [])

    def _find_calls(self, found: Iterable[Scope]) -> None:
        assert self._calls is not None
        for scope in found:
            for node in scope.nodes:
                function = self.function_of(node)
                if function is not None:
                    self._calls[id(function)].append((scope, node))

    def _called_from(self, tree: Sequence[Scope]) -> list[FunctionProto]:
        """The functions that a function's scopes call, directly or not, in the model's order."""
        found: dict[int, FunctionProto] = {}
        waiting = [node for scope in tree for node in scope.nodes]
        while waiting:
            node = waiting.pop()
            function = self.functions.get((node.domain, node.op_type, node.overload))
            if function is not None and id(function) not in found:
                found[id(function)] = function
                waiting += function.node
            waiting += [inner for _, graph in subgraphs(node) for inner in graph.node]
        order = self._function_places
        return sorted(found.values(), key=lambda function: order[id(function)])

    @cached_property
    def _function_places(self) -> dict[int, int]:
        return {id(function): place for place, function in enumerate(self.functions.values())}

    def direct(self, calls: Sequence[Call], function: FunctionProto) -> None:
        """Let nodes call another function than the one they name, a copy of it.

        Args:
            calls: some of the calls of the function that they name.
            function: the copy, whose scopes are added by `add_scopes`.
        """
        for _, node in calls:
            self._directed[id(node)] = function
        if self._calls is not None:
            self._calls[id(function)] = list(calls)

    def add_scopes(self, tree: Sequence[Scope]) -> None:
        """Take in a function's scopes, once all calls of it are known."""
        self._scopes += tree
        self._trees |= by_root(tree)
        self._holders = {}
        self._unification = None
        if self._calls is not None:
            self._find_calls(tree)

    def resolve_attribute(self, scope: Scope, attribute: AttributeProto) -> Any:
        """An attribute's value; for a reference, what every call of the function gives.

        Returns:
            the value, None if no call sets it and it has no default, or `UNKNOWN`.
        """
        if not attribute.ref_attr_name:
            return attributes.value(attribute)
        function = scope.function
        if function is None:
            return UNKNOWN
        found = [
            None if given is None else self.resolve_attribute(caller, given)
            for caller, given in self.arguments(function, attribute.ref_attr_name)
        ]
        if not found or any(item is UNKNOWN or item != found[0] for item in found):
            return UNKNOWN
        return found[0]

    def arguments(
        self, function: FunctionProto, name: str
    ) -> list[tuple[Scope, AttributeProto | None]]:
        """What each call gives for the function's attribute `name`, defaults filled in."""
        default = next((item for item in function.attribute_proto if item.name == name), None)
        return [
            (caller, attributes.find(call, name) or default)
            for caller, call in self.calls(function)
        ]

    def _bound(
        self, function: FunctionProto, caller: Scope, call: NodeProto
    ) -> dict[str, AttributeProto]:
        """A call's attributes with defaults; references that cannot be resolved are left out."""
        bound = {item.name: item for item in function.attribute_proto}
        for attribute in call.attribute:
            if not attribute.ref_attr_name:
                bound[attribute.name] = attribute
                continue
            value = self.resolve_attribute(caller, attribute)
            if value is not None and value is not UNKNOWN:
                bound[attribute.name] = onnx.helper.make_attribute(attribute.name, value)
        return bound


def declarations(scope: Scope) -> dict[str, ValueType]:
    """The types that a scope's own container states."""
    container = scope.container
    found: dict[str, ValueType] = {}
    infos = list(container.value_info)
    if not isinstance(container, FunctionProto):
        infos += [*container.output, *container.input]
        for tensor in container.initializer:
            found[tensor.name] = tensor_type(tensor.data_type, tuple(tensor.dims))
    for info in infos:
        value_type = from_proto(info.type) if info.HasField("type") else None
        if value_type is not None:
            found[info.name] = value_type
    return found


def _twins(own: Iterable[Scope], copy: ModelProto) -> Iterator[tuple[Scope, Scope]]:
    """The scopes outside functions of a model and of a copy of it, side by side."""
    graphs = [scope for scope in own if scope.function is None]
    if len(graphs) == 1:  # So no node need be looked at for graphs in it.
        return iter([(graphs[0], Scope(copy.graph, None, graphs[0].opset, ""))])
    return zip(graphs, [scope for scope in scopes(copy) if scope.function is None], strict=True)


def _open_places(scope: Scope) -> list[int]:
    """The places of the nodes whose shapes may follow from more than shape inference looks at."""
    return [
        place
        for place, (op_type, node) in enumerate(zip(scope.op_types, scope.nodes, strict=True))
        if op_type in _SHAPED_BY_VALUES or node.domain not in DEFAULT_DOMAINS
    ]


def _by_name(graph: GraphProto) -> _Infos:
    stated: _Infos = defaultdict(list)
    for info in (*graph.value_info, *graph.output):
        stated[info.name].append(info)
    return stated


def _identical(first: Array, second: Array) -> bool:
    return first.dtype == second.dtype and np.array_equal(first, second)
