"""A model in double precision: what it computes but for rounding.

Only the graph changes: weights stay in their files, and are cast. Every float value becomes a
double of the same name. Nodes whose operator does not take double, such as quantized ones, stay in
float between Casts. Casts to 16 bits stay as they are.

Where dtypes were changed, values of the old and of the new dtypes become double, too, and weights
are first rounded to the new one, but for those that only the conversion has: nodes that take the
place of others compute in float where these do. So a model and its conversion compute exactly the
same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
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
    defs,
    helper,
    inliner,
    parser,
)

from onnxreduce_cli.model.graph.domains import default_opset, is_default
from onnxreduce_cli.model.graph.scope import Scope, scopes, subgraphs
from onnxreduce_cli.model.graph.used_values import used_values
from onnxreduce_cli.model.graph.values import dtype_name, finfo, is_float, numpy_dtype
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.verification.inputs.node_use import OF_SHAPES
from onnxreduce_cli.verification.running.source import ModelSource

_DOUBLE = "tensor(double)"

#: Attributes that hold the dtype of an output.
_DTYPES = frozenset({"dtype", "output_dtype", "output_datatype"})

#: Operators whose output is a constant, which is rounded as weights are.
_CONSTANTS = frozenset({"Constant", "ConstantOfShape"})

#: Dtypes that were changed to others, by their numbers.
ChangedDtypes = Mapping[int, int]

#: The domain and name of the function that brings rounding errors in.
_DOMAIN, _NOISE = "onnxreduce.rounding", "Noise"


#: Operators that put tensors into a sequence or an optional value, or take them out: the dtype is
#: the same, though the type variables of input and output differ.
_HOLDING = frozenset(
    {
        "ConcatFromSequence",
        "OptionalGetElement",
        "SequenceAt",
        "SequenceConstruct",
        "SplitToSequence",
    }
)


class NotInDoubleError(Exception):
    """A model cannot be run in double; the message gives the reason."""


def in_double(
    source: ModelSource,
    *,
    noise: bool = False,
    changed: ChangedDtypes | None = None,
    rounded: Collection[str] | None = None,
) -> ModelSource:
    """Return a model whose floats are double.

    Args:
        source: the model.
        noise: whether each value gets relative errors of up to one unit in the last place of a
            float, or of the coarsest dtype in `changed`, another for each element: rounding may
            move outputs as far as these do. Weights are not rounded then.
        changed: the dtypes that a conversion changed, in this model or in the one that it is
            compared with: they become double, too.
        rounded: the constants that are rounded to the new dtype; None for all.

    Raises:
        NotInDoubleError: the type of some value is not known, or weights are sparse.
    """
    model = _inlined(source.whole())
    skeleton = ModelSource(model, source.label, generated=True).skeleton
    found = scopes(skeleton)
    changed = changed or {}
    widener = _Widener(Facts(skeleton, found), _imports(model), noise, changed, rounded)
    kinds = {id(scope.container): scope for scope in found}
    widener.graph(model.graph, skeleton.graph, kinds)
    if noise:
        model.functions.append(
            _noise_function(_ulp(coarsest({*changed, *changed.values()} or {TensorProto.FLOAT})))
        )
        model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    model.ir_version = max(model.ir_version, 8 if noise else 3)
    return ModelSource(model, source.label, base_dir=source.base_dir, generated=True)


def constants(source: ModelSource) -> dict[str, str]:
    """Return the types of a model's constants by their names, as `in_double` has them."""
    skeleton = source.skeleton
    if skeleton.functions:
        skeleton = ModelSource(_inlined(source.whole()), source.label, generated=True).skeleton
    found = scopes(skeleton)
    facts = Facts(skeleton, found)
    return {
        name: facts.kind(scope, name) or ""
        for scope in found
        for name in (
            *scope.initializers,
            *(node.output[0] for node in scope.nodes if node.op_type in _CONSTANTS and node.output),
        )
    }


def _inlined(model: ModelProto) -> ModelProto:
    return inliner.inline_local_functions(model) if model.functions else model


def input_in_double(
    value: Any, changed: ChangedDtypes | None = None, *, rounded: bool = False
) -> Any:
    """Return an input of a model for the one `in_double`: float as double, in sequences too.

    Args:
        value: the input.
        changed: the dtypes that a conversion changed.
        rounded: whether it is rounded to the dtype that it was changed to.
    """
    if isinstance(value, list):
        return [input_in_double(item, changed, rounded=rounded) for item in value]
    if not isinstance(value, np.ndarray) or not is_float(value.dtype):
        return value
    own = helper.np_dtype_to_tensor_dtype(value.dtype)
    if own not in _widened(changed or {}):
        return value
    target = (changed or {}).get(own) if rounded else None
    if target is not None:
        with np.errstate(all="ignore"):
            value = value.astype(numpy_dtype(target))
    return value.astype(np.float64)


def _widened(changed: ChangedDtypes) -> frozenset[int]:
    """Return the dtypes that become double."""
    return frozenset({TensorProto.FLOAT, *changed, *changed.values()})


