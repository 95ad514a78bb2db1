"""The values of inputs at which a model decides: limits, ties, ends of types, and saturation.

An input is followed through operators of single elements, whose inverse takes a constant that the
result is compared with back to the input: of ``2 * x + 1 > 76`` that is 37.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TensorProto, numpy_helper

from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import Scope, scopes
from onnxreduce_cli.model.graph.values import iinfo, is_float, numpy_dtype
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.verification.inputs.node_use import OF_SHAPES, NodeUse
from onnxreduce_cli.verification.inputs.ranges import PASSING, enter_body, readers_by_value

Array = npt.NDArray[Any]
Inverse = Callable[[Array], Array]

#: Constants of more elements are no limits.
_FEW = 1024
#: The most values at which one input decides.
_MOST = 64

_TIES = (-2.5, -1.5, -0.5, 0.5, 1.5, 2.5)
_SATURATION = (-90.0, -16.0, -6.0, -2.0, 2.0, 6.0, 16.0, 90.0)

_COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
_LIMITING = frozenset({"Clip", "Max", "Min"})
_AT_ZERO = frozenset({"Abs", "Celu", "Elu", "LeakyRelu", "PRelu", "Relu", "Selu", "Sign"})
_SATURATING = frozenset({"Erf", "Gelu", "Mish", "Sigmoid", "Softplus", "Softsign", "Tanh"})
_BITS = frozenset({"BitwiseAnd", "BitwiseOr", "BitwiseXor"})
_STEPS = frozenset({"Ceil", "Floor"})

#: Reductions, by what of their elements they give.
_LEVELLING = {
    "GlobalAveragePool": "mean",
    "GlobalMaxPool": "max",
    "ReduceMax": "max",
    "ReduceMean": "mean",
    "ReduceMin": "min",
    "ReduceSum": "mean",
}

#: Operators of single elements, through which a limit is passed on as it is.
_KEEPING = _AT_ZERO | _LIMITING | _STEPS | {
    "Cast", "CastLike", "Dropout", "HardSigmoid", "HardSwish", "Identity", "Pad", "Round",
    "Shrink", "Slice", "ThresholdedRelu",
}  # fmt: skip

#: Operators that take integers of any value.
_OF_ANY_INTEGERS = _COMPARISONS | _LIMITING | _BITS | OF_SHAPES | {
    "Abs", "Add", "And", "ArgMax", "ArgMin", "BitShift", "BitwiseNot", "Cast", "CastLike",
    "Concat", "ConvInteger", "DequantizeLinear", "Expand", "Flatten", "Gather", "GatherElements",
    "GatherND", "Identity", "LabelEncoder", "MatMulInteger", "Mul", "Neg", "NonZero", "Not", "Or",
    "Pad", "QLinearConv", "QLinearMatMul", "ReduceMax", "ReduceMin", "ReduceSum", "Reshape",
    "Sign", "Slice", "Split", "Squeeze", "Sub", "Sum", "Tile", "TopK", "Transpose", "Unique",
    "Unsqueeze", "Where", "Xor",
}  # fmt: skip

#: Operators that take negative integers too, but whose results the dtype must hold.
_OF_SIGNED_INTEGERS = _OF_ANY_INTEGERS | {
    "CumSum", "Einsum", "Gemm", "MatMul", "ReduceL1", "ReduceL2", "ReduceMean", "ReduceProd",
    "ReduceSumSquare", "ScatterElements", "ScatterND",
}  # fmt: skip

_INVERSES: dict[str, Inverse] = {
    "Exp": np.log,
    "Log": lambda t: np.exp(np.minimum(t, 50.0)),
    "Neg": np.negative,
    "Reciprocal": np.reciprocal,
    "Sigmoid": lambda t: np.log(t) - np.log1p(-t),
    "Sqrt": np.square,
    "Tanh": np.arctanh,
}

#: By operator and index of the input, its value from the result and the other, constant, input.
_INVERSES_WITH: dict[tuple[str, int], Callable[[Array, Array], Array]] = {
    ("Add", 0): lambda t, c: t - c,
    ("Add", 1): lambda t, c: t - c,
    ("Div", 0): lambda t, c: t * c,
    ("Div", 1): lambda t, c: c / t,
    ("Mul", 0): lambda t, c: t / c,
    ("Mul", 1): lambda t, c: t / c,
    ("Pow", 0): lambda t, c: np.power(t, 1 / c),
    ("Sub", 0): lambda t, c: t + c,
    ("Sub", 1): lambda t, c: c - t,
}


@dataclass(slots=True)
class Decisions:
    """What an input's elements decide by.

    Attributes:
        values: values at which single elements decide; arrays may have one for each channel.
        levels: ``max``, ``min`` or ``mean`` of all elements, and the value at which it decides.
        any_integer: whether integers may take any value.
        signed: whether integers may be negative.
    """

    values: list[Array] = field(default_factory=list)
    levels: list[tuple[str, float]] = field(default_factory=list)
    any_integer: bool = True
    signed: bool = True

    def add(self, values: Array, level: str) -> None:
        """Add finite values."""
        if level:
            flat = values.reshape(-1)[:_MOST].tolist()
            found = [(level, value) for value in flat if math.isfinite(value)]
            self.levels += [one for one in found if one not in self.levels]
        elif np.isfinite(values).any() and len(self.values) < _MOST:
            self.values.append(np.where(np.isfinite(values), values, 0.0))

    def merge(self, other: Decisions) -> None:
        """Add what another model decides by."""
        self.values += other.values
        self.levels += [one for one in other.levels if one not in self.levels]
        self.any_integer &= other.any_integer
        self.signed &= other.signed


class _Place(NamedTuple):
    """A value that is computed from an input's elements one by one.

    Attributes:
        scope: where it is.
        name: its name.
        inverse: the input's element from the value's.
        level: what of all elements it is, such as their ``mean``; empty where it is of one.
    """

    scope: Scope
    name: str
    inverse: Inverse
    level: str


def words(model: ModelProto) -> list[str]:
    """Return the strings that a model has as constants."""
    found: dict[str, None] = {}
    for scope in scopes(model):
        tensors = (
            [] if isinstance(scope.container, FunctionProto) else [*scope.container.initializer]
        )
        for node in scope.nodes:
            for attribute in node.attribute:
                if attribute.name in ("equation", "mode"):
                    continue
                if attribute.type == AttributeProto.STRINGS:
                    found.update(
                        (text.decode(errors="replace"), None) for text in attribute.strings
                    )
                elif attribute.type == AttributeProto.TENSOR:
                    tensors.append(attribute.t)
        for tensor in tensors:
            if tensor.data_type == TensorProto.STRING and math.prod(tensor.dims) <= _FEW:
                array = numpy_helper.to_array(tensor).reshape(-1).tolist()
                found.update((_text(item), None) for item in array)
    return list(found)[:_FEW]


def _text(item: Any) -> str:
    return item.decode(errors="replace") if isinstance(item, bytes) else str(item)


class DecisionFinder:
    """Finds what a model decides by.

    Args:
        model: the model; its large tensors may be left out.
    """

    def __init__(self, model: ModelProto) -> None:
        self._scopes = scopes(model)
        self._facts = Facts(model, self._scopes)
        self._readers = readers_by_value(self._scopes)
        self._inner = {id(scope.container): scope for scope in self._scopes}

    def of_input(self, name: str) -> Decisions:
        """Return what the elements of an input decide by."""
        return self._follow([(self._scopes[0], name)])

    def sizes(self) -> list[int]:
        """Return the sizes that sizes are compared with, or that a Slice cuts at."""
        of_shapes: list[tuple[Scope, str]] = []
        found: list[float] = []
        for scope in self._scopes:
            for node in scope.nodes:
                if node.op_type in OF_SHAPES:
                    of_shapes += [(scope, name) for name in node.output]
                elif node.op_type == "Slice":
                    found += _ends(NodeUse(node, scope, self._facts))
        compared = self._follow(of_shapes)
        found += [value for array in compared.values for value in array.reshape(-1).tolist()]
        found += [value for _, value in compared.levels]
        return sorted({round(size) for size in found if 0 < size <= _FEW})

    def _follow(self, starts: Iterable[tuple[Scope, str]]) -> Decisions:
        """Return what the elements of some values decide by."""
        found = Decisions()
        waiting = [_Place(scope, name, _same, "") for scope, name in starts]
        seen = {(id(place.scope), place.name) for place in waiting}
        with np.errstate(all="ignore"):
            while waiting:
                place = waiting.pop()
                for scope, node, index in self._readers.get((id(place.scope), place.name), ()):
                    for after in self._through(found, place, scope, node, index):
                        if after.name and (id(after.scope), after.name) not in seen:
                            seen.add((id(after.scope), after.name))
                            waiting.append(after)
        return found

    def _through(
        self, found: Decisions, place: _Place, scope: Scope, node: NodeProto, index: int
    ) -> list[_Place]:
        """Add what a node decides by; return the values through which to go on."""
        after: list[_Place] = []
        function = self._facts.calls.function_of(node)
        if function is not None:
            body = self._inner.get(id(function))
            if body is not None and index < len(function.input):
                after.append(place._replace(scope=body, name=function.input[index]))
            return after
        use = NodeUse(node, scope, self._facts)
        if node.op_type not in _OF_ANY_INTEGERS and use.takes_integers(index):
            found.any_integer = False
            found.signed &= node.op_type in _OF_SIGNED_INTEGERS
        for values in _limits(use, index):
            found.add(np.asarray(place.inverse(np.asarray(values, np.float64))), place.level)
        enter_body(
            node,
            index,
            self._inner,
            lambda body, name: after.append(place._replace(scope=body, name=name)),
        )
        if not is_default(node.domain):
            return after
        inverse = _inverse(use, index)
        level = place.level or _LEVELLING.get(node.op_type, "")
        if node.op_type == "ReduceSum" and not index:
            inverse = _of_sum(use)
        if inverse is not None:
            last, step = place.inverse, inverse
            chained = _same if last is step is _same else lambda t: last(step(t))
            after += [_Place(scope, name, chained, level) for name in node.output]
        return after


def _same(values: Array) -> Array:
    return values


def _inverse(use: NodeUse, index: int) -> Inverse | None:
    """Return an input's element from the result's; None where a limit is not passed on."""
    op_type = use.node.op_type
    if op_type in _INVERSES:
        return _INVERSES[op_type]
    if (op_type, index) in _INVERSES_WITH:
        other = _constant(use, 1 - index)
        if other is None:
            return _same
        with_other = _INVERSES_WITH[op_type, index]
        return lambda t: with_other(t, other)
    if op_type in ("QuantizeLinear", "DequantizeLinear") and not index:
        scale, zero = _constant(use, 1), _constant(use, 2)
        if scale is None:
            return None
        offset = np.float64(0) if zero is None else zero
        if op_type == "QuantizeLinear":
            return lambda t: (t - offset) * scale
        return lambda t: t / scale + offset
    passes = index in PASSING.get(op_type, ()) or (index == 0 and op_type in _KEEPING)
    return _same if passes or (op_type in _LEVELLING and not index) else None


def _ends(use: NodeUse) -> Iterator[float]:
    """Yield the ends at which a Slice cuts dimensions that are not fixed."""
    dims = use.dims(0)
    attributes = [use.attribute(name) for name in ("ends", "axes")]
    ends, axes = (
        _constant(use, place) if attribute is None else np.array(attribute.ints, np.float64)
        for attribute, place in zip(attributes, (2, 3), strict=True)
    )
    if ends is None:
        return
    for place, end in enumerate(ends.reshape(-1).tolist()):
        axis = place if axes is None or place >= axes.size else int(axes.reshape(-1)[place])
        if dims is None or not (-len(dims) <= axis < len(dims) and isinstance(dims[axis], int)):
            yield end


def _of_sum(use: NodeUse) -> Inverse:
    """Return an element from the sum of all, as far as their number is known."""
    dims = [dim for dim in use.dims(0) or () if isinstance(dim, int)]
    axes = _constant(use, 1) if len(use.node.input) > 1 else None
    known = use.dims(0) or ()
    if axes is not None:
        places = [int(axis) for axis in axes.reshape(-1)]
        dims = [
            d for a in places if -len(known) <= a < len(known) and isinstance(d := known[a], int)
        ]
    count = max(1, math.prod(dims))
    return lambda t: t / count


def _constant(use: NodeUse, index: int) -> Array | None:
    """Return a numeric constant that is an input of a node, as doubles; None where it is none."""
    name = use.node.input[index] if index < len(use.node.input) else ""
    found = use.facts.constant(use.scope, name) if name else None
    if (
        found is None
        or not 0 < found.size <= _FEW
        or not (found.dtype.kind in "iub" or is_float(found.dtype))
    ):
        return None
    return found.astype(np.float64)


def _limits(use: NodeUse, index: int) -> Iterator[Any]:
    """Yield the values of an input at which a node decides."""
    op_type = use.node.op_type
    others = [n for n in range(len(use.node.input)) if n != index]
    constants = [array for n in others if (array := _constant(use, n)) is not None]
    if op_type in _COMPARISONS or op_type in _LIMITING or (op_type == "OneHot" and not index):
        yield from constants
    elif op_type in ("Div", "Mod", *_BITS):
        for other in constants:
            yield from (other, -other, 2 * other + 1)
    for attribute in use.node.attribute if op_type in _KEEPING else ():
        if attribute.type == AttributeProto.FLOAT:
            yield from (attribute.f, -attribute.f)
    if op_type in _LIMITS:
        yield from _LIMITS[op_type]
    elif op_type in _BY_ATTRIBUTES and not index:
        yield from _BY_ATTRIBUTES[op_type](use)
    for name in LEARNED.get(op_type, ()):
        known = use.attribute(name)
        if known is not None and math.prod(known.t.dims) <= _FEW:
            yield from (item for item in elements(known) if not isinstance(item, str))


def elements(attribute: AttributeProto) -> list[Any]:
    """Return what an attribute of `LEARNED` holds: numbers, or texts of a tensor."""
    if attribute.type == AttributeProto.FLOAT:
        return [attribute.f]
    if attribute.type != AttributeProto.TENSOR:
        return [*attribute.floats, *attribute.ints]
    held = numpy_helper.to_array(attribute.t).reshape(-1).tolist()
    return [item.decode() if isinstance(item, bytes) else item for item in held]


def _of_hard_sigmoid(use: NodeUse) -> Iterator[float]:
    alpha, beta = use.attribute("alpha"), use.attribute("beta")
    slope, start = 0.2 if alpha is None else alpha.f, 0.5 if beta is None else beta.f
    yield from (-start / slope, (1 - start) / slope) if slope else ()


def _of_cast(use: NodeUse) -> Iterator[float]:
    """Yield the ends of the integers that wider ones are cast to, and fractions of floats."""
    target = use.integer("to")
    source = use.facts.elem_type(use.scope, use.node.input[0])
    # Below opset 6 the attribute is a name.
    if source is None or not target or TensorProto.STRING in (source, target):
        return
    wide, narrow = numpy_dtype(source), numpy_dtype(target)
    if narrow.kind not in "iu":
        return
    if is_float(wide):
        yield from (-1.5, -0.5, 0.5, 1.5)
    elif wide.kind in "iu" and narrow.itemsize <= wide.itemsize:
        yield from (float(iinfo(narrow).min), float(iinfo(narrow).max))


def _of_quantization(use: NodeUse) -> Iterator[Array]:
    """Yield ties between quantized values, and where they saturate."""
    scale, zero = _constant(use, 1), _constant(use, 2)
    if scale is None:
        return
    elem_type = use.facts.elem_type(use.scope, use.node.output[0])
    dtype = numpy_dtype(TensorProto.UINT8 if elem_type is None else elem_type)
    yield from (scale * tie for tie in _TIES)
    if dtype.kind in "iu":
        offset = np.float64(0) if zero is None else zero
        for end in (int(iinfo(dtype).min), int(iinfo(dtype).max)):
            yield scale * (end - offset)
            yield scale * (end - offset) * 1.5


#: The limits of operators that have the same everywhere.
_LIMITS: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(_AT_ZERO, (0.0,)),
    **dict.fromkeys(_SATURATING, _SATURATION),
    **dict.fromkeys(_STEPS, (-2.0, -0.5, 0.5, 2.0)),
    "HardSwish": (-3.0, 3.0),
    "Round": _TIES,
    "Shrink": (-0.5, 0.5),
    "ThresholdedRelu": (1.0,),
}

#: The limits of operators that depend on attributes and constants.
_BY_ATTRIBUTES: dict[str, Callable[[NodeUse], Iterator[Any]]] = {
    "Cast": _of_cast,
    "HardSigmoid": _of_hard_sigmoid,
    "QuantizeLinear": _of_quantization,
}

#: Operators of ai.onnx.ml, by their attributes with what inputs are compared with.
LEARNED = {
    "Binarizer": ("threshold",),
    "LabelEncoder": ("keys_int64s", "keys_floats", "keys_tensor"),
    "TreeEnsemble": ("nodes_splits", "membership_values"),
    "TreeEnsembleClassifier": ("nodes_values", "nodes_values_as_tensor"),
    "TreeEnsembleRegressor": ("nodes_values", "nodes_values_as_tensor"),
}