def coarsest(dtypes: Collection[int]) -> int:
    """Return the dtype whose values are furthest apart."""
    return max(dtypes, key=_ulp)


def _ulp(dtype: int) -> float:
    """Return the unit in the last place of one."""
    return float(finfo(numpy_dtype(dtype)).eps)


def _imports(model: ModelProto) -> dict[str, int]:
    found = {item.domain: int(item.version) for item in model.opset_import}
    return {**found, "": default_opset(model) or 1}


class _Widener:
    """Rewrites the graphs of one model in double.

    Attributes:
        facts: the facts of the original model, without weights.
        imports: its opsets by domain.
        noise: whether values get rounding errors.
        changed: the dtypes that a conversion changed.
        rounded: the constants that are rounded to the new ones; None for all.
    """

    def __init__(
        self,
        facts: Facts,
        imports: dict[str, int],
        noise: bool,
        changed: ChangedDtypes,
        rounded: Collection[str] | None,
    ) -> None:
        self.facts = facts
        self.imports = imports
        self.noise = noise
        self.changed = changed
        self.rounded = rounded
        self._numbers = _widened(changed)
        self._kinds = frozenset(f"tensor({dtype_name(item)})" for item in self._numbers)
        self._narrow = {f"tensor({dtype_name(a)})": b for a, b in changed.items()}
        self._count = 0
        # Values computed from elements of inputs: errors in sizes would be errors in shapes.
        self._computed: set[str] = set()

    def graph(self, graph: GraphProto, skeleton: GraphProto, kinds: dict[int, Scope]) -> None:
        """Rewrite a graph and its nodes' subgraphs in double.

        Args:
            graph: the graph, which is edited.
            skeleton: the same graph without weights, which the facts are about.
            kinds: scopes by the identity of their graph in the skeleton.
        """
        if any(item.values.data_type in self._numbers for item in graph.sparse_initializer):
            raise NotInDoubleError("it has sparse weights")
        scope = kinds[id(skeleton)]
        nodes: list[NodeProto] = []
        #: Casts of weights, each before the first node that reads it: it takes memory from then on.
        casts: dict[str, list[NodeProto]] = {}
        given = {value.name for value in graph.input}
        for tensor in graph.initializer:
            if tensor.data_type in self._numbers:
                name = tensor.name
                if name in given:  # Its default takes the place of the input.
                    kept = [value for value in graph.input if value.name != name]
                    del graph.input[:]
                    graph.input.extend(kept)
                tensor.name = self._fresh(name)
                kind = f"tensor({dtype_name(tensor.data_type)})"
                casts[name] = self._raise(tensor.name, name, kind)
        self._computed |= {value.name for value in graph.input}
        for value in (*graph.input, *graph.output):
            self._widen_type(value.type)
        del graph.value_info[:]
        for node, old in zip(graph.node, skeleton.node, strict=True):
            for (_, inner), (_, known) in zip(subgraphs(node), subgraphs(old), strict=True):
                self.graph(inner, known, kinds)
            for name in used_values([old]):
                nodes += casts.pop(name, [])
            nodes += self._node(node, old, scope)
        del graph.node[:]
        graph.node.extend([*nodes, *(cast for found in casts.values() for cast in found)])

    def _node(self, node: NodeProto, old: NodeProto, scope: Scope) -> Iterator[NodeProto]:
        """Yield a node in double, or in float between Casts."""
        if node.op_type not in OF_SHAPES and not self._computed.isdisjoint(used_values([old])):
            self._computed.update(node.output)
        floats = dict.fromkeys(name for name in old.output if self._is_float(scope, name))
        read = dict.fromkeys(name for name in old.input if self._is_float(scope, name))
        if not floats and not read:
            yield node
        elif is_default(node.domain) and node.op_type == "Cast":
            yield self._cast(node, floats)
        elif any(subgraphs(old)) or self._takes_double(old, scope, read):
            tensors = [name for name in floats if self.facts.kind(scope, name) in self._kinds]
            yield from self._noisy(node, tensors)
        else:
            kinds = {name: self.facts.kind(scope, name) or "" for name in (*floats, *read)}
            if not self._kinds.issuperset(kinds.values()):
                raise NotInDoubleError(f"{old.op_type} has no sequences of double")
            lowered = {name: self._fresh(name) for name in read}
            for name, low in lowered.items():
                yield self._to(name, low, TensorProto.FLOAT)
            node.input[:] = [lowered.get(name, name) for name in node.input]
            raised = {name: self._fresh(name) for name in floats}
            node.output[:] = [raised.get(name, name) for name in node.output]
            for attribute in node.attribute:
                if attribute.name in _DTYPES and attribute.i in self._numbers:
                    attribute.i = TensorProto.FLOAT
            yield node
            for name, low in raised.items():
                kind = kinds[name] if old.op_type in _CONSTANTS else ""
                *first, last = self._raise(low, name, kind)
                yield from first
                yield from self._noisy(last, [name])

    def _is_float(self, scope: Scope, name: str) -> bool:
        if not name:
            return False
        kind = self.facts.kind(scope, name)
        if kind is None:
            raise NotInDoubleError(f"the type of {name!r} is not known")
        return any(item in kind for item in self._kinds)

    def _takes_double(self, node: NodeProto, scope: Scope, read: Collection[str]) -> bool:
        """Return whether an operator computes in double what it does in float."""
        domain = "" if is_default(node.domain) else node.domain
        try:
            schema = defs.get_schema(node.op_type, self.imports.get(domain, 1), domain)
        except defs.SchemaError:
            return False
        bound = set()
        for index, name in enumerate(node.input):
            formal = schema.inputs[min(index, len(schema.inputs) - 1)]
            if name in read:
                kind = self.facts.kind(scope, name) or ""
                for item in self._kinds:
                    kind = kind.replace(item, _DOUBLE)
                if kind not in formal.types:
                    return False
                bound.add(formal.type_str)
        for index, name in enumerate(node.output):
            if name and node.op_type not in _HOLDING and self._is_float(scope, name):
                formal = schema.outputs[min(index, len(schema.outputs) - 1)]
                if formal.type_str not in bound:
                    return False
        return True

    def _cast(self, node: NodeProto, floats: Collection[str]) -> NodeProto:
        """Return a Cast, to double where it was to float."""
        for attribute in node.attribute:
            if attribute.name == "to" and floats:
                self._set_type(attribute, TensorProto.DOUBLE)
        return node

    def _noisy(self, node: NodeProto, floats: Collection[str]) -> Iterator[NodeProto]:
        """Yield a node, and nodes that bring errors into its outputs in double."""
        moved = [name for name in floats if self.noise and name in self._computed]
        exact = {name: self._fresh(name) for name in moved if not any(subgraphs(node))}
        node.output[:] = [exact.get(name, name) for name in node.output]
        yield node
        for name, made in exact.items():
            yield self._with_noise(made, name)

    def _with_noise(self, exact: str, name: str) -> NodeProto:
        self._count += 1
        return helper.make_node(
            _NOISE, [exact], [name], domain=_DOMAIN, phase=float(self._count % 1000)
        )

    def _raise(self, source: str, target: str, kind: str) -> list[NodeProto]:
        """Return the Casts of a value to double, a constant by way of the dtype that it gets."""
        stays = self.noise or (self.rounded is not None and target not in self.rounded)
        narrow = None if stays else self._narrow.get(kind)
        if narrow is None:
            return [self._to(source, target, TensorProto.DOUBLE)]
        rounded = self._fresh(target)
        return [
            self._to(source, rounded, narrow),
            self._to(rounded, target, TensorProto.DOUBLE),
        ]

    def _widen_type(self, proto: TypeProto) -> None:
        """Change floats to double in a type, in sequences and optionals too."""
        kind = proto.WhichOneof("value")
        if kind == "tensor_type":
            if proto.tensor_type.elem_type in self._numbers:
                proto.tensor_type.elem_type = TensorProto.DOUBLE
        elif kind in ("sequence_type", "optional_type"):
            self._widen_type(getattr(proto, kind).elem_type)

    def _to(self, source: str, target: str, elem_type: int) -> NodeProto:
        node = helper.make_node("Cast", [source], [target], to=elem_type)
        self._set_type(node.attribute[0], elem_type)
        return node

    def _set_type(self, attribute: AttributeProto, elem_type: int) -> None:
        """Set the dtype of a Cast, by its name before opset 6."""
        attribute.Clear()
        attribute.name = "to"
        if self.imports[""] < 6:
            attribute.type = AttributeProto.STRING
            attribute.s = TensorProto.DataType.Name(elem_type).encode()
        else:
            attribute.type = AttributeProto.INT
            attribute.i = elem_type

    def _fresh(self, name: str) -> str:
        self._count += 1
        return f"{name}/onnxreduce-{self._count}"


@cache
def _noise_function(ulp: float) -> FunctionProto:
    """Return a function that gives each element of a tensor its own error, up to `ulp` of it.

    The errors are the fractions of large sines of positions, which look random.
    """
    return parser.parse_function(
        f'''<domain: "{_DOMAIN}", opset_import: ["": 17]> {_NOISE} <phase> (x) => (y) {{
            zero = Constant <value_int = 0> ()
            one = Constant <value_int = 1> ()
            size = Size (x)
            positions = Range (zero, size, one)
            along = Cast <to = 11> (positions)
            step = Constant <value = double {{12.9898}}> ()
            stepped = Mul (along, step)
            phase = Constant <value_float : float = @phase> ()
            start = Cast <to = 11> (phase)
            angles = Add (stepped, start)
            sines = Sin (angles)
            large = Constant <value = double {{43758.5453}}> ()
            far = Mul (sines, large)
            whole = Floor (far)
            part = Sub (far, whole)
            half = Constant <value = double {{0.5}}> ()
            centred = Sub (part, half)
            ulps = Constant <value = double {{{2 * ulp!r}}}> ()
            errors = Mul (centred, ulps)
            ones = CastLike (one, errors)
            factors = Add (ones, errors)
            shape = Shape (x)
            shaped = Reshape <allowzero = 1> (factors, shape)
            y = Mul (x, shaped)
        }}'''
    )
